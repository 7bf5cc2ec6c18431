// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The doors of an installation: the real API, gateway and control plane, over a real socket.

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { createE2bApi } from "@space/e2b-api";
import { SpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { WorkerRig } from "../src/worker-rig.ts";

/** The thumbprint of the gateway's certificate. */
const presenter = hash("sha256", "gateway certificate", "base64url");
const nobody = "i00000000000000000000";

interface Doors extends AsyncDisposable {
  readonly control: ControlRig;
  readonly gateway: GatewayRig;
  readonly apiKey: string;
  readonly sandboxId: string;
  readonly accessToken: string;
  /** One request to the API, with these headers and nothing else. */
  api(operation: readonly [method: string, path: string], headers: Record<string, string>): Promise<number>;
  agent(operation: readonly [method: string, path: string], headers: Record<string, string>): Promise<number>;
}

async function openDoors(context: TestContext): Promise<Doors> {
  const { rig: control } = await ControlRig.open(context, { workers: 1 });
  const api = createE2bApi({
    service: control.service,
    domain: "sbx.test",
    envdVersion: "0.6.13",
    clock: control.clock,
    audit: control.audit,
  });
  const gateway = await GatewayRig.start({ api });
  gateway.routes.answer = (request) => control.control.routes.resolve({ ...request, presenter });
  const { text: key } = await control.control.administration.createApiKey(control.caller.tenantId);
  const { sandboxId, accessToken } = await control.create();
  const ask = async (
    [method, path]: readonly [string, string],
    headers: Record<string, string>,
  ): Promise<number> => {
    const body =
      method !== "POST" ? undefined : path === "/sandboxes" ? '{"templateID":"base"}' : '{"timeout":60}';
    const json = { "content-type": "application/json", ...headers };
    const options = body === undefined ? { method, headers: json } : { method, headers: json, body };
    return (await gateway.fetch(path.replace("ID", sandboxId), options)).status;
  };
  return {
    control,
    gateway,
    apiKey: key.reveal(),
    sandboxId,
    accessToken: accessToken.reveal(),
    api: ask,
    agent: (operation, headers) =>
      ask(operation, { "e2b-sandbox-id": sandboxId, "e2b-sandbox-port": "49983", ...headers }),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

const apiOperations = [
  ["GET", "/v2/sandboxes"],
  ["POST", "/sandboxes"],
  ["GET", "/sandboxes/ID"],
  ["POST", "/sandboxes/ID/connect"],
  ["POST", "/sandboxes/ID/pause"],
  ["POST", "/sandboxes/ID/timeout"],
  ["DELETE", "/sandboxes/ID"],
] as const;

const agentOperations = [
  ["GET", "/files?path=/a"],
  ["POST", "/files?path=/a"],
  ["POST", "/process.Process/Start"],
  ["POST", "/process.Process/List"],
  ["POST", "/filesystem.Filesystem/ListDir"],
  ["GET", "/metrics"],
] as const;

/** Counts every call of the store from now on. */
function countCalls(store: object): () => number {
  let calls = 0;
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(store))) {
    const method: unknown = Reflect.get(store, name);
    if (typeof method !== "function" || name === "constructor") continue;
    Reflect.set(store, name, (...args: unknown[]): unknown => {
      calls += 1;
      return Reflect.apply(method, store, args);
    });
  }
  return () => calls;
}

test("incident 25: whoever shows no credential is refused first, and is nobody", async (context) => {
  await using doors = await openDoors(context);
  const { control, gateway } = doors;
  const calls = countCalls(control.sandboxes);
  const dropped = [
    {},
    { "x-api-key": "" },
    { authorization: "Bearer x" },
    { "x-access-token": doors.accessToken },
  ];
  for (const headers of dropped) {
    for (const operation of apiOperations)
      assert.equal(
        await doors.api(operation, headers),
        401,
        `${operation.join(" ")} ${Object.keys(headers).join()}`,
      );
  }
  faultLanded(
    "requests came without the header that says who asks",
    control.audit.of("api-key/refused").length,
  );
  const before = gateway.routes.requests.length;
  for (const headers of [
    {},
    { "x-access-token": "" },
    { authorization: "Basic dXNlcjo=" },
    { "x-api-key": doors.apiKey },
  ]) {
    for (const operation of agentOperations)
      assert.equal(
        await doors.agent(operation, headers),
        401,
        `${operation.join(" ")} ${Object.keys(headers).join()}`,
      );
  }
  assert.equal(gateway.routes.requests.length, before, "nobody was asked where it runs");
  assert.equal(calls(), 0, "no sandbox was looked at");
  assert.deepEqual(gateway.worker.operations, []);
  assert.equal(
    (await control.record((await control.sandboxes.live())[0]?.sandboxId ?? assert.fail())).state,
    "running",
  );
  for (const operation of apiOperations.slice(0, 4))
    assert.notEqual(await doors.api(operation, { "x-api-key": doors.apiKey }), 401);
  for (const operation of agentOperations)
    assert.equal(
      await doors.agent(operation, { "x-access-token": doors.accessToken }),
      200,
      operation.join(" "),
    );
});

test("incident 25: a worker serves nothing for no capability, whoever the gateway is", async () => {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  const statuses: number[] = [];
  for (const capability of ["", ".", "..", "null"]) {
    const answer = await rig.ask(identity, { capability });
    if (answer.status !== undefined) statuses.push(answer.status);
  }
  faultLanded("operations came without a capability", rig.audit.of("admission/denied").length);
  assert.ok(
    statuses.every((status) => status === 403 || status === 400),
    statuses.join(),
  );
  assert.deepEqual(rig.bridge.operations, []);
  assert.equal((await rig.ask(identity)).status, 200);
});

test("incident 26: a store that is down is 503 at every door, and what is not there is 404", async (context) => {
  await using doors = await openDoors(context);
  const { control } = doors;
  const key = { "x-api-key": doors.apiKey };
  const bySandbox = apiOperations.filter(([, path]) => path.includes("ID"));
  const store = control.sandboxes;
  const broken = ["read", "begin", "list"] as const;
  const whole = broken.map((name) => Reflect.get(store, name) as unknown); // cast: put back as it was
  let failures = 0;
  for (const name of broken) {
    Reflect.set(store, name, () => {
      failures += 1;
      return Promise.reject(new SpaceError("store/failed", { step: "read" }));
    });
  }
  for (const operation of apiOperations)
    assert.equal(await doors.api(operation, key), 503, operation.join(" "));
  const stranger = bySandbox.map(([method, path]) => [method, path.replace("ID", nobody)] as const);
  for (const operation of stranger) assert.equal(await doors.api(operation, key), 503, operation.join(" "));
  for (const operation of agentOperations)
    assert.equal(
      await doors.agent(operation, { "x-access-token": doors.accessToken }),
      503,
      operation.join(" "),
    );
  faultLanded("every request asked a store that was down", failures - apiOperations.length - stranger.length);
  for (const [at, name] of broken.entries()) Reflect.set(store, name, whole[at]);
  for (const operation of stranger) assert.equal(await doors.api(operation, key), 404, operation.join(" "));
  assert.equal(await doors.api(["GET", "/sandboxes/ID"], key), 200, "it was there all the time");
  assert.equal(await doors.api(["DELETE", "/sandboxes/ID"], key), 204);
  assert.equal(await doors.api(["GET", "/sandboxes/ID"], key), 404);
});

test("incident 7: what a caller may do is never kept apart from where it goes, so nothing of it can be evicted alone", async () => {
  await using rig = await GatewayRig.start({ limits: { cacheEntries: 2 } });
  const as = (token: string) => ({ headers: { ...rig.routing(), "x-access-token": token } });
  rig.routes.answer = (request, number) => {
    const { credential } = request;
    const isKnown = credential.kind === "access-token" && credential.token.reveal().startsWith("good");
    const isPort = request.wanted.purpose === "service-port";
    return isKnown || isPort
      ? rig.routes.entry(request, number)
      : { kind: "unauthenticated", problem: "wrong" };
  };
  await rig.fetch("/files?path=a", as("good"));
  for (let other = 0; other < 40; other += 1) await rig.fetch("/files?path=a", as(`good ${other}`));
  const [asked, served] = [rig.routes.requests.length, rig.worker.operations.length];
  assert.equal((await rig.fetch("/files?path=a", as("good"))).status, 200);
  faultLanded("the caller's entry had been evicted", rig.routes.requests.length - asked);
  await rig.fetch("/", { headers: rig.routing(3000) }); // its route is here now, for who needs no token
  for (const token of ["guess", "", "goo", "Good"])
    assert.equal((await rig.fetch("/files?path=a", as(token))).status, 401, token);
  assert.equal((await rig.fetch("/process.Process/Start", { method: "POST", ...as("guess") })).status, 401);
  assert.equal(rig.worker.operations.length, served + 2, "none of them got as far as the worker");
});
