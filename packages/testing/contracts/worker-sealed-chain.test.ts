// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  importSigningKey,
  KeyRing,
  manifestDigest,
  newSigningKey,
  parseSealedObject,
  type SealedChainObject,
  signCertificate,
  signManifest,
  verifyCertificate,
} from "@space/capability";
import {
  type ActivateRequest,
  type Digest,
  type ExecutionIdentity,
  isSpaceError,
  parseDigest,
  type SealedChainProblem,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { testTenantKey } from "../src/sealed-objects.ts";
import { WorkerRig } from "../src/worker-rig.ts";

type From = NonNullable<ActivateRequest["from"]>;
const absent = parseDigest("f".repeat(64));

const refused = (problem: SealedChainProblem) => (error: unknown) => {
  assert.ok(isSpaceError(error, "snapshot/chain-refused"), String(error));
  assert.equal(error.details.problem, problem, error.details.link);
  return true;
};

const nextOf = (rig: WorkerRig, { sandboxId, generation }: ExecutionIdentity): ExecutionIdentity =>
  rig.identity({ sandboxId, generation: Number(generation) + 1 });

/** A sandbox that was paused three times on one worker, and another worker that has never seen it. */
async function paused(): Promise<{
  rig: WorkerRig;
  other: WorkerRig;
  identity: ExecutionIdentity;
  from: From;
}> {
  const rig = new WorkerRig("sealed");
  await rig.boot();
  let identity = rig.identity();
  await rig.run(identity);
  for (let pauses = 1; pauses < 3; pauses += 1) {
    const from = await rig.pause(identity, false);
    identity = nextOf(rig, identity);
    await rig.run(identity, { from });
  }
  const process = rig.machine.processes.get(identity.activation.id) ?? assert.fail("it runs");
  process.files = "files";
  const from = await rig.pause(identity, false);
  return { rig, other: await elsewhere(rig), identity, from };
}

async function elsewhere(rig: WorkerRig, seed = "elsewhere"): Promise<WorkerRig> {
  const other = new WorkerRig(seed, rig.store);
  other.leasedBy = rig.authority;
  await other.boot({
    worker: { rootPublicKey: rig.authority.rootPublicKey },
    prepare: ({ store }) => store.writeBundle(1, rig.authority.bundle()),
  });
  return other;
}

const resume = (other: WorkerRig, identity: ExecutionIdentity, from: From): Promise<unknown> =>
  other.worker.control.activate(other.request(nextOf(other, identity), { from }));

/** The objects of the chain, the newest first. */
async function objectsOf(
  rig: WorkerRig,
  newest: Digest,
): Promise<readonly { digest: Digest; object: SealedChainObject }[]> {
  const objects: { digest: Digest; object: SealedChainObject }[] = [];
  for (let digest: Digest | null = newest; digest !== null; ) {
    const object: SealedChainObject = parseSealedObject(await rig.objects.get(digest));
    objects.push({ digest, object });
    digest = object.previous;
  }
  return objects;
}

/** The same snapshot over another chain, signed by the execution itself: what its key and the store's owner could do together. */
async function over(rig: WorkerRig, identity: ExecutionIdentity, from: From, chain: Digest): Promise<From> {
  return resigned(rig, identity, { ...from.manifest, chain });
}

async function resigned(
  rig: WorkerRig,
  identity: ExecutionIdentity,
  manifest: SnapshotManifest,
): Promise<From> {
  const key = keysOf.get(identity.activation.id) ?? assert.fail("its key was kept");
  const signed = signManifest(importSigningKey(key), manifest);
  await rig.objects.put(manifestDigest(signed), Buffer.from(signed));
  return rig.sourceOf({ manifest, signed });
}

const keysOf = new Map<string, string>();
/** As {@link paused}, with the private key of the last execution in the hands of the attacker. */
async function pausedWithKey(): ReturnType<typeof paused> {
  const { snapshot } = WorkerRig.prototype;
  try {
    WorkerRig.prototype.snapshot = function (identity) {
      const held = this.daemon.store.readActivation(identity.activation.id);
      keysOf.set(identity.activation.id, held?.privateKey.reveal() ?? "");
      return snapshot.call(this, identity);
    };
    return await paused();
  } finally {
    WorkerRig.prototype.snapshot = snapshot;
  }
}

describe("a restore", () => {
  test("R-5: on a worker that has never seen the sandbox needs the objects and the pinned root alone", async () => {
    const { rig, other, identity, from } = await paused();
    const objects = await objectsOf(rig, from.manifest.chain);
    assert.equal(objects.length, 3);
    await resume(other, identity, from);
    const [process] = other.machine.processes.values();
    assert.equal(process?.files, "files");
  });

  test("R-5: refuses a chain of which an object is missing or damaged, the newest or an older one; then it is whole again", async () => {
    const { rig, other, identity, from } = await paused();
    let landed = 0;
    for (const { digest } of await objectsOf(rig, from.manifest.chain)) {
      const putBack = rig.objects.replace(digest, undefined);
      await assert.rejects(resume(other, identity, from), refused("missing"));
      putBack();
      const repair = rig.objects.alter(digest);
      await assert.rejects(resume(other, identity, from), refused("damaged"));
      repair();
      landed += 1;
    }
    faultLanded("each of its objects was damaged", landed - 2);
    assert.equal(other.machine.processes.size, 0, "nothing was started");
    await resume(other, identity, from);
  });

  test("R-5: refuses a chain that another root's bundles vouch for, or no bundle at all", async () => {
    const { rig, other, identity, from } = await pausedWithKey();
    const [newest, ...older] = await objectsOf(rig, from.manifest.chain);
    assert.ok(newest !== undefined && older.length === 2);
    for (const bundles of [[], [rig.authority.bundle(1, [rig.authority.key], newSigningKey())]]) {
      const chain = await rig.chains.store({ ...newest.object, bundles });
      const forged = await over(rig, identity, from, chain);
      await assert.rejects(resume(other, identity, forged), refused("unknown key"));
    }
    await resume(other, identity, await over(rig, identity, from, newest.digest));
  });

  test("R-5: refuses a chain of another sandbox, also where its own key signed the snapshot", async () => {
    const { rig, other, identity, from } = await pausedWithKey();
    const stranger = rig.identity();
    await rig.run(stranger);
    const { chain } = await rig.chains.seal(stranger.sandboxId);
    await assert.rejects(
      resume(other, identity, await over(rig, identity, from, chain)),
      refused("other sandbox"),
    );
    const theirs = await rig.pause(stranger, false);
    await assert.rejects(resume(other, identity, theirs), (error) => isSpaceError(error), "their snapshot");
    const head = rig.headOf(from.manifest, theirs.digest);
    await assert.rejects(resume(other, identity, { ...theirs, head }), refused("other sandbox"));
    assert.equal(other.machine.processes.size, 0);
  });

  test("R-5: refuses a chain with a link left out, put elsewhere or forged", async () => {
    const { rig, other, identity, from } = await pausedWithKey();
    const [third, second, first] = await objectsOf(rig, from.manifest.chain);
    assert.ok(third !== undefined && second !== undefined && first !== undefined);
    const chains: readonly [SealedChainProblem, Digest][] = [
      ["broken link", await rig.chains.store({ ...third.object, previous: first.digest })],
      ["broken link", await rig.chains.store({ ...third.object, previous: null })],
      ["broken link", await rig.chains.store({ ...third.object, links: third.object.links.slice(1) })],
      ["broken link", await rig.chains.store({ ...first.object, previous: third.digest })],
      ["damaged", await rig.chains.store({ ...third.object, links: third.object.links.toReversed() })],
      ["signature", await rig.chains.store(await forged(rig, third.object))],
      ["missing", absent],
    ];
    for (const [problem, chain] of chains) {
      const altered = await over(rig, identity, from, chain);
      await assert.rejects(resume(other, identity, altered), refused(problem));
    }
    const shorter = await over(rig, identity, from, second.digest);
    await assert.rejects(resume(other, identity, shorter), { code: "snapshot/refused" });
    assert.equal(other.machine.processes.size, 0);
  });

  test("statement 5: refuses an older snapshot, whole as it is, and one after which an execution was certified", async () => {
    const { rig, other, identity, from } = await paused();
    const before = rig.headOf(from.manifest, from.digest);
    const next = nextOf(rig, identity);
    await rig.run(next, { from: { ...from, head: before } });
    const certificate = rig.chains.head(identity.sandboxId) ?? assert.fail("it is certified");
    const head = rig.authority.head({ sandboxId: identity.sandboxId, certificate, manifest: from.digest });
    const later = nextOf(other, next);
    const activate = (source: From): Promise<unknown> =>
      other.worker.control.activate(other.request(later, { from: source }));
    await assert.rejects(activate({ ...from, head }), refused("not the newest"), "its execution died");
    const { chain: since } = await rig.chains.seal(identity.sandboxId);
    const older = from.manifest.chain;
    await assert.rejects(activate({ ...from, head, since: older }), refused("not the newest"));
    await assert.rejects(activate({ ...from, head, since: absent }), refused("missing"));
    await activate({ ...from, head, since });
    faultLanded(
      "a generation died between the snapshot and its restore",
      Number(later.generation - identity.generation) - 1,
    );
  });

  test("R-5: refuses a snapshot of another version, an earlier or a later one, as that", async () => {
    const { rig, other, identity, from } = await paused();
    const signed = Buffer.from(await rig.objects.get(from.digest)).toString();
    const [header, payload = "", signature] = signed.split(".");
    const { chain: _none, ...rest } = JSON.parse(Buffer.from(payload, "base64url").toString());
    for (const version of [1, 2, 4]) {
      const old = `${header}.${Buffer.from(JSON.stringify({ ...rest, version })).toString("base64url")}.${signature}`;
      const digest = manifestDigest(old);
      await rig.objects.put(digest, Buffer.from(old));
      const head = rig.headOf(from.manifest, digest);
      await assert.rejects(resume(other, identity, { ...from, digest, head }), {
        code: "snapshot/version",
        details: { version },
      });
    }
    assert.equal(other.machine.processes.size, 0);
  });

  test("R-5: a store that fails is no verdict, and the restore may be tried again", async () => {
    const { other, identity, from } = await paused();
    const { get } = other.store;
    let failed = 0;
    other.store.get = async (key, limitBytes) => {
      if (key !== other.objects.place(from.manifest.chain)) return get.call(other.store, key, limitBytes);
      failed += 1;
      throw new SpaceError("store/failed", { step: "get" });
    };
    await assert.rejects(resume(other, identity, from), { code: "store/failed" });
    faultLanded("the chain could not be read", failed);
    other.store.get = get;
    await resume(other, identity, from);
  });

  test("R-5: where the snapshot was made, reads one object of the chain, however long it is", async () => {
    const { rig, identity, from } = await paused();
    const objects = await objectsOf(rig, from.manifest.chain);
    const chain = new Set(objects.map(({ digest }) => rig.objects.place(digest)));
    const { get } = rig.store;
    const read: string[] = [];
    rig.store.get = (key, limitBytes) => {
      if (chain.has(key)) read.push(key);
      return get.call(rig.store, key, limitBytes);
    };
    await resume(rig, identity, from);
    assert.deepEqual(read, [rig.objects.place(from.manifest.chain)]);
  });
});

/** The object with its first certificate under a signature that does not fit. */
async function forged(rig: WorkerRig, object: SealedChainObject): Promise<SealedChainObject> {
  const links = object.links.map((link) => {
    if (!("certificate" in link)) return link;
    const ring = KeyRing.fromBundle(rig.authority.bundle(), rig.authority.rootPublicKey);
    const body = verifyCertificate(link.certificate, ring);
    const other = signCertificate(rig.authority.key, { ...body, issuedAtSeconds: 1 });
    return { certificate: `${link.certificate.slice(0, -86)}${other.slice(-86)}` };
  });
  return { ...object, links };
}

describe("a pause", () => {
  test("R-5: signs over no chain with which its snapshot could not be restored; the guest is not disturbed", async () => {
    const { rig, identity, from } = await paused();
    const next = nextOf(rig, identity);
    await rig.run(next, { from });
    const follows = await rig.chains.seal(identity.sandboxId);
    const stranger = rig.identity();
    await rig.run(stranger);
    const theirs = await rig.chains.seal(stranger.sandboxId);
    const { publicKey } = rig.daemon.store.readActivation(next.activation.id) ?? assert.fail("it runs");
    const certificate = rig.authority.certificate({
      identity: nextOf(rig, next),
      publicKey,
      restoredFrom: from.digest,
      previous: rig.chains.head(identity.sandboxId) ?? absent,
    });
    const later = await rig.chains.store({
      sandboxId: identity.sandboxId,
      previous: follows.chain,
      links: [{ certificate }],
    });
    const bad: readonly [SealedChainProblem, typeof follows][] = [
      ["missing", { ...follows, chain: absent }],
      ["not the newest", { ...follows, chain: from.manifest.chain }],
      ["not the newest", { ...follows, previousManifest: null }],
      ["not the newest", { ...follows, chain: later }],
      ["other sandbox", { ...theirs, previousManifest: follows.previousManifest }],
    ];
    for (const [problem, wrong] of bad)
      await assert.rejects(rig.worker.control.snapshot(next, wrong, testTenantKey), refused(problem));
    const process = rig.machine.processes.get(next.activation.id);
    assert.equal(process?.state, "running");
    assert.equal((await rig.ask(next)).status, 200);
    await rig.worker.control.snapshot(next, follows, testTenantKey);
  });
});
