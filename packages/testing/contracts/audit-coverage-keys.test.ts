// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Written from the list of what the audit log has to hold: each thing is done, on a control plane with two real workers,
// and found as exactly these events, each once, with its reason. An event of the listed kinds that comes besides fails.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newSigningKey } from "@space/capability";
import { openControlPlane } from "@space/control-plane";
import { isSpaceError, type KeyChangeReason, Secret, type SigningKeyStore, SpaceError } from "@space/model";
import { type AuditRow, checkAudited } from "../src/audit-scene.ts";
import { turns } from "../src/fleet-rig.ts";
import { memoryControlStore } from "../src/memory-control-store.ts";
import { MemoryControlTables } from "../src/memory-control-tables.ts";
import { MemoryKeyVault, MemoryRootKey } from "../src/memory-keys.ts";
import { RecordingAudit } from "../src/recording-audit.ts";
import { noSnapshots } from "../src/sealed-objects.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { settle, VirtualClock } from "../src/virtual-clock.ts";

const second = 1000;

const keys: readonly AuditRow[] = [
  {
    what: "R-10: rotation by command",
    done: (scene) => scene.rig.control.keys.rotate(),
    said: [
      "c signing-key/changed announce, announced, asked",
      "c signing-key/changed promote, signing, acknowledged",
      "a keys/replaced 2",
      "b keys/replaced 2",
    ],
  },
  {
    what: "R-10: rotation by age",
    limits: { keyMaxAgeMs: 100 * second },
    done: (scene) => scene.pass(110),
    said: [
      "c signing-key/changed announce, announced, age",
      "c signing-key/changed promote, signing, acknowledged",
      "a keys/replaced 2",
      "b keys/replaced 2",
    ],
  },
  {
    what: "R-10: revocation of the key that signs",
    done: (scene) => {
      const [key] = scene.rig.control.keys.view().keys;
      assert.ok(key);
      return scene.rig.control.keys.revoke(key.kid);
    },
    said: [
      "c signing-key/changed ask-revocation, signing, asked",
      "c signing-key/changed announce, announced, successor of a revoked key",
      "c signing-key/changed promote, signing, acknowledged",
      "c signing-key/changed end, revoked, asked",
      "a keys/replaced 2",
      "a keys/replaced 3",
      "b keys/replaced 2",
      "b keys/replaced 3",
    ],
  },
  {
    what: "R-10: the end of the overlap",
    given: (scene) => scene.rig.control.keys.rotate(),
    done: (scene) => scene.pass(190),
    said: ["c signing-key/changed end, removed, overlap over", "a keys/replaced 3", "b keys/replaced 3"],
  },
  {
    what: "R-10: a newer bundle that comes with the welcome",
    kinds: /^keys\//,
    given: async (scene) => {
      scene.fleet.cut(scene.fleet.a);
      await scene.pass(70);
      await scene.rig.control.keys.rotate();
    },
    done: ({ fleet }) => fleet.dial(fleet.a),
    said: ["a keys/replaced 2"],
  },
  {
    what: "R-10: an older bundle is refused by a worker",
    given: (scene) => scene.rig.control.keys.rotate(),
    done: async (scene) => {
      const [older] = await scene.rig.bundles();
      assert.ok(older);
      await assert.rejects(scene.fleet.a.worker.control.replaceKeys(older), (error) =>
        isSpaceError(error, "bundle/rollback"),
      );
    },
    said: ["a keys/refused bundle/rollback"],
  },
  {
    what: "a tenant and its key, and the key's end",
    done: async ({ rig }) => {
      const tenantId = await rig.control.administration.createTenant("second");
      const { keyId } = await rig.control.administration.createApiKey(tenantId);
      await rig.control.administration.revokeApiKey(keyId);
    },
    said: ["c tenant/created", "c api-key/created", "c api-key/revoked true"],
  },
  {
    what: "an API key that is none",
    done: ({ rig }) => assert.rejects(rig.service.authenticate(new Secret("e2b_none"))),
    said: ["c api-key/refused unknown"],
  },
  {
    what: "a capability",
    given: (scene) => scene.create(),
    done: async (scene) => {
      const token = (await scene.rig.connect(scene.id)).accessToken;
      scene.mark();
      await scene.fleet.route(scene.id, token);
    },
    said: ["c capability/issued files:read files:write process:run process:attach pty watch metrics"],
  },
  {
    what: "a retirement that nobody of ours has signed",
    done: (scene) => assert.rejects(scene.fleet.a.worker.control.retire("x.y.z", null)),
    said: ["a command/refused retire, certificate/refused, form"],
  },
];

/** Every reason for a change of a signing key; those of the first start are in the test after the next. */
const keyReasons: Readonly<Record<KeyChangeReason, "in the table" | "at the first start">> = {
  "first start": "at the first start",
  asked: "in the table",
  age: "in the table",
  "successor of a revoked key": "in the table",
  acknowledged: "in the table",
  "overlap over": "in the table",
  lost: "at the first start",
};

