// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// R-22 between two bridges: a guest is saved with its memory under one and restored under the other, with what the first
// one knew. Each byte passes once and in order, and what ran is known to have run.

import assert from "node:assert/strict";
import { it } from "node:test";
import { type ActivationId, carriedPieceBytes, isSpaceError, newActivationId, Secret } from "@space/model";
import { ContinuingCaller, flat } from "../src/continuing-caller.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { enveloped, HostRig, type RigAnswer } from "../src/host-rig.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { settle } from "../src/virtual-clock.ts";

const start = "process.Process/Start";
const input = "process.Process/SendInput";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A sandbox whose guest goes from bridge to bridge. */
class Travel {
  rig: HostRig;
  activation: ActivationId;
  readonly #random = new SeededRandom("travel");
  readonly #rigs: HostRig[] = [];

  private constructor(rig: HostRig) {
    this.rig = rig;
    this.activation = rig.activationId;
    this.#rigs.push(rig);
  }

  static async begin(): Promise<Travel> {
    const rig = await HostRig.adopted();
    rig.guest.programs.set("run", () => undefined);
    return new Travel(rig);
  }

  /** What the bridge knows, as the worker's daemon gets it. */
  async carried(): Promise<Buffer> {
    const { control } = this.rig;
    await control.quiesce(this.activation, 1000, true);
    const pieces: Uint8Array[] = [];
    for (let offset = 0; ; ) {
      const { bytes, totalBytes } = await control.carried(this.activation, offset);
      pieces.push(bytes);
      offset += bytes.length;
      if (offset === totalBytes) return Buffer.concat(pieces);
    }
  }

