// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// at the gateway: what is not presented any more, and that no caller notices.

import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { ResolveAnswer } from "@space/model";
import type { FakeOperation } from "../src/fake-worker-link.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const kidOf = (letter: string): string => letter.repeat(43);

function signedBy(letter: string, number: number): string {
  const header = `{"alg":"EdDSA","typ":"space-cap+jwt","kid":"${kidOf(letter)}"}`;
  return `${Buffer.from(header).toString("base64url")}.${number}.c2ln`;
}

const signerOf = ({ head }: FakeOperation): string =>
  JSON.parse(Buffer.from(head.capability.split(".")[0] ?? "", "base64url").toString()).kid[0];

/** A control plane that signs with `letter`, and a worker that trusts `trusted`. */
function serve(rig: GatewayRig): { letter: string; trusted: string } {
  const plane = { letter: "a", trusted: "ab" };
  rig.routes.answer = (request, number) => {
    const answer = rig.routes.entry(request, number);
    if (answer.kind !== "entry") return answer;
    return { ...answer, entry: { ...answer.entry, capability: signedBy(plane.letter, number) } };
  };
  rig.worker.serve = (operation) => {
    if (plane.trusted.includes(signerOf(operation))) operation.admit(200, [], signerOf(operation));
    else operation.deny();
  };
  return plane;
}

test("R-10: entries of a revoked key are dropped before workers hear of it, and no caller is refused", async () => {
  await using rig = await GatewayRig.start();
  const plane = serve(rig);
  await rig.gateway.replaceKeys(`1: ${kidOf("a")}`);
  assert.equal((await rig.fetch("/files?path=x")).body, "a");
  await rig.gateway.replaceKeys(`2: ${kidOf("a")} ${kidOf("b")}`);
  assert.equal((await rig.fetch("/files?path=x")).body, "a", "both count");
  plane.letter = "b";
  await rig.gateway.replaceKeys(`3: ${kidOf("b")}`);
  plane.trusted = "b"; // the workers come after the gateway
  const answer = await rig.fetch("/files?path=x");
  assert.deepEqual([answer.status, answer.body, rig.routes.requests.length], [200, "b", 2]);
});

test("R-10: a gateway says that it has the bundle only when workers have received all that it presented before", async () => {
  await using rig = await GatewayRig.start();
  serve(rig);
  await rig.gateway.replaceKeys(`1: ${kidOf("a")} ${kidOf("b")}`);
  const dial = rig.dial;
  const links: Duplex[] = [];
  rig.dial = async (endpoint) => {
    const link = await dial(endpoint);
    links.push(link);
    return link;
  };
  await rig.fetch("/files?path=x");
  const [link] = links;
  link?.pause(); // what the worker says is on its way
  let isTaken = false;
  const taken = rig.gateway.replaceKeys(`2: ${kidOf("b")}`).then(() => {
    isTaken = true;
  });
  await settle();
  assert.equal(isTaken, false);
  link?.resume();
  await taken;
  link?.pause();
  const late = rig.gateway.replaceKeys(`3: ${kidOf("c")}`);
  await rig.clock.advance(5_000); // a worker that says nothing is not waited for longer
  await late;
});

test("R-10: a request that waited for a connection while its key was revoked is presented with the new one", async () => {
  await using rig = await GatewayRig.start();
  const plane = serve(rig);
  await rig.gateway.replaceKeys(`1: ${kidOf("a")}`);
  const { promise, resolve } = Promise.withResolvers<void>();
  const dial = rig.dial;
  rig.dial = async (endpoint) => {
    await promise;
    return dial(endpoint);
  };
  const fetched = rig.fetch("/files?path=x");
  await rig.routes.asked(1);
  await rig.settle();
  plane.letter = "b";
  await rig.gateway.replaceKeys(`2: ${kidOf("b")}`);
  plane.trusted = "b";
  resolve();
  assert.deepEqual([(await fetched).body, rig.routes.requests.length], ["b", 2]);
});

test("R-10: a caller who is denied for a key that ended unheard by his gateway may try again, and is served", async () => {
  await using rig = await GatewayRig.start();
  const plane = serve(rig);
  await rig.gateway.replaceKeys(`1: ${kidOf("a")} ${kidOf("b")}`);
  assert.equal((await rig.fetch("/files?path=x")).body, "a");
  plane.letter = "b";
  plane.trusted = "b"; // the gateway was away when this was told
  const denied = await rig.fetch("/files?path=x");
  assert.deepEqual([denied.status, denied.headers["retry-after"]], [503, "1"]);
  assert.equal(rig.worker.operations.length, 2, "what was denied is not presented again");
  assert.equal((await rig.fetch("/files?path=x")).body, "b");
});

for (const [what, answer, status] of [
  ["cannot be checked", (): Promise<ResolveAnswer> => Promise.reject(new Error("down")), 503],
  ["is refused", (): ResolveAnswer => ({ kind: "unauthenticated", problem: "wrong" }), 401],
  ["has nothing there that runs", (): ResolveAnswer => ({ kind: "not-found" }), 502],
] as const)
  test(`R-14: a denied caller who ${what} now hears that`, async () => {
    await using rig = await GatewayRig.start();
    const plane = serve(rig);
    await rig.fetch("/files?path=x");
    plane.trusted = "";
    rig.routes.answer = answer;
    assert.equal((await rig.fetch("/files?path=x")).status, status);
    assert.equal(rig.worker.operations.length, 2);
  });

test("R-10: a control plane that still signs with a revoked key costs a retryable refusal, not a loop", async () => {
  await using rig = await GatewayRig.start();
  serve(rig);
  await rig.gateway.replaceKeys(`1: ${kidOf("b")}`);
  const answer = await rig.fetch("/files?path=x");
  assert.equal(answer.status, 503);
  assert.notEqual(answer.headers["retry-after"], undefined);
  assert.equal(rig.routes.requests.length, 2);
  assert.equal(rig.worker.operations.length, 0, "nothing of it was presented");
});

test("R-10: an older bundle changes nothing, and the audit log has the versions that counted", async () => {
  await using rig = await GatewayRig.start();
  serve(rig);
  await rig.gateway.replaceKeys(`2: ${kidOf("a")}`);
  await rig.gateway.replaceKeys(`1: ${kidOf("b")}`);
  assert.equal((await rig.fetch("/files?path=x")).body, "a");
  const versions = rig.audited.filter(({ name }) => name === "keys/replaced").map(({ fields }) => fields);
  assert.deepEqual(versions, [{ version: 2 }]);
});

test("R-7: with a new certificate nothing of the old one is presented, and no caller is refused", async () => {
  await using rig = await GatewayRig.start();
  await rig.fetch("/files?path=x");
  const slow = rig.fetch("/files?path=slow");
  rig.worker.serve = (operation) => operation.admit(200, [], "served");
  await rig.settle();
  rig.gateway.useCertificate("another");
  const answer = await rig.fetch("/files?path=x");
  assert.equal(answer.status, 200);
  assert.deepEqual(
    rig.routes.requests.map(({ presenter }) => presenter),
    ["thumbprint", "another"],
  );
  assert.equal(rig.dialled.length, 2, "dialled anew with it");
  assert.equal((await slow).status, 200, "what was under way goes on");
});
