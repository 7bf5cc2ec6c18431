// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type ErrorCode,
  isSpaceError,
  type SandboxChange,
  type SandboxStore,
  SpaceError,
} from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { settle } from "../src/virtual-clock.ts";

const code =
  (wanted: ErrorCode) =>
  (error: unknown): boolean =>
    isSpaceError(error) && error.code === wanted;

const failed = (): SpaceError => new SpaceError("store/failed", { step: "write" });

/** Changes of this kind fail, before or after they are written, until the returned function is called. */
function breakChange(
  store: SandboxStore,
  kind: SandboxChange["kind"],
  when: "before" | "after" = "before",
): () => number {
  const { change } = store;
  let count = 0;
  store.change = async (request) => {
    if (request.change.kind !== kind) return change.call(store, request);
    count += 1;
    if (when === "after") await change.call(store, request);
    throw failed();
  };
  return () => {
    store.change = change;
    return count;
  };
}

describe("a store that fails", () => {
  test("incident 26: is never taken for a sandbox that is not there", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId, accessToken } = await rig.create();
    const { read } = rig.sandboxes;
    let failures = 0;
    rig.sandboxes.read = () => {
      failures += 1;
      return Promise.reject(failed());
    };
    await assert.rejects(rig.service.get(rig.caller, sandboxId), code("store/failed"));
    await assert.rejects(rig.connect(sandboxId), code("store/failed"));
    await assert.rejects(rig.service.kill(rig.caller, sandboxId), code("store/failed"));
    const credential = { kind: "access-token", token: accessToken } as const;
    const wanted = { purpose: "control", scope: "files:read" } as const;
    await assert.rejects(
      rig.control.routes.resolve({ sandboxId, credential, wanted, presenter: "p" }),
      code("store/failed"),
    );
    faultLanded("each of the four asked a store that was down", failures - 3);
    rig.sandboxes.read = read;
    assert.equal((await rig.service.get(rig.caller, sandboxId)).state, "running");
  });

  for (const when of ["before", "after"] as const) {
    test(`when a new sandbox is published (${when} the write): the caller is told, and stored and running agree`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const repair = breakChange(rig.sandboxes, "publish", when);
      const outcome = await rig.create().catch((error: unknown) => error);
      assert.equal(repair(), 1, "the fault landed");
      await settle();
      const [record] = await rig.sandboxes.live();
      assert.equal(workers[0].processes, when === "before" ? 0 : 1);
      if (when === "before") {
        assert.ok(code("store/failed")(outcome));
        assert.equal(record, undefined);
      } else {
        assert.ok(record !== undefined && record.state === "running");
        assert.deepEqual(workers[0].serving(record.sandboxId), record.execution.identity);
      }
    });

    test(`when a pause is committed (${when} the write): it runs on, or is paused, and the row says which`, async (context) => {
      const { rig, workers } = await ControlRig.open(context, { workers: 1 });
      const { sandboxId } = await rig.create();
      const repair = breakChange(rig.sandboxes, "commit-pause", when);
      await assert.rejects(rig.service.pause(rig.caller, sandboxId, false), code("store/failed"));
      assert.equal(repair(), 1, "the fault landed");
      await rig.clock.advance(3000);
      const { state, execution } = await rig.record(sandboxId);
      assert.equal(state, when === "before" ? "running" : "paused");
      assert.deepEqual(workers[0].serving(sandboxId), when === "before" ? execution.identity : undefined);
      assert.equal(workers[0].processes, when === "before" ? 1 : 0);
    });
  }

  test("when a failed start is given up: the recovery does it as soon as the store can", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    const repair = breakChange(rig.sandboxes, "abandon-resume");
    workers[0].loseAnswer("install");
    await assert.rejects(rig.connect(sandboxId), code("worker/unreachable"));
    assert.equal((await rig.record(sandboxId)).state, "resuming");
    await rig.clock.advance(5000);
    assert.ok(repair() >= 2, "the fault landed");
    await rig.clock.advance(3000);
    assert.equal((await rig.record(sandboxId)).state, "paused");
    assert.equal(workers[0].processes, 0);
    assert.equal((await rig.connect(sandboxId)).generation, 3n);
  });

  test("when a kill is finished: it is finished later, and it was a tombstone all the time", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const repair = breakChange(rig.sandboxes, "finish-kill");
    await assert.rejects(rig.service.kill(rig.caller, sandboxId), code("store/failed"));
    repair();
    assert.equal(workers[0].processes, 0);
    await assert.rejects(rig.connect(sandboxId), code("sandbox/state"));
    await rig.clock.advance(3000);
    assert.equal((await rig.record(sandboxId)).state, "killed");
  });
});
