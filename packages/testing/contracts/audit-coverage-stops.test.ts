// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Written from the closed list of reasons for which a worker ends an execution's processes: each comes about here, and
// is recorded by exactly the worker that ended them, once.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ActivationId, SpaceError, type StopReason } from "@space/model";
import { type AuditRow, type AuditScene, checkAudited } from "../src/audit-scene.ts";
import type { SubstrateStep } from "../src/fake-machine.ts";
import { turns } from "../src/fleet-rig.ts";
import { settle } from "../src/virtual-clock.ts";
import { WorkerRig } from "../src/worker-rig.ts";

const kinds = /^execution\/(stopped|readopted)$/;

/** From now on this step fails on worker a, until the answer is called. */
function failing({ fleet }: AuditScene, step: SubstrateStep): () => void {
  fleet.a.daemon.substrate.beforeStep = (at) => {
    if (at === step) throw new SpaceError("substrate/failed", { step });
  };
  return () => {
    fleet.a.daemon.substrate.beforeStep = () => undefined;
  };
}

async function frozen(scene: AuditScene): Promise<void> {
  await scene.create();
  await scene.rig.service.pause(scene.rig.caller, scene.id, true);
}

/** The worker's daemon ends as by kill -9, and another starts on the same host and disk. */
async function again({ fleet }: AuditScene): Promise<void> {
  fleet.cut(fleet.a);
  await settle(turns);
  fleet.a.kill();
  await fleet.boot(fleet.a);
}

const onlyProcess = ({ fleet }: AuditScene): ActivationId => {
  const [id, ...more] = fleet.a.machine.processes.keys();
  assert.ok(id !== undefined && more.length === 0);
  return id;
};

/** All but one: the control plane's orders come in their order, so that what is older was retired or discarded before. */
const stops: Readonly<Record<Exclude<StopReason, "superseded">, AuditRow>> = {
  retired: {
    what: "retired: a pause of the files alone",
    given: (scene) => scene.create(),
    done: (scene) => scene.rig.service.pause(scene.rig.caller, scene.id, false),
    said: ["a execution/stopped retired"],
  },
  discarded: {
    what: "discarded: kept frozen here, resumed elsewhere",
    given: frozen,
    done: (scene) => scene.rig.connect(scene.id, { workerId: scene.fleet.b.workerId }),
    said: ["a execution/stopped discarded"],
  },
  "start given up": {
    what: "start given up: the process ends before anybody took it over",
    done: async (scene) => {
      const { bridge } = scene.fleet.a;
      bridge.beforeCommand = (command) => {
        if (command === "adopt") throw new SpaceError("endpoint/mismatch", { problem: "another process" });
      };
      await assert.rejects(scene.create());
    },
    said: ["a execution/stopped start given up"],
  },
  "could not go on": {
    what: "could not go on: the frozen process cannot be thawed, and its files go on",
    given: frozen,
    done: async (scene) => {
      failing(scene, "thaw");
      await scene.rig.connect(scene.id);
    },
    said: ["a execution/stopped could not go on"],
  },
  gone: {
    what: "gone: it exited by itself",
    given: (scene) => scene.create(),
    done: async (scene) => {
      scene.fleet.a.machine.end(onlyProcess(scene), "out of memory");
      await settle(turns);
    },
    said: ["a execution/stopped gone"],
  },
  "not wanted": {
    what: "not wanted: R-12: a retired one whose processes outlived the daemon that was to end them",
    given: async (scene) => {
      await scene.create();
      failing(scene, "stop");
      await scene.rig.service.kill(scene.rig.caller, scene.id);
      assert.ok(onlyProcess(scene), "the fault landed");
    },
    done: again,
    said: ["a execution/stopped not wanted"],
  },
  "the worker stops": {
    what: "the worker stops",
    given: (scene) => scene.create(),
    done: (scene) => scene.fleet.a.worker.close("stopAll"),
    said: ["a execution/stopped the worker stops"],
  },
};

const further: readonly AuditRow[] = [
  {
    what: "gone, at a start of the daemon: it ended while nobody watched",
    given: (scene) => scene.create(),
    done: async (scene) => {
      const [first] = scene.fleet.a.machine.processes.keys();
      assert.ok(first);
      scene.fleet.a.machine.processes.delete(first);
      await again(scene);
    },
    said: ["a execution/stopped gone"],
  },
  {
    what: "could not go on, at a start of the daemon: it cannot be kept frozen",
    given: frozen,
    done: async ({ fleet }) => {
      fleet.cut(fleet.a);
      await settle(turns);
      fleet.a.kill();
      await fleet.a.boot({
        worker: { rootPublicKey: fleet.rig.root.publicKey },
        prepare: ({ substrate }) => {
          substrate.beforeStep = (step) => {
            if (step === "freeze") fleet.a.machine.processes.clear();
          };
        },
      });
    },
    said: ["a execution/readopted", "a execution/stopped could not go on"],
  },
];

describe("the audit log has every end of an execution's processes once, with its reason", () => {
  for (const [reason, row] of Object.entries(stops)) {
    test(row.what, async (context) => {
      assert.ok(row.said.some((line) => line.endsWith(` ${reason}`)));
      await checkAudited(context, { ...row, kinds });
    });
  }
  for (const row of further) test(row.what, (context) => checkAudited(context, { ...row, kinds }));
});

test("superseded: R-12: a later generation is installed where an older one still runs, whoever forgot to retire it", async () => {
  const rig = new WorkerRig();
  await rig.boot();
  const first = rig.identity();
  await rig.run(first);
  await rig.run(rig.identity({ sandboxId: first.sandboxId, generation: 2 }));
  const stopped = rig.audit.events.filter(({ name }) => name === "execution/stopped");
  assert.deepEqual(
    stopped.map(({ fields }) => fields),
    [{ activationId: first.activation.id, reason: "superseded" }],
  );
});
