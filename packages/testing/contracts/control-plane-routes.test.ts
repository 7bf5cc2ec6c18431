// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, test } from "node:test";
import { admit, CapabilityVerifier, KeyRing } from "@space/capability";
import { fileSignature } from "@space/control-plane";
import {
  type CallerCredential,
  type ConnectedSandbox,
  controlScopes,
  isSpaceError,
  newSandboxId,
  type ResolveAnswer,
  type RouteEntry,
  Secret,
  type WantedAccess,
} from "@space/model";
import { ControlRig } from "../src/control-rig.ts";

const presenter = hash("sha256", "gateway certificate", "base64url");
const none: CallerCredential = { kind: "none" };
const read: WantedAccess = { purpose: "control", scope: "files:read" };
const write: WantedAccess = { purpose: "control", scope: "files:write" };
const health: WantedAccess = { purpose: "control", scope: "metrics" };
const port: WantedAccess = { purpose: "service-port", port: 3000, protocol: "http" };

function ask(
  rig: ControlRig,
  { sandboxId }: Pick<ConnectedSandbox, "sandboxId">,
  credential: CallerCredential,
  wanted: WantedAccess,
): Promise<ResolveAnswer> {
  return rig.control.routes.resolve({ sandboxId, credential, wanted, presenter });
}

function entryOf(answer: ResolveAnswer): RouteEntry {
  assert.equal(answer.kind, "entry");
  return answer.entry;
}

const tokenOf = ({ accessToken }: ConnectedSandbox): CallerCredential => ({
  kind: "access-token",
  token: accessToken,
});

function signatureOf(
  created: ConnectedSandbox,
  more: { operation?: "read" | "write"; path?: string; expiresAtSeconds?: number; signedPath?: string } = {},
): CallerCredential {
  const { operation = "read", path = "hello.txt", expiresAtSeconds } = more;
  const of = { path: more.signedPath ?? path, operation, username: "user", expiresAtSeconds };
  return {
    kind: "file-signature",
    operation,
    path,
    username: "user",
    expiresAtSeconds,
    signature: new Secret(fileSignature(of, created.accessToken)),
  };
}