  /** The guest is restored under another bridge, which is told what is carried. */
  async go(
    carried: Buffer | undefined,
    changes: { readonly sandboxId?: HostRig["sandboxId"] } = {},
  ): Promise<void> {
    const { guest } = this.rig;
    const next = new HostRig();
    const to = newActivationId(this.#random);
    const secret = this.#random.bytes(32);
    guest.restore(to, secret);
    next.neighbours.set("/run/guest.sock", guest);
    Object.assign(next, { guest });
    const totalBytes = carried?.length ?? 0;
    for (let offset = 0; carried !== undefined && offset < totalBytes; offset += carriedPieceBytes) {
      const bytes = carried.subarray(offset, offset + carriedPieceBytes);
      await next.control.carry(to, { offset, totalBytes, bytes });
    }
    const { pid, startTime } = guest.peer;
    const identity = { activationId: to, activationSecret: new Secret(secret), guest: { pid, startTime } };
    this.#rigs.push(next);
    await next.control.adopt(next.adoption({ ...identity, isFirst: false, ...changes }));
    await settle();
    [this.rig, this.activation] = [next, to];
  }

  async move(): Promise<void> {
    await this.go(await this.carried());
  }

  /** A unary call at the bridge that has the guest now. */
  call(method: string, message: unknown, headers: Readonly<Record<string, string>> = {}): Promise<RigAnswer> {
    return this.rig.call("POST", `/${method}`, {
      activation: this.activation,
      body: JSON.stringify(message),
      headers: { "content-type": "application/json", ...headers },
    });
  }

  async stream(
    method: string,
    message: unknown,
    headers: Readonly<Record<string, string>>,
  ): Promise<RigAnswer> {
    const answer = this.rig.open("POST", `/${method}`, {
      activation: this.activation,
      body: enveloped(JSON.stringify(message)),
      headers: { "content-type": "application/connect+json", ...headers },
    });
    await settle();
    return answer;
  }

  get process() {
    return this.rig.guest.started.at(-1) ?? assert.fail("it runs");
  }

  close(): void {
    for (const rig of this.#rigs) rig.close();
  }
}

/** The same call, presented to the bridge that has the guest now. */
async function goOn(caller: ContinuingCaller, { rig, activation }: Travel): Promise<RigAnswer> {
  caller.current.stream.reset("epoch-ended");
  caller.take();
  caller.current = rig.open("POST", "/process.Process/Connect", {
    activation,
    body: "",
    headers: {
      "content-type": "application/connect+json",
      ...flat({ key: caller.key, answerOffset: caller.body.length }),
    },
  });
  await settle();
  return caller.current;
}

function outputOf(messages: readonly unknown[]): string {
  return (messages as { event?: { data?: Record<string, string> } }[])
    .flatMap(({ event }) => Object.values(event?.data ?? {}))
    .map((text) => Buffer.from(text, "base64").toString("latin1"))
    .join("");
}

const run = (travel: Travel): Promise<ContinuingCaller> =>
  ContinuingCaller.open(travel.rig, start, { process: { cmd: "run" } });

it("R-22: each byte once and in order, whatever was received before the guest went from bridge to bridge", async () => {
  const travel = await Travel.begin();
  const random = new SeededRandom("moves");
  const below = (limit: number): number => Buffer.from(random.bytes(4)).readUInt32LE() % limit;
  const caller = await run(travel);
  let expected = "";
  let repeated = 0;
  const say = (round: number): void => {
    const text = `${round}:${"x".repeat(below(3000))}\n`;
    expected += text;
    void travel.process.output(below(2) === 0 ? "stdout" : "stderr", text);
  };
  for (let round = 0; round < 40; round += 1) {
    say(round);
    if (below(2) === 0) await settle(below(4));
    const received = caller.current.body.length;
    const kept = below(received + 1); // what came after the cut was decided on counts as never received
    caller.current.chunks = [caller.current.body.subarray(0, kept)];
    repeated += received - kept;
    caller.take();
    caller.current.stream.reset("epoch-ended"); // before the guest is let go of
    const carried = await travel.carried();
    say(round); // while nobody has the guest
    await travel.go(carried);
    say(round); // before the caller is back
    assert.equal((await goOn(caller, travel)).status, 200);
  }
  travel.process.exit(0);
  await settle();
  const messages = caller.messages();
  assert.equal(outputOf(messages), expected);
  assert.deepEqual(messages.slice(-2), [
    { event: { end: { exited: true, status: "exit status 0" } } },
    { end: {} },
  ]);
  faultLanded("bytes had to be sent again, by a bridge that never sent them", repeated);
  travel.close();
});

it("R-22: an answer that had ended, and one whose process ended meanwhile, are told to their end", async () => {
  const travel = await Travel.begin();
  const ended = await run(travel);
  ended.current.chunks = [];
  travel.process.exit(3);
  await settle();
  ended.current.chunks = []; // its end was never received
  const running = await run(travel);
  const carried = await travel.carried();
  travel.process.exit(4);
  await travel.go(carried);
  for (const [caller, status] of [
    [ended, "exit status 3"],
    [running, "exit status 4"],
  ] as const) {
    await goOn(caller, travel);
    const said = JSON.stringify(caller.messages());
    assert.ok(said.includes(status), said);
    assert.ok(caller.current.ended);
  }
  travel.close();
});

it("R-22: an input is written once, wherever it was when the guest was let go of", async () => {
  const travel = await Travel.begin();
  travel.rig.guest.programs.set("slow", (process) => {
    process.onInput = () => false; // takes nothing
  });
  await travel.stream(start, { process: { cmd: "slow" }, stdin: true }, {});
  const { pid } = travel.process;
  const bytes = 200 * 1024;
  const names = ["a", "b", "c", "d"].map((letter) => letter.repeat(30));
  const message = (key: string) => ({
    process: { pid },
    input: { stdin: base64((key[0] ?? "").repeat(bytes)) },
  });
  // The first fits the window, the second is in the middle of it, the others wait for their turn.
  for (const key of names) void travel.call(input, message(key), flat({ key }));
  await settle();
  await travel.rig.clock.advance(0);
  const carrying = travel.carried();
  await travel.rig.clock.advance(2000); // inputs are short operations: they are waited for, and then cut
  await travel.go(await carrying);
  travel.process.takeInput(0);
  travel.process.onInput = () => true;
  for (const key of names) {
    const answer = await travel.call(input, message(key), flat({ key, answerOffset: 0 }));
    assert.equal(answer.status, 200, `${key[0]}: ${answer.text}`);
  }
  const all = Buffer.concat(travel.process.inputs).toString();
  assert.equal(all.length, names.length * bytes);
  assert.equal(all, names.map((key) => (key[0] ?? "").repeat(bytes)).join(""));
  travel.close();
});

it("R-28: what ran is known to have run, and is never run again", async () => {
  const travel = await Travel.begin();
  const key = { "idempotency-key": "once" };
  await travel.stream(start, { process: { cmd: "run" } }, key);
  const { pid } = travel.process;
  await travel.move();
  const outcome = async (name: string): Promise<unknown> =>
    (
      await travel.rig.call("GET", "/process/outcome", {
        activation: travel.activation,
        headers: { "idempotency-key": name },
      })
    ).json();
  assert.deepEqual(await outcome("once"), { outcome: "ran", pid });
  assert.deepEqual(
    await outcome("never"),
    { outcome: "did-not-run" },
    "it knows everything from the beginning",
  );
  await travel.stream(start, { process: { cmd: "run" } }, key);
  assert.equal(travel.rig.guest.started.length, 1);
  travel.close();
});

it("a process is killed at the time limit of its start, also when that comes elsewhere or on the way", async () => {
  const travel = await Travel.begin();
  await travel.stream(start, { process: { cmd: "run" } }, { "connect-timeout-ms": "60000" });
  await travel.rig.clock.advance(40_000);
  await travel.move();
  await travel.rig.clock.advance(19_000);
  assert.deepEqual(travel.process.signals, []);
  await travel.rig.clock.advance(2_000);
  await settle();
  assert.deepEqual(travel.process.signals, [9]);
  travel.close();
});

it("R-22: a folder is watched again, for the same caller", async () => {
  const travel = await Travel.begin();
  travel.rig.guest.files.mkdir("/home/user/seen", { uid: 1000, gid: 1000 }, true);
  const caller = await ContinuingCaller.open(travel.rig, "filesystem.Filesystem/WatchDir", {
    path: "/home/user/seen",
  });
  await travel.move();
  assert.deepEqual(
    travel.rig.guest.watches.map(({ open }) => open),
    [false, true],
  );
  travel.rig.guest.watches[1]?.tell(1, "made-on-the-way");
  caller.current.stream.reset("epoch-ended");
  caller.take();
  caller.current = travel.rig.open("POST", "/filesystem.Filesystem/WatchDir", {
    activation: travel.activation,
    body: "",
    headers: {
      "content-type": "application/connect+json",
      ...flat({ key: caller.key, answerOffset: caller.body.length }),
    },
  });
  await settle();
  assert.equal(caller.current.status, 200);
  travel.rig.guest.watches[1]?.tell(1, "made-after");
  await settle();
  const names = JSON.stringify(caller.messages()).match(/made-[a-z-]+/g);
  assert.deepEqual(names, ["made-on-the-way", "made-after"]);
  travel.close();
});

it("statement 1: another sandbox that was made of the memory has the processes, and none of the streams, inputs or starts", async () => {
  const travel = await Travel.begin();
  const caller = await run(travel);
  await travel.stream(start, { process: { cmd: "run" } }, { "idempotency-key": "parents" });
  const other = (await HostRig.adopted()).sandboxId.replaceAll("s", "t") as HostRig["sandboxId"]; // cast: of an id's form
  await travel.go(await travel.carried(), { sandboxId: other });
  const listed = (await travel.call("process.Process/List", {})).json() as { processes: unknown[] };
  assert.equal(listed.processes.length, 2);
  const answer = await goOn(caller, travel);
  assert.deepEqual([answer.status, answer.streamLost], [503, true]);
  const outcome = await travel.rig.call("GET", "/process/outcome", {
    activation: travel.activation,
    headers: { "idempotency-key": "parents" },
  });
  assert.deepEqual(outcome.json(), { outcome: "unknown" });
  travel.close();
});

it("without what another bridge knew, streams end, and what nobody knows of is told to go on alone", async () => {
  const travel = await Travel.begin();
  const caller = await run(travel);
  await travel.carried();
  await travel.go(undefined);
  const answer = await goOn(caller, travel);
  assert.deepEqual([answer.status, answer.streamLost], [503, true]);
  assert.ok(travel.rig.guest.requests.includes(56), "FORSAKE");
  travel.close();
});

it("what is damaged is refused, and nothing is served", async () => {
  const travel = await Travel.begin();
  await run(travel);
  const carried = await travel.carried();
  for (const damaged of [
    carried.subarray(0, 100),
    Buffer.concat([carried, Buffer.from("x")]),
    Buffer.from(carried.toString("latin1").replace('"version":1', '"version":2'), "latin1"),
    Buffer.from(
      carried.toString("latin1").replace('"acknowledgedBytes":0', '"acknowledgedBytes":9'),
      "latin1",
    ),
  ]) {
    await assert.rejects(travel.go(damaged), (error) => isSpaceError(error, "snapshot/refused"));
  }
  travel.close();
});

it("pieces that do not follow are refused", async () => {
  const { rig, activation } = await Travel.begin();
  const bytes = Buffer.alloc(10);
  const refused = (error: unknown): boolean => isSpaceError(error, "input/invalid");
  await assert.rejects(rig.control.carry(activation, { offset: 10, totalBytes: 20, bytes }), refused);
  await rig.control.carry(activation, { offset: 0, totalBytes: 20, bytes });
  await assert.rejects(rig.control.carry(activation, { offset: 5, totalBytes: 20, bytes }), refused);
  await assert.rejects(rig.control.carry(activation, { offset: 10, totalBytes: 30, bytes }), refused);
  await assert.rejects(
    rig.control.carry(activation, { offset: 10, totalBytes: 20, bytes: Buffer.alloc(11) }),
    refused,
  );
  await assert.rejects(rig.control.carried(activation, 0), (error) =>
    isSpaceError(error, "endpoint/unverifiable"),
  );
  rig.close();
});
