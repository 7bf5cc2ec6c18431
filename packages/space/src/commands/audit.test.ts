// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { AuditLog, listSegments, meshCheckpointSigner, verifyLog } from "@space/audit-log";
import {
  importPublicKey,
  newSigningKey,
  publicKeyText,
  type SigningKey,
  signAuditCheckpoint,
  signKeyBundle,
} from "@space/capability";
import { type CheckpointSigner, parseWorkerId } from "@space/model";
import { createAuthority, issuePeer, type TlsIdentity } from "@space/mtls";
import { auditDirectory, auditTrust, controlPlaneProcess } from "../data/audit-directories.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { audit } from "./audit.ts";

const nowMs = Date.now();
const root = newSigningKey();
const workerId = parseWorkerId("wrk_aaaaaaaaaaaaaaaa");
const mesh = createAuthority({ commonName: "mesh", nowMs });

let data = "";
function signing(key: SigningKey): CheckpointSigner {
  const keys = [{ kid: key.kid, publicKey: publicKeyText(key.publicKey) }];
  const proof = signKeyBundle(root, { version: 1, issuedAtSeconds: 1_800_000_000, keys });
  return (checkpoint) => ({
    token: signAuditCheckpoint(key, checkpoint),
    witness: { kind: "bundle", proof },
  });
}

function certified({ certificate, key }: TlsIdentity): CheckpointSigner {
  return meshCheckpointSigner({ certificate, key: key.reveal() });
}

async function write(folder: string, process: string, signer: CheckpointSigner): Promise<void> {
  const directory = auditDirectory(folder, process);
  const log = AuditLog.open({ directory, process }, { clock: systemClock, random: systemRandom });
  log.signWith(signer);
  for (let version = 1; version <= 5; version += 1) log.record("keys/replaced", { version });
  log.record("api-key/created", { keyId: "key_private", tenantId: "ten_x" as never });
  log.record("caller/refused", { sandboxId: "i\u001b[31mred" as never, problem: "wrong" });
  await log.close();
}

async function run(
  ...args: readonly string[]
): Promise<{ readonly status: number; readonly stdout: string }> {
  let stdout = "";
  const status = await audit([...args, "--data", data], (text) => {
    stdout += text;
  });
  return { status, stdout };
}

const problemsOfWorker = (): readonly string[] =>
  verifyLog({
    directory: auditDirectory(join(data, "workers", "1"), workerId),
    process: workerId,
    trust: auditTrust(data, undefined),
  }).problems.map(({ detail }) => detail);