test("R-10: no reason for a key's change is missing from the table", () => {
  const said = keys.flatMap((row) => row.said).filter((line) => line.startsWith("c signing-key/changed "));
  const missing = Object.entries(keyReasons).filter(
    ([reason, where]) => where === "in the table" && !said.some((line) => line.endsWith(`, ${reason}`)),
  );
  assert.deepEqual(missing, []);
});

test("R-10: the first key, and one whose private half was lost before it signed: the log says so", async () => {
  const [tables, clock, audit] = [new MemoryControlTables(), new VirtualClock(), new RecordingAudit()];
  const { receivers, signingKeys, ...stores } = memoryControlStore(tables, clock);
  let written = 0;
  const change: SigningKeyStore["change"] = async (step) => {
    const isDone = await signingKeys.change(step);
    written += 1;
    if (written === 1) throw new SpaceError("store/failed", { step: "signing keys" }); // nobody hears that it is announced
    return isDone;
  };
  const control = await openControlPlane(
    { issuer: "test", tokenSecret: new Secret<Uint8Array>(new Uint8Array(32).fill(7)), replica: "one" },
    {
      ...stores,
      ...noSnapshots(),
      signingKeys: { all: () => signingKeys.all(), bundles: () => signingKeys.bundles(), change },
      receiverStore: receivers,
      rootKey: new MemoryRootKey(newSigningKey()),
      privateKeys: new MemoryKeyVault(),
      clock,
      random: new SeededRandom("lost key"),
      audit,
    },
  );
  const said = audit.events.flatMap(({ name, fields }) =>
    name === "signing-key/changed" ? [Object.values(fields).slice(1).join(", ")] : [],
  );
  assert.deepEqual(said, [
    "end, revoked, 2, lost",
    "announce, announced, 3, first start",
    "promote, signing, 3, first start",
  ]);
  await control.close();
});

describe("the audit log has every key event and every statement once, with its reason", () => {
  for (const row of keys) test(row.what, (context) => checkAudited(context, row));
});

const workers: readonly AuditRow[] = [
  {
    what: "a worker that was never seen enrols",
    done: async ({ rig }) => {
      await rig.attach(rig.newWorker());
    },
    said: ["c worker/enrolled its store was never connected"],
  },
  {
    what: "R-16: a lease, and what it is for the one who gets it",
    kinds: /^lease\//,
    given: async ({ fleet }) => {
      fleet.cut(fleet.a);
      await fleet.a.clock.advance(second);
    },
    done: ({ fleet }) => fleet.dial(fleet.a),
    said: ["c lease/granted renewed", "a lease/taken"],
  },
  {
    what: "R-16: a lease that ran out: the fence, and what is granted after it",
    kinds: /^lease\//,
    given: ({ fleet }) => {
      fleet.cut(fleet.a);
      return settle(turns);
    },
    done: async ({ fleet, rig }) => {
      await fleet.a.clock.advance(70 * second);
      await rig.clock.advance(70 * second);
      await fleet.dial(fleet.a);
    },
    said: ["a lease/ended", "c lease/granted the last had run out", "a lease/taken"],
  },
  {
    what: "a worker goes, an order to it stays, and it comes back",
    kinds: /^(worker|order|command)\//,
    given: (scene) => scene.create(),
    done: async ({ fleet, rig, id }) => {
      fleet.a.daemon.store.beforeWrite = (write) => {
        if (write === "retire") throw new SpaceError("store/failed", { step: write });
      };
      await rig.service.kill(rig.caller, id);
      fleet.a.daemon.store.beforeWrite = () => undefined;
      fleet.cut(fleet.a);
      await fleet.a.clock.advance(second);
      await fleet.dial(fleet.a);
    },
    said: [
      "c order/undelivered store/failed",
      "a command/refused retire, store/failed",
      "c worker/disconnected",
      "c worker/connected",
    ],
  },
  {
    what: "a worker that comes back has enrolled before",
    given: async ({ fleet }) => {
      fleet.cut(fleet.a);
      await fleet.a.clock.advance(second);
    },
    done: ({ fleet }) => fleet.dial(fleet.a),
    said: [],
  },
  {
    what: "a worker's old disk is refused, by both",
    given: async (scene) => {
      const { fleet } = scene;
      const older = fleet.a.disk.copy();
      fleet.cut(fleet.a);
      await fleet.dial(fleet.a);
      fleet.cut(fleet.a);
      fleet.a.kill();
      fleet.a.disk = older;
      await fleet.boot(fleet.a);
    },
    done: ({ fleet }) => fleet.dial(fleet.a),
    said: ["c worker/refused its store is older, or a copy", "a worker/superseded"],
  },
  {
    what: "R-16: a worker whose lease has run out",
    given: async (scene) => {
      await scene.create();
      scene.fleet.cut(scene.fleet.a);
      await settle(turns);
    },
    done: async ({ fleet, rig }) => {
      await fleet.a.clock.advance(125 * second);
      await rig.clock.advance(70 * second);
    },
    said: ["c sandbox/changed lose, lost, its worker's lease ran out", "a lease/given-up"],
  },
];

describe("the audit log has every enrolment, refusal and loss of a worker once", () => {
  for (const row of workers) test(row.what, (context) => checkAudited(context, row));
});
