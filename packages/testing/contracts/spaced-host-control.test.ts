// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { it } from "node:test";
import { isSpaceError, newActivationId, Secret } from "@space/model";
import { daemon, HostRig } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const mismatch = (problem: string) => (error: unknown) =>
  isSpaceError(error, "endpoint/mismatch") && error.details.problem === problem;

it("serves an adopted guest and nobody else's", async () => {
  const rig = await HostRig.adopted();
  assert.equal((await rig.call("GET", "/health")).status, 204);
  const stranger = await rig.call("GET", "/health", { activation: newActivationId(rig.random) });
  assert.equal(stranger.status, 503);
  assert.deepEqual(await rig.control.list(), [rig.activationId]);
  rig.close();
});

async function refusals(rig: HostRig): Promise<readonly { readonly problem: string }[]> {
  return (await rig.told()).flatMap((event) =>
    event.name === "bridge/endpoint-refused" ? [event.fields] : [],
  );
}

it("R-19: adopts only the recorded process, by pid and start time", async () => {
  const rig = new HostRig();
  const { pid, startTime } = rig.guest.peer;
  await assert.rejects(
    rig.control.adopt(rig.adoption({ guest: { pid: pid + 1, startTime } })),
    mismatch("pid"),
  );
  await assert.rejects(
    rig.control.adopt(rig.adoption({ guest: { pid, startTime: "9" } })),
    mismatch("start time"),
  );
  assert.deepEqual(
    (await refusals(rig)).map(({ problem }) => problem),
    ["pid", "start time"],
  );
  assert.equal((await rig.call("GET", "/health")).status, 503);
  assert.deepEqual(rig.guest.requests, [], "not even a nonce was sent");
  rig.close();
});

it("R-19: adopts only a guest that knows the activation's secret and name", async () => {
  const rig = new HostRig();
  const activationSecret = new Secret<Uint8Array>(new Uint8Array(32));
  await assert.rejects(rig.control.adopt(rig.adoption({ activationSecret })), mismatch("activation secret"));
  const activationId = newActivationId(rig.random);
  await assert.rejects(rig.control.adopt(rig.adoption({ activationId })), mismatch("activation secret"));
  rig.close();
});

it("R-20: checks every new connection again, and never falls back", async () => {
  const rig = await HostRig.adopted();
  await settle();
  rig.guest.peer = { ...rig.guest.peer, startTime: "777" };
  rig.guest.programs.set("/bin/sleep", () => undefined);
  // Spawns take connections away, so that soon a new one is needed: from then on nothing is served.
  const statuses: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    const started = await rig.stream("process.Process/Start", { process: { cmd: "/bin/sleep" } });
    statuses.push(started.status);
  }
  assert.equal(statuses.at(-1), 502);
  assert.deepEqual([...new Set((await refusals(rig)).map(({ problem }) => problem))], ["start time"]);
  rig.close();
});

it("a missing guest is unverifiable, not a mismatch", async () => {
  const rig = new HostRig();
  rig.guest.die();
  await assert.rejects(rig.control.adopt(rig.adoption()), (error) =>
    isSpaceError(error, "endpoint/unverifiable"),
  );
  rig.close();
});

it("adopts again what it already serves, after checking it anew; not under another secret", async () => {
  const rig = await HostRig.adopted();
  await rig.control.adopt(rig.adoption({ variables: { GREETING: "again" } }));
  const envs = (await rig.call("GET", "/envs")).json() as Record<string, string>;
  assert.equal(envs["GREETING"], "again");
  const activationSecret = new Secret<Uint8Array>(new Uint8Array(32));
  await assert.rejects(rig.control.adopt(rig.adoption({ activationSecret })), mismatch("adopted otherwise"));
  const adoption = rig.adoption();
  rig.guest.peer = { ...rig.guest.peer, pid: 1 };
  await assert.rejects(rig.control.adopt(adoption), mismatch("pid"));
  rig.close();
});

it("R-19: keeps the gate shut for anybody but the daemon", async () => {
  const rig = new HostRig();
  const cases = [undefined, { ...daemon, uid: 1000 }];
  for (const peer of cases) {
    const [near, far] = duplexPair();
    near.write("x");
    assert.throws(() => rig.host.serve(far, peer), isSpaceError);
    assert.equal(far.destroyed, true);
    assert.equal(far.readableFlowing, null, "nothing was read");
  }
  assert.deepEqual(
    (await rig.told()).filter(({ name }) => name === "bridge/daemon-refused").map(({ fields }) => fields),
    [
      { problem: "no peer credentials", times: 1 },
      { problem: "uid", times: 1 },
    ],
  );
  rig.close();
});