describe("finding a route", () => {
  test("with the access token: the running execution, and a capability that its worker admits, for this presenter only", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    const entry = entryOf(await ask(rig, created, tokenOf(created), read));
    const { identity } = (await rig.record(created.sandboxId)).execution;
    assert.deepEqual(entry.route.identity, identity);
    assert.deepEqual(entry.route.endpoint, { workerId: workers[0].workerId, host: "127.0.0.1", port: 4000 });
    assert.deepEqual(entry.access, { purpose: "control", scopes: [...controlScopes] });
    assert.equal(entry.authorisedForMs, 60_000);
    assert.equal(entry.capabilityExpiresAtMs - entry.capabilityIssuedAtMs, 120_000);
    const verifier = new CapabilityVerifier({
      keys: KeyRing.fromBundle(await rig.bundle(), rig.root.publicKey),
    });
    const verdictFor = (shownBy: string): unknown =>
      admit({
        verification: verifier.verify(entry.capability),
        target: created.sandboxId,
        record: { identity, state: "installed" } as never,
        presenter: shownBy,
        needed: { purpose: "control", scope: "files:read" },
        nowMs: rig.clock.wallMs(),
      }).kind;
    assert.equal(verdictFor(presenter), "match");
    assert.equal(verdictFor(hash("sha256", "another", "base64url")), "deny");
  });

  test("counts how often it was asked", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    assert.equal(rig.control.routes.asked, 0);
    await ask(rig, created, tokenOf(created), read);
    await ask(rig, created, none, read);
    assert.equal(rig.control.routes.asked, 2);
  });

  test("a wrong token, another sandbox's token, or none is refused; only health and public ports need none", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    const other = await rig.create();
    const wrong = { kind: "unauthenticated", problem: "wrong" };
    for (const token of [other.accessToken.reveal(), `${created.accessToken.reveal()}0`, ""]) {
      const shown: CallerCredential = { kind: "access-token", token: new Secret(token) };
      assert.deepEqual(await ask(rig, created, shown, read), wrong);
    }
    assert.deepEqual(await ask(rig, created, none, read), { kind: "unauthenticated", problem: "missing" });
    assert.deepEqual(await ask(rig, created, none, write), { kind: "unauthenticated", problem: "missing" });
    assert.deepEqual(entryOf(await ask(rig, created, none, health)).access, {
      purpose: "control",
      scopes: ["metrics"],
    });
    assert.deepEqual(entryOf(await ask(rig, created, none, port)).access, port);
  });

  test("R-8: the agent is not reached as a port", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    const agent: WantedAccess = { purpose: "service-port", port: 49_983, protocol: "http" };
    for (const credential of [none, tokenOf(created)]) {
      assert.equal((await ask(rig, created, credential, agent)).kind, "unauthenticated");
    }
  });

  test("a file's signature gives exactly its operation on exactly its path, until it expires", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    const scopes = async (credential: CallerCredential, wanted: WantedAccess): Promise<unknown> => {
      const answer = await ask(rig, created, credential, wanted);
      if (answer.kind === "unauthenticated") return answer.problem;
      const { access } = entryOf(answer);
      return access.purpose === "control" ? access.scopes : access;
    };
    assert.deepEqual(await scopes(signatureOf(created), read), ["files:read"]);
    assert.deepEqual(await scopes(signatureOf(created, { operation: "write" }), write), ["files:write"]);
    assert.equal(await scopes(signatureOf(created), write), "wrong");
    assert.equal(await scopes(signatureOf(created, { operation: "write" }), read), "wrong");
    assert.equal(await scopes(signatureOf(created), { purpose: "control", scope: "process:run" }), "wrong");
    assert.equal(await scopes(signatureOf(created, { signedPath: "other.txt" }), read), "wrong");
    const nowSeconds = Math.floor(rig.clock.wallMs() / 1000);
    const soon = signatureOf(created, { expiresAtSeconds: nowSeconds + 10 });
    const entry = entryOf(await ask(rig, created, soon, read));
    const leftMs = (nowSeconds + 10) * 1000 - rig.clock.wallMs();
    assert.equal(entry.authorisedForMs, leftMs, "R-25: no longer than the signature");
    await rig.clock.advance(10_000);
    assert.equal(await scopes(soon, read), "signature-expired");
    const other = await rig.create();
    assert.equal(await scopes(signatureOf(other), read), "wrong");
  });

  test("the published vector of the signature", () => {
    const of = {
      path: "hello.txt",
      operation: "read",
      username: "user",
      expiresAtSeconds: undefined,
    } as const;
    const token = new Secret("0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0");
    assert.equal(fileSignature(of, token), "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
  });

  test("what does not run is not running for who may know, and what is dead or unknown is not there", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    const token = tokenOf(created);
    await rig.service.pause(rig.caller, created.sandboxId, true);
    assert.deepEqual(await ask(rig, created, token, read), { kind: "not-running" });
    assert.deepEqual(await ask(rig, created, none, health), { kind: "not-running" });
    assert.equal((await ask(rig, created, none, read)).kind, "unauthenticated");
    await rig.connect(created.sandboxId);
    const entry = entryOf(await ask(rig, created, token, read));
    assert.equal(entry.route.identity.generation, 2n);
    await rig.service.kill(rig.caller, created.sandboxId);
    assert.deepEqual(await ask(rig, created, token, read), { kind: "not-found" });
    const unknown = { sandboxId: newSandboxId(rig.random) };
    assert.deepEqual(await ask(rig, unknown, token, read), { kind: "not-found" });
  });

  test("a worker that is away is still located where it was; one never seen cannot be", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const created = await rig.create();
    rig.detach(workers[0]);
    assert.equal(entryOf(await ask(rig, created, tokenOf(created), read)).route.endpoint.port, 4000);
    rig.crash();
    await rig.start();
    await assert.rejects(ask(rig, created, tokenOf(created), read), (error) =>
      isSpaceError(error, "worker/unreachable"),
    );
  });
});
