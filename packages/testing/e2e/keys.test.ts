// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// with real processes: keys rotated and revoked under load, stolen capabilities, chains, old disks.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isSpaceError, newAdmissionId, parseSandboxId, type RouteEntry, Secret } from "@space/model";
import { dialPeer, issuePeer, loadOrCreateMesh } from "@space/mtls";
import { FrameLink } from "@space/wire";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { checkout, type Finished, runProgram } from "../src/space-process.ts";
import { openOperation, verdictOf } from "../src/worker-rig.ts";

const resourcesBefore = hostResources();
const random = new SeededRandom("keys");
const presentable = { purpose: "control" } as const;
let data: string;
let rig: EmbeddedRig;

before(async () => {
  if (skip !== false) return;
  data = mkdtempSync(join(tmpdir(), "space-keys-"));
  rig = await startRig({ data, limits: { collectTickMs: 300 } });
});

after(async () => {
  if (skip !== false) return;
  await rig.end();
  rmSync(data, { recursive: true, force: true });
  assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

const space = (...args: readonly string[]): Promise<Finished> => runProgram(join(checkout, "space"), args);

/** What the gateway would get for this sandbox's owner. */
async function entryOf(sandboxId: string): Promise<RouteEntry> {
  const answer = await rig.system.routes.resolve({
    sandboxId: parseSandboxId(sandboxId),
    credential: { kind: "access-token", token: new Secret(await rig.accessToken(sandboxId)) },
    wanted: { purpose: "control", scope: "files:read" },
    presenter: rig.system.presenter,
  });
  assert.equal(answer.kind, "entry");
  return answer.entry;
}

/** The worker's own verdict on a capability, presented over the gateway's connection or another one. */
async function present(
  { route, capability }: RouteEntry,
  socket = rig.system.dialWorker(route.endpoint.workerId),
): Promise<string> {
  const link = new FrameLink(await socket, { dialled: true });
  const head = {
    admission: newAdmissionId(random),
    sandbox: route.identity.sandboxId,
    capability,
    target: presentable,
    method: "GET",
    path: "/files?path=/etc/hostname",
    headers: [],
  };
  const answer = await openOperation(link, head, true).answer;
  link.destroy(undefined);
  return verdictOf(answer);
}

/** Callers that read a file over and over until they are told to stop. */
function load(
  sandbox: Sandbox,
  callers: number,
): { stop(): Promise<{ served: number; failed: readonly string[] }> } {
  let goesOn = true;
  let served = 0;
  const failed: string[] = [];
  const one = async (): Promise<void> => {
    while (goesOn) {
      try {
        assert.equal(await sandbox.files.read("/tmp/mine"), "mine");
        served += 1;
      } catch (error) {
        failed.push(String(error));
      }
    }
  };
  const running = Array.from({ length: callers }, one);
  return {
    stop: async () => {
      goesOn = false;
      await Promise.all(running);
      return { served, failed };
    },
  };
}

async function newSandbox(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ ...rig.client(), timeoutMs: 300_000 });
  await sandbox.files.write("/tmp/mine", "mine");
  return sandbox;
}

test("R-10: keys rotated, then one revoked, under load: no valid caller is refused, the revoked key is within 5 s", {
  skip,
}, async () => {
  const sandbox = await newSandbox();
  const loaded = load(sandbox, 4);
  const old = await entryOf(sandbox.sandboxId);
  assert.equal(await present(old), "match");
  await rig.system.keys.rotate();
  assert.equal(await present(old), "match", "trusted for the overlap");
  const [first] = rig.system.keys.view().keys;
  assert.equal(first?.state, "retiring");
  const askedMs = performance.now();
  const revoked = await rig.system.keys.revoke(first.kid);
  assert.equal(revoked.state, "revoked");
  while ((await present(old)) !== "deny") assert.ok(performance.now() - askedMs < 5_000);
  assert.equal(await present(await entryOf(sandbox.sandboxId)), "match");
  const { served, failed } = await loaded.stop();
  assert.deepEqual(failed, []);
  assert.ok(served > 20, `${served} requests were served meanwhile`);
  await sandbox.kill();
});

test("R-7: a capability that was stolen is denied over the connection of another gateway with a certificate of its own", {
  skip,
}, async () => {
  const sandbox = await newSandbox();
  const entry = await entryOf(sandbox.sandboxId);
  const nowMs = Date.now();
  const authority = await loadOrCreateMesh({ directory: join(data, "tls"), nowMs });
  const { host, port, workerId } = entry.route.endpoint;
  const asPeer = (commonName: string) =>
    dialPeer(
      {
        host,
        port,
        expectedName: workerId,
        identity: issuePeer(authority, { commonName, nowMs }),
        authorityCertificate: authority.certificate,
      },
      AbortSignal.timeout(5_000),
    );
  assert.equal(await present(entry), "match");
  assert.equal(await present(entry, asPeer("gateway")), "deny");
  await sandbox.kill();
});

test("R-7: with a new certificate the gateway's old capabilities are denied, and no caller notices", {
  skip,
}, async () => {
  const sandbox = await newSandbox();
  const loaded = load(sandbox, 4);
  const old = await entryOf(sandbox.sandboxId);
  const before_ = rig.system.presenter;
  await rig.system.renewGatewayCertificate();
  assert.notEqual(rig.system.presenter, before_);
  assert.equal(await present(old), "deny");
  assert.equal(await present(await entryOf(sandbox.sandboxId)), "match");
  const { served, failed } = await loaded.stop();
  assert.deepEqual(failed, []);
  assert.ok(served > 4, `${served} requests were served meanwhile`);
  await sandbox.kill();
});