it("a new daemon replaces the one before, and the sandboxes go on", async () => {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("/bin/sleep", () => undefined);
  await rig.stream("process.Process/Start", { process: { cmd: "/bin/sleep" } });
  const before = rig.link;
  rig.dial();
  await settle();
  assert.equal(before.closed, true);
  await rig.control.adopt(rig.adoption());
  const pid = rig.guest.started[0]?.pid;
  const connected = await rig.stream("process.Process/Connect", { process: { pid } });
  assert.deepEqual(connected.messages(), [{ event: { start: { pid } } }]);
  rig.close();
});

it("says when no daemon has come for the orphan limit, and not before", async () => {
  const rig = await HostRig.adopted();
  await rig.clock.advance(200_000);
  assert.equal(rig.orphaned, 0, "a connected daemon is no orphan's");
  rig.link.destroy(undefined);
  await rig.clock.advance(119_000);
  rig.dial();
  await rig.clock.advance(200_000);
  assert.equal(rig.orphaned, 0);
  rig.link.destroy(undefined);
  await rig.clock.advance(120_000);
  assert.equal(rig.orphaned, 1);
  rig.close();
});

it("release ends streams, processes and connections, and can be repeated", async () => {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("/bin/sleep", () => undefined);
  const started = await rig.stream("process.Process/Start", { process: { cmd: "/bin/sleep" } });
  await rig.control.release(rig.activationId);
  await rig.control.release(rig.activationId);
  await settle();
  assert.notEqual(started.reset, undefined);
  assert.deepEqual(rig.guest.started[0]?.signals, [9]);
  assert.equal(rig.guest.connections, 0);
  assert.equal((await rig.call("GET", "/health")).status, 503);
  assert.deepEqual(await rig.control.list(), []);
  rig.close();
});

it("quiesce waits for short operations, cuts late ones and flushes", async () => {
  const rig = await HostRig.adopted();
  const upload = rig.open("POST", "/files?path=/tmp/a", {
    headers: { "content-type": "application/octet-stream" },
  });
  upload.stream.send(Buffer.from("half"));
  const quiesced = rig.control.quiesce(rig.activationId, 1_000, false);
  await settle();
  upload.stream.end();
  assert.equal(await quiesced, true);
  assert.equal(upload.status, 200);
  assert.equal(rig.guest.requests.at(-1), 39);

  const late = rig.open("POST", "/files?path=/tmp/b", {
    headers: { "content-type": "application/octet-stream" },
  });
  const cut = rig.control.quiesce(rig.activationId, 1_000, false);
  await rig.clock.advance(1_000);
  assert.equal(await cut, false);
  assert.notEqual(late.reset, undefined);
  rig.close();
});

it("quiesce fails, and does not wait, when the guest is gone", async () => {
  const rig = await HostRig.adopted();
  rig.guest.die();
  await assert.rejects(rig.control.quiesce(rig.activationId, 1_000, false), (error) =>
    isSpaceError(error, "endpoint/unverifiable"),
  );
  rig.close();
});

it("rekey moves the guest and its processes to another activation; streams end", async () => {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("/bin/counter", (process) => {
    process.onInput = (chunk) => {
      void process.output("stdout", chunk);
      return true;
    };
  });
  const started = await rig.stream("process.Process/Start", { process: { cmd: "/bin/counter" } });
  const to = newActivationId(rig.random);
  const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
  await rig.control.rekey({ from: rig.activationId, to, activationSecret });
  assert.notEqual(started.reset, undefined);
  assert.equal(rig.guest.activationId, to);
  assert.deepEqual(await rig.control.list(), [to]);
  assert.equal((await rig.call("GET", "/health")).status, 503, "the old name is nobody's");

  const pid = rig.guest.started[0]?.pid;
  const headers = { "content-type": "application/connect+json" };
  const message = JSON.stringify({ process: { pid } });
  const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), Buffer.from(message)]);
  const connected = await rig.call("POST", "/process.Process/Connect", {
    activation: to,
    headers,
    body: envelope,
  });
  assert.deepEqual(rig.guest.started[0]?.signals, [], "nothing was killed");
  await rig.call("POST", "/process.Process/SendInput", {
    activation: to,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ process: { pid }, input: { stdin: Buffer.from("one").toString("base64") } }),
  });
  assert.deepEqual(connected.messages().slice(1), [
    { event: { data: { stdout: Buffer.from("one").toString("base64") } } },
  ]);

  await rig.control.rekey({ from: rig.activationId, to, activationSecret }); // repeated: already done
  rig.close();
});

it("a malformed head costs its own stream only", async () => {
  const rig = await HostRig.adopted();
  const resets: string[] = [];
  for (const head of ["{", "{}", '{"rpc":1}', JSON.stringify({ activation: rig.activationId })]) {
    rig.link.open(
      head,
      { onData: () => undefined, onEnd: () => undefined, onReset: (reason) => resets.push(reason) },
      true,
    );
  }
  await settle();
  assert.ok(resets.length >= 3);
  assert.equal((await rig.call("GET", "/health")).status, 204);
  rig.close();
});
