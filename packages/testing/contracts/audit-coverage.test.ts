// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Written from the list of what the audit log has to hold: each thing is done, on a control plane with two real workers,
// and found as exactly these events, each once, with its reason. An event of the listed kinds that comes besides fails.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type SandboxChangeKind, SpaceError } from "@space/model";
import { type AuditRow, type AuditScene, checkAudited } from "../src/audit-scene.ts";
import { turns } from "../src/fleet-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const second = 1000;

const paused = async (scene: AuditScene, keepMemory = false): Promise<void> => {
  await scene.create();
  await scene.rig.service.pause(scene.rig.caller, scene.id, keepMemory);
};

const created = [
  "c sandbox/changed begin, creating, asked",
  "c certificate/issued create",
  "c sandbox/changed publish, running, done",
];
const pausedAgain = [
  "c sandbox/changed claim-pause, pausing, asked",
  "c manifest/countersigned pause",
  "c sandbox/changed commit-pause, paused, done",
  "c retirement/issued its sandbox changed",
];

const snapshotted = [
  "c sandbox/changed claim-snapshot, pausing, asked",
  "c manifest/countersigned snapshot",
  "c sandbox/changed keep-snapshot, pausing, done",
  "c sandbox/changed take-over, pausing, done",
  "c sandbox/changed abort-pause, running, done",
  "a execution/paused",
  "a execution/pause-aborted",
];

