// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { type ErrorCode, isSpaceError, type SandboxId, type SandboxRecord } from "@space/model";
import type { LossRig } from "./loss-rig.ts";
import { livingSandboxes } from "./settled-world.ts";

/** One operation of a client, which is sent again after the control plane was killed in its midst. */
export interface KilledOperation {
  readonly name: string;
  /** What it is done to; undefined where there is nothing yet. Its files and memory hold `said`. */
  prepare(rig: LossRig, said: string): Promise<SandboxId | undefined>;
  /** As a client sends it, the first time and again; `key` is the same both times. */
  send(rig: LossRig, id: SandboxId | undefined, key: string): Promise<unknown>;
  /** What the repetition may be told, where the first one has been done after all. */
  readonly doneBefore?: ErrorCode;
  /** Whether its effect is there: after an answer, and after the repetition. Throws what is wrong. */
  reached(rig: LossRig, id: SandboxId | undefined): Promise<void>;
}

const hourMs = 3_600_000;
/** Written before each operation, and acknowledged: never lost. */
const prepared = async (rig: LossRig, said: string, more = {}): Promise<SandboxId> => {
  const { sandboxId } = await rig.create(more);
  rig.write(await rig.record(sandboxId), said);
  return sandboxId;
};

const paused = async (rig: LossRig, said: string, more = {}): Promise<SandboxId> => {
  const sandboxId = await prepared(rig, said, more);
  await rig.service.pause(rig.caller, sandboxId, true);
  return sandboxId;
};

const of = (id: SandboxId | undefined): SandboxId => {
  assert.ok(id !== undefined);
  return id;
};

async function only(rig: LossRig): Promise<SandboxRecord> {
  const records = await livingSandboxes(rig);
  assert.equal(records.length, 1, `${records.length} sandboxes, where one was asked for`);
  const [record] = records;
  assert.ok(record !== undefined);
  return record;
}

const isIn = (state: SandboxRecord["state"]) => async (rig: LossRig, id: SandboxId | undefined) => {
  assert.equal((await rig.record(of(id))).state, state);
};