// In a group: hooks outside of one are those of every test of the process.
describe("./space audit", () => {
  beforeEach(async () => {
    data = mkdtempSync(join(tmpdir(), "space-audit-"));
    for (const folder of ["control", "tls"]) mkdirSync(join(data, folder));
    writeFileSync(join(data, "control", "root.pub"), publicKeyText(root.publicKey));
    writeFileSync(join(data, "tls", "mesh-authority.crt"), mesh.certificate);
    await write(data, controlPlaneProcess, signing(newSigningKey()));
    await write(
      join(data, "workers", "1"),
      workerId,
      certified(issuePeer(mesh, { commonName: workerId, nowMs })),
    );
  });
  afterEach(() => rmSync(data, { recursive: true, force: true }));

  it("verifies the control plane's log by the root key, and a worker's by its certificate on the mesh", async () => {
    const { status, stdout } = await run("verify");
    assert.equal(status, 0, stdout);
    assert.match(stdout, /^control-plane: intact\n.*\nwrk_aaaaaaaaaaaaaaaa: intact\n/);
  });

  it("exits 1 and says which record was altered", async () => {
    const path = listSegments(auditDirectory(data, controlPlaneProcess))[0]?.path ?? "";
    const lines = readFileSync(path, "utf8").split("\n");
    const index = lines.findIndex((line) => line.includes('{"version":3}'));
    writeFileSync(
      path,
      lines.with(index, (lines[index] ?? "").replace('"version":3', '"version":4')).join("\n"),
    );
    const { status, stdout } = await run("verify", "--json");
    assert.equal(status, 1);
    const said = JSON.parse(stdout) as {
      intact: boolean;
      logs: { problems: { kind: string; sequence: number }[] }[];
    };
    assert.equal(said.intact, false);
    assert.deepEqual(
      said.logs.map(({ problems }) => problems.map(({ kind, sequence }) => `${kind} ${sequence}`)),
      [[`altered ${index + 1}`], []],
    );
  });

  it("misses what a checkpoint that was kept elsewhere covers", async () => {
    const directory = auditDirectory(data, controlPlaneProcess);
    const kept = join(data, "kept");
    writeFileSync(kept, readFileSync(join(directory, "last-checkpoint")));
    assert.equal((await run("verify", "--checkpoint", kept)).status, 0);
    rmSync(directory, { recursive: true });
    await write(data, controlPlaneProcess, signing(newSigningKey()));
    assert.equal((await run("verify")).status, 0, "a whole other log is intact by itself");
    const { status, stdout } = await run("verify", "--checkpoint", kept);
    assert.equal(status, 1);
    assert.match(stdout, /the checkpoint that was kept is not this log's/);
  });

  it("misses a log as a whole, and the newest of several checkpoints, by what was kept", async () => {
    const kept = join(data, "kept");
    const own = join(data, "workers", "1");
    const tokens = [auditDirectory(data, controlPlaneProcess), auditDirectory(own, workerId)].map(
      (directory) => readFileSync(join(directory, "last-checkpoint"), "utf8"),
    );
    await write(data, controlPlaneProcess, signing(newSigningKey()));
    const newest = readFileSync(join(auditDirectory(data, controlPlaneProcess), "last-checkpoint"), "utf8");
    writeFileSync(kept, [...tokens, newest].join(""));
    assert.equal((await run("verify", "--checkpoint", kept)).status, 0);
    rmSync(join(own, "audit"), { recursive: true });
    const gone = await run("verify", "--checkpoint", kept);
    assert.equal(gone.status, 1);
    assert.match(gone.stdout, /^"wrk_aaaaaaaaaaaaaaaa": MISSING$/m);
    writeFileSync(kept, "no checkpoint");
    await assert.rejects(run("verify", "--checkpoint", kept), /holds something else/);
  });

  it("takes a root key from elsewhere rather than the one beside the log", async () => {
    const other = publicKeyText(newSigningKey().publicKey);
    assert.equal((await run("verify", `--root-key=${publicKeyText(root.publicKey)}`)).status, 0);
    const { status, stdout } = await run("verify", `--root-key=${other}`);
    assert.equal(status, 1);
    assert.match(stdout, /a bundle that the root has not signed/);
    importPublicKey(other);
  });

  it("refuses a worker's log under the certificate of another worker, of another authority, or the control plane's keys", async () => {
    const folder = join(data, "workers", "1");
    const forged: readonly (readonly [CheckpointSigner, RegExp])[] = [
      [certified(issuePeer(mesh, { commonName: "wrk_bbbbbbbbbbbbbbbb", nowMs })), /another component/],
      [
        certified(issuePeer(createAuthority({ commonName: "mesh", nowMs }), { commonName: workerId, nowMs })),
        /another authority/,
      ],
      [signing(newSigningKey()), /vouches for the control plane only/],
    ];
    for (const [signer, problem] of forged) {
      rmSync(auditDirectory(folder, workerId), { recursive: true });
      await write(folder, workerId, signer);
      assert.match(problemsOfWorker().join("; "), problem);
    }
  });

  it("shows the newest records in order, without what is sensitive, and quotes what an outsider chose", async () => {
    const { status, stdout } = await run("tail", "-n", "4");
    assert.equal(status, 0);
    assert.equal(stdout.trim().split("\n").length, 4);
    const whole = (await run("tail", "-n", "100")).stdout;
    assert.match(whole, /control-plane #\d+ api-key\/created keyId=\[sensitive\] tenantId=ten_x/);
    assert.match(whole, /keys\/replaced version=5/);
    const open = (await run("tail", "-n", "100", "--sensitive")).stdout;
    assert.match(open, /keyId=key_private/);
    assert.match(open, /sandboxId="i\\u001b\[31mred"/);
    assert.equal((await run("tail", "-n", "0")).stdout, "");
  });

  it("shows no field that has no class, whoever wrote it, also when sensitive ones are asked for", async () => {
    const path = listSegments(auditDirectory(data, controlPlaneProcess))[0]?.path ?? "";
    const previous = "0".repeat(64);
    const forged = [
      ["keys/replaced", { version: 77, token: "spc_very-secret" }],
      ["no/event", { version: "spc_very-secret" }],
      ["toString", { length: "spc_very-secret" }],
    ] as const;
    for (const [event, fields] of forged)
      appendFileSync(path, `${JSON.stringify({ sequence: 999, previous, atMs: nowMs, event, fields })}\n`);
    for (const more of [["--sensitive"], ["--json"], ["--sensitive", "--json"], []]) {
      const { stdout } = await run("tail", "-n", "100", ...more);
      assert.match(stdout, /77/);
      assert.equal(stdout.includes("spc_very-secret"), false);
    }
  });

  it("says what it can do", async () => {
    await assert.rejects(run("erase"), /audit verify, or \.\/space audit tail/);
    await assert.rejects(run("tail", "-n", "x"), /-n takes/);
    rmSync(data, { recursive: true });
    await assert.rejects(run("tail"), /no audit log/);
  });
});