const lifecycle: readonly AuditRow[] = [
  {
    what: "create",
    done: (scene) => scene.create(),
    said: [...created, "a execution/activated", "a execution/installed first"],
  },
  {
    what: "a create that fails at the worker",
    done: async (scene) => {
      scene.fleet.a.daemon.substrate.beforeStep = (step) => {
        if (step === "start") throw new SpaceError("substrate/failed", { step: "start" });
      };
      await assert.rejects(scene.create());
    },
    said: [
      "c sandbox/changed begin, creating, asked",
      "c sandbox/changed fail, failed, failed: substrate/failed",
      "c retirement/issued its sandbox changed",
      "a command/refused activate, substrate/failed",
    ],
  },
  {
    what: "a snapshot of what goes on",
    given: (scene) => scene.create(),
    done: async (scene) => {
      await scene.rig.service.snapshot(scene.rig.caller, scene.id, undefined);
    },
    said: snapshotted,
  },
  {
    what: "a fork",
    given: (scene) => scene.create(),
    done: async (scene) => {
      await scene.rig.service.fork(scene.rig.caller, scene.id, { count: 1, timeoutMs: 60_000 });
    },
    said: [
      ...snapshotted,
      "c sandbox/changed begin, creating, asked",
      "c certificate/issued fork",
      "c sandbox/changed publish, running, done",
      "b execution/activated",
      "b execution/installed first",
    ],
  },
  {
    what: "another end of life",
    given: (scene) => scene.create(),
    done: (scene) => scene.rig.service.setTimeout(scene.rig.caller, scene.id, 60_000),
    said: ["c sandbox/changed set-end, running, asked"],
  },
  {
    what: "pause, files only",
    given: (scene) => scene.create(),
    done: (scene) => scene.rig.service.pause(scene.rig.caller, scene.id, false),
    said: [...pausedAgain, "a execution/paused", "a execution/retired", "a execution/stopped retired"],
  },
  {
    what: "pause with memory",
    given: (scene) => scene.create(),
    done: (scene) => scene.rig.service.pause(scene.rig.caller, scene.id, true),
    said: [...pausedAgain, "a execution/paused", "a execution/retired"],
  },
  {
    what: "a pause that fails, and is aborted",
    given: (scene) => scene.create(),
    done: async (scene) => {
      scene.fleet.a.daemon.substrate.beforeStep = (step) => {
        if (step === "snapshot") throw new SpaceError("substrate/failed", { step: "snapshot" });
      };
      await assert.rejects(scene.rig.service.pause(scene.rig.caller, scene.id, false));
    },
    said: [
      "c sandbox/changed claim-pause, pausing, asked",
      "c sandbox/changed take-over, pausing, failed: substrate/failed",
      "c sandbox/changed abort-pause, running, failed: substrate/failed",
      "a execution/paused",
      "a command/refused snapshot, substrate/failed",
      "a execution/pause-aborted",
    ],
  },
  {
    what: "resume elsewhere",
    given: (scene) => paused(scene),
    done: (scene) => scene.rig.connect(scene.id, { workerId: scene.fleet.b.workerId }),
    said: [
      "c sandbox/changed claim-resume, resuming, asked",
      "c chain-head/issued resume",
      "c certificate/issued resume",
      "c sandbox/changed publish, running, done",
      "b execution/activated",
      "b execution/installed first",
    ],
  },
  {
    what: "resume with its memory",
    given: (scene) => paused(scene, true),
    done: (scene) => scene.rig.connect(scene.id),
    said: [
      "c sandbox/changed claim-resume, resuming, asked",
      "c chain-head/issued resume",
      "c certificate/issued resume",
      "c sandbox/changed publish, running, done",
      "a execution/activated",
      "a execution/installed next-generation",
    ],
  },
  {
    what: "a resume that is refused: the snapshot is damaged",
    given: async (scene) => {
      await paused(scene);
      const { snapshot } = await scene.rig.record(scene.id);
      assert.ok(snapshot);
      (await scene.rig.sealed()).alter(snapshot.digest);
    },
    done: (scene) => assert.rejects(scene.rig.connect(scene.id, { workerId: scene.fleet.b.workerId })),
    said: [
      "c sandbox/changed claim-resume, resuming, asked",
      "c chain-head/issued resume",
      "c sandbox/changed abandon-resume, paused, failed: chunk/damaged",
      "c retirement/issued its sandbox changed",
      "b command/refused activate, chunk/damaged",
    ],
  },
  {
    what: "move",
    given: (scene) => scene.create(),
    done: async (scene) => {
      await scene.rig.service.move(scene.rig.caller, scene.id, { workerId: scene.fleet.b.workerId });
      await settle(turns);
    },
    said: [
      "c sandbox/changed claim-pause, pausing, asked",
      "c manifest/countersigned pause",
      "c sandbox/changed commit-move, resuming, done",
      "c retirement/issued its sandbox changed",
      "c chain-head/issued resume",
      "c certificate/issued resume",
      "c sandbox/changed publish, running, done",
      "a execution/paused",
      "a execution/retired",
      "a execution/stopped discarded",
      "b execution/activated",
      "b execution/installed first",
    ],
  },
  {
    what: "kill",
    given: (scene) => scene.create(),
    done: (scene) => scene.rig.service.kill(scene.rig.caller, scene.id),
    said: [
      "c sandbox/changed claim-kill, killing, asked",
      "c retirement/issued its sandbox changed",
      "c sandbox/changed finish-kill, killed, done",
      "a execution/retired",
      "a execution/stopped retired",
    ],
  },
  {
    what: "kill of a frozen one",
    given: (scene) => paused(scene, true),
    done: (scene) => scene.rig.service.kill(scene.rig.caller, scene.id),
    said: [
      "c sandbox/changed claim-kill, killing, asked",
      "c retirement/issued its sandbox changed",
      "c sandbox/changed finish-kill, killed, done",
      "a execution/stopped retired",
    ],
  },
  {
    what: "the end of life: kill",
    given: (scene) => scene.create({ timeoutMs: 5 * second }),
    done: (scene) => scene.rig.clock.advance(6 * second),
    said: [
      "c sandbox/changed claim-kill, killing, end of life",
      "c retirement/issued its sandbox changed",
      "c sandbox/changed finish-kill, killed, done",
      "a execution/retired",
      "a execution/stopped retired",
    ],
  },
  {
    what: "the end of life: pause",
    given: (scene) => scene.create({ timeoutMs: 5 * second, onTimeout: "pause", keepMemory: true }),
    done: (scene) => scene.rig.clock.advance(6 * second),
    said: [
      "c sandbox/changed claim-pause, pausing, end of life",
      ...pausedAgain.slice(1),
      "a execution/paused",
      "a execution/retired",
    ],
  },
  {
    what: "its process ends by itself",
    given: (scene) => scene.create(),
    done: async (scene) => {
      const { identity } = (await scene.rig.record(scene.id)).execution;
      scene.fleet.a.machine.end(identity.activation.id, "out of memory");
      await settle(turns);
    },
    said: [
      "c sandbox/changed lose, lost, exited: out of memory",
      "c retirement/issued its sandbox changed",
      "a execution/exited out of memory",
      "a execution/retired",
      "a execution/stopped gone",
    ],
  },
  {
    what: "frozen processes that are gone",
    given: async (scene) => {
      await paused(scene, true);
      scene.fleet.cut(scene.fleet.a);
      await settle(turns);
      scene.fleet.a.kill();
      scene.fleet.a.machine.processes.clear();
      await scene.fleet.boot(scene.fleet.a);
    },
    done: (scene) => scene.fleet.dial(scene.fleet.a),
    said: ["c sandbox/changed forget-frozen, paused, its worker no longer has it"],
  },
  {
    what: "the store does not say whether a change was written",
    given: (scene) => scene.create(),
    done: async (scene) => {
      const { change } = scene.rig.sandboxes;
      scene.rig.sandboxes.change = () => Promise.reject(new SpaceError("store/failed", { step: "change" }));
      await assert.rejects(scene.rig.service.pause(scene.rig.caller, scene.id, false));
      scene.rig.sandboxes.change = change;
    },
    said: ["c sandbox/change-unknown claim-pause, asked, store/failed"],
  },
];

describe("the audit log has every lifecycle change once, with its reason", () => {
  for (const row of lifecycle) test(row.what, (context) => checkAudited(context, row));
});

/** Every way in which a sandbox's row changes: one that is new does not compile until it is here, nor pass without a row. */
const kinds: Readonly<Record<SandboxChangeKind, true>> = {
  begin: true,
  publish: true,
  fail: true,
  "claim-pause": true,
  "claim-snapshot": true,
  "keep-snapshot": true,
  "abort-pause": true,
  "commit-pause": true,
  "commit-move": true,
  "claim-resume": true,
  "abandon-resume": true,
  lose: true,
  "claim-kill": true,
  "finish-kill": true,
  "set-end": true,
  "take-over": true,
  "forget-frozen": true,
};

test("no kind of change is missing from the table", () => {
  const said = lifecycle.flatMap((row) => row.said);
  const missing = Object.keys(kinds).filter(
    (kind) => !said.some((line) => line.startsWith(`c sandbox/changed ${kind},`)),
  );
  assert.deepEqual(missing, []);
});