/** Every operation that a client has for a sandbox. */
export const killedOperations: readonly KilledOperation[] = [
  {
    name: "create",
    prepare: async () => undefined,
    send: (rig, _id, idempotencyKey) => rig.create({ idempotencyKey }),
    reached: async (rig) => assert.equal((await only(rig)).state, "running"),
  },
  {
    name: "pause",
    prepare: prepared,
    send: (rig, id) => rig.service.pause(rig.caller, of(id), true),
    doneBefore: "sandbox/state",
    reached: isIn("paused"),
  },
  {
    name: "pause, files only",
    prepare: prepared,
    send: (rig, id) => rig.service.pause(rig.caller, of(id), false),
    doneBefore: "sandbox/state",
    reached: isIn("paused"),
  },
  {
    name: "resume",
    prepare: paused,
    send: (rig, id) => rig.service.resume(rig.caller, of(id), { timeoutMs: hourMs, memory: true }),
    doneBefore: "sandbox/state",
    reached: isIn("running"),
  },
  {
    name: "resume elsewhere",
    prepare: async (rig, said) => {
      const sandboxId = await prepared(rig, said);
      await rig.service.pause(rig.caller, sandboxId, false);
      return sandboxId;
    },
    send: (rig, id) =>
      rig.service.connect(rig.caller, of(id), { timeoutMs: hourMs, memory: true, workerId: rig.b.workerId }),
    reached: isIn("running"),
  },
  {
    name: "wake by a request",
    prepare: (rig, said) => paused(rig, said, { autoResume: true }),
    send: async (rig, id) => {
      const answer = await rig.control.routes.resolve({
        sandboxId: of(id),
        credential: { kind: "none" },
        wanted: { purpose: "service-port", port: 8000, protocol: "http" },
        presenter: rig.a.presenter,
        wakes: true,
      });
      if (answer.kind === "entry") return;
      // What began to go on from its memory and was cut short has only its files left, and no request wakes it.
      const { state, snapshot } = await rig.record(of(id));
      assert.deepEqual([answer.kind, state, snapshot?.frozenOn], ["not-running", "paused", null]);
      await rig.service.connect(rig.caller, of(id), { timeoutMs: hourMs, memory: true });
    },
    reached: isIn("running"),
  },
  {
    name: "kill",
    prepare: prepared,
    send: (rig, id) => rig.service.kill(rig.caller, of(id)),
    doneBefore: "sandbox/not-found",
    reached: isIn("killed"),
  },
  {
    name: "kill of what is paused with its memory",
    prepare: paused,
    send: (rig, id) => rig.service.kill(rig.caller, of(id)),
    doneBefore: "sandbox/not-found",
    reached: isIn("killed"),
  },
  {
    name: "move",
    prepare: prepared,
    send: async (rig, id) => {
      // A client whose move was cut short finds it paused at worst, and goes on there.
      const { state } = await rig.record(of(id));
      if (state === "paused")
        await rig.service.connect(rig.caller, of(id), { timeoutMs: hourMs, memory: true });
      return rig.service.move(rig.caller, of(id), { workerId: rig.b.workerId });
    },
    reached: async (rig, id) => {
      const { state, execution } = await rig.record(of(id));
      assert.deepEqual([state, execution.identity.placement.workerId], ["running", rig.b.workerId]);
    },
  },
  {
    name: "fork",
    prepare: prepared,
    send: async (rig, id) => {
      const children = await rig.service.fork(rig.caller, of(id), { count: 2, timeoutMs: hourMs });
      for (const child of children) assert.equal(child.kind, "sandbox");
    },
    reached: async (rig, id) => {
      const children = (await livingSandboxes(rig)).filter(({ sandboxId }) => sandboxId !== id);
      assert.ok(children.length >= 2, `${children.length} children`);
      for (const { state } of children) assert.equal(state, "running");
      await isIn("running")(rig, id);
    },
  },
  {
    name: "named snapshot",
    prepare: prepared,
    send: (rig, id) => rig.service.snapshot(rig.caller, of(id), "kept"),
    reached: async (rig, id) => {
      const named = await rig.service.listSnapshots(rig.caller, { sandboxId: of(id), limit: 10 });
      assert.equal(named.length, 1);
      await isIn("running")(rig, id);
    },
  },
  {
    name: "set timeout",
    prepare: prepared,
    send: (rig, id) => rig.service.setTimeout(rig.caller, of(id), 7 * hourMs),
    reached: async (rig, id) => {
      const leftMs = (await rig.record(of(id))).endAtMs - rig.clock.wallMs();
      assert.ok(leftMs > 6 * hourMs, `it ends in ${leftMs} ms`);
    },
  },
];

/** Sends it again, as its client does. Throws what its client would not expect. */
export async function sendAgain(
  rig: LossRig,
  { send, doneBefore }: KilledOperation,
  { id, key }: { readonly id: SandboxId | undefined; readonly key: string },
): Promise<void> {
  try {
    await send(rig, id, key);
  } catch (error) {
    if (doneBefore === undefined || !isSpaceError(error, doneBefore)) throw error;
  }
}

/** Every sandbox has what was acknowledged before: its files always, its memory where the store says that it is kept. */
export async function checkNothingLost(rig: LossRig, said: string): Promise<void> {
  for (const { sandboxId, state, snapshot } of await livingSandboxes(rig)) {
    const isMemoryKept = snapshot?.frozenOn != null;
    if (state === "paused")
      await rig.service.connect(rig.caller, sandboxId, { timeoutMs: hourMs, memory: true });
    const process = rig.processOf(await rig.record(sandboxId));
    assert.equal(process?.files, said, `${sandboxId} has lost what was written before`);
    if (state === "paused" && isMemoryKept) assert.equal(process.memory, said, "kept memory is gone");
  }
}