test("R-10: ./space keys administers the installation that runs, through a socket that is the owner's alone", {
  skip,
}, async () => {
  const listed = await space("keys", "list", "--json", "--data", data);
  assert.equal(listed.code, 0, listed.stderr);
  const answer = JSON.parse(listed.stdout);
  assert.deepEqual(answer.keys, rig.system.keys.view().keys);
  assert.equal(answer.rootKeyIsHere, true);
  const rotated = await space("keys", "rotate", "--data", data);
  assert.match(rotated.stdout, /retiring[\s\S]* signing/, rotated.stderr);
  const { keys } = rig.system.keys.view();
  const retiring = keys.find(({ state }) => state === "retiring")?.kid ?? "";
  const revoked = await space("keys", "revoke", retiring.slice(0, 10), "--data", data);
  assert.equal(revoked.code, 0, revoked.stderr);
  assert.equal(rig.system.keys.view().keys.find(({ kid }) => kid === retiring)?.state, "revoked");
  const again = await space("keys", "revoke", retiring, "--data", data);
  assert.deepEqual([again.code, again.stderr], [1, "space: that key is revoked already\n"]);
  assert.equal(statSync(join(data, "root-key/root.pem")).mode & 0o777, 0o400);
  assert.equal(statSync(join(data, "root-key")).mode & 0o777, 0o700);
});

test("R-5: ./space chain verifies a sandbox's chain over rotations, and offline with the root's public key alone", {
  skip,
}, async () => {
  const sandbox = await newSandbox();
  const { sandboxId } = sandbox;
  await sandbox.pause();
  await rig.system.keys.rotate();
  await sandbox.connect();
  assert.equal(await sandbox.files.read("/tmp/mine"), "mine");
  const verified = await space("chain", "verify", sandboxId, "--json", "--data", data);
  assert.equal(verified.code, 0, verified.stderr);
  const { certificates, manifests } = JSON.parse(verified.stdout);
  assert.deepEqual([certificates.length, manifests.length], [2, 1]);
  assert.notEqual(certificates[0].signer.kid, certificates[1].signer.kid);
  const file = join(data, "chain.json");
  assert.equal((await space("chain", "export", sandboxId, "--out", file, "--data", data)).code, 0);
  const root = readFileSync(join(data, "control/root.pub"), "utf8").trim();
  const offline = await space("chain", "verify", "--file", file, `--root=${root}`);
  assert.match(offline.stdout, /2 certificates and 1 snapshots verify to the root/, offline.stderr);
  const other = "A".repeat(42).concat("E");
  const wrong = await space("chain", "verify", "--file", file, `--root=${other}`);
  assert.deepEqual([wrong.code, /bundle 1 of [0-9]+: key/.test(wrong.stderr)], [1, true], wrong.stderr);
  const { digest } = manifests[0];
  const sealed = await space("chain", "verify", "--snapshot", digest, "--data", data);
  assert.match(sealed.stdout, /1 certificates and 0 snapshots before it verify to the root/, sealed.stderr);
  const objects = join(data, "objects");
  const stranger = await space(
    "chain",
    "verify",
    "--snapshot",
    digest,
    "--objects",
    objects,
    "--keys",
    join(data, "control/key-encryption-keys"),
    "--root",
    other,
  );
  assert.deepEqual([stranger.code, /unknown key/.test(stranger.stderr)], [1, true], stranger.stderr);
  await sandbox.kill();
  const limit = AbortSignal.timeout(60_000);
  for (let gone = ""; !gone.includes("snapshot/missing"); ) {
    limit.throwIfAborted();
    gone = (await space("chain", "verify", "--snapshot", digest, "--data", data)).stderr;
  }
});

test("a worker that was given an old copy of its own disk is refused until it enrols anew", {
  skip,
}, async () => {
  const installation = mkdtempSync(join(tmpdir(), "space-old-disk-"));
  const worker = join(installation, "workers/1");
  const copy = join(installation, "copy");
  const first = await startRig({ data: installation });
  await first.system.stop();
  cpSync(worker, copy, { recursive: true });
  const second = await startRig({ data: installation });
  const [workerId] = second.system.workerIds;
  await second.system.stop();
  rmSync(worker, { recursive: true });
  cpSync(copy, worker, { recursive: true });
  await assert.rejects(startRig({ data: installation }), (error) => {
    assert.ok(isSpaceError(error, "host/unfit"), String(error));
    assert.match(error.details.remedy, /\.\/space workers enrol worker-1/);
    return true;
  });
  const enrolled = await space("workers", "enrol", "worker-1", "--data", installation);
  assert.equal(enrolled.code, 0, enrolled.stderr);
  const third = await startRig({ data: installation });
  assert.notEqual(third.system.workerIds[0], workerId);
  const sandbox = await Sandbox.create({ ...third.client(), timeoutMs: 60_000 });
  await sandbox.kill();
  const offline = [
    await third.system.stop(),
    await space("keys", "rotate", "--json", "--data", installation),
  ][1];
  assert.equal(JSON.parse(offline?.stdout ?? "").keys.at(-1).state, "signing", "also when nothing runs");
  rmSync(installation, { recursive: true, force: true });
});
