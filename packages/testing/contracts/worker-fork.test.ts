// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manifestDigest, newSigningKey, signManifest } from "@space/capability";
import {
  type ActivateRequest,
  type ExecutionIdentity,
  isSpaceError,
  newTenantId,
  type OriginGrant,
  type ParentOrigin,
  type SnapshotAnswer,
} from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { testTenantKey } from "../src/sealed-objects.ts";
import { WorkerRig } from "../src/worker-rig.ts";
import { resume, working } from "../src/working-worker.ts";

type From = NonNullable<ActivateRequest["from"]>;
const { tenantId } = testTenantKey;

interface Scene {
  readonly rig: WorkerRig;
  readonly source: ExecutionIdentity;
  readonly taken: SnapshotAnswer;
}

/** A snapshot was taken of a source that goes on. */
async function checkpointed(): Promise<Scene> {
  const { rig, identity } = await working();
  return checkpointedOn(rig, identity);
}

async function checkpointedOn(rig: WorkerRig, source: ExecutionIdentity): Promise<Scene> {
  const follows = await rig.chains.seal(source.sandboxId);
  const taken = await rig.worker.control.snapshot(source, { ...follows, goesOn: true }, testTenantKey);
  await rig.worker.control.abortPause(source);
  return { rig, source, taken };
}

/** What a child is told to begin from, with a signed origin unless it is changed. */
function fromOf({ rig, taken }: Scene, child: ExecutionIdentity, change: Partial<OriginGrant> = {}): From {
  const digest = manifestDigest(taken.signed);
  const origin: ParentOrigin = { kind: "fork", parentManifest: digest };
  const head = rig.authority.originGrant({ sandboxId: child.sandboxId, tenantId, origin, ...change });
  return { manifest: taken.manifest, digest, memory: "none", key: testTenantKey, head, since: null };
}

const refused = (problem: string) => (error: unknown) =>
  (isSpaceError(error, "snapshot/refused") || isSpaceError(error, "snapshot/chain-refused")) &&
  error.details.problem === problem;

describe("a fork, at the worker", () => {
  test("R-5: children begin with the source's files under ids and keys of their own, and the source goes on", async () => {
    const scene = await checkpointed();
    const { rig, source, taken } = scene;
    assert.equal(taken.manifest.memory, "none", "what goes on is not kept frozen");
    const children = [rig.identity(), rig.identity()];
    const keys = new Set<string>();
    for (const child of children) {
      await rig.run(child, { from: fromOf(scene, child) });
      const [{ publicKey = "", activationSecret } = {}] = rig.daemon.store
        .allActivations()
        .filter(({ identity }) => identity.sandboxId === child.sandboxId);
      keys.add(publicKey).add(Buffer.from(activationSecret?.reveal() ?? []).toString("hex"));
    }
    assert.equal(keys.size, 4, "no key and no secret of one is another's");
    const files = [...rig.machine.processes.values()].map((process) => process.files);
    assert.deepEqual(files, Array(3).fill("a file system of several chunks"));
    const gateway = rig.gateway();
    for (const identity of [source, ...children])
      assert.equal((await rig.send(gateway, rig.head(identity))).status, 200);
  });

  test("R-5: another sandbox's snapshot is restored only where a signed origin names it", async () => {
    const scene = await checkpointed();
    const { rig, taken } = scene;
    const child = rig.identity();
    const from = fromOf(scene, child);
    const stranger = rig.identity().sandboxId;
    const named = manifestDigest("another");
    const origin: ParentOrigin = { kind: "fork", parentManifest: named };
    const grantBy = (key: ReturnType<typeof newSigningKey>): string =>
      rig.authority.originGrant({ sandboxId: child.sandboxId, tenantId, origin }, key);
    const cases: readonly (readonly [what: string, head: string, problem: string])[] = [
      ["no origin", "", "origin"],
      ["the source's own head", rig.headOf(taken.manifest, from.digest), "origin"],
      ["of another manifest", fromOf(scene, child, { origin }).head, "origin names another manifest"],
      ["of another sandbox", fromOf(scene, child, { sandboxId: stranger }).head, "other sandbox"],
      ["of another tenant", fromOf(scene, child, { tenantId: newTenantId(rig.random) }).head, "other tenant"],
      ["signed by another", grantBy(newSigningKey()), "origin"],
    ];
    let count = 0;
    for (const [what, head, problem] of cases) {
      const request = rig.request(child, { from: { ...from, head } });
      await assert.rejects(rig.worker.control.activate(request), refused(problem), what);
      count += 1;
    }
    faultLanded("every kind of wrong origin was given", count - 5);
    assert.equal(rig.machine.processes.size, 1, "nothing was started");
    await rig.run(child, { from });
  });

  test("R-5: an origin is of generation 1 alone: later ones are restored from their own newest snapshot", async () => {
    const scene = await checkpointed();
    const { rig } = scene;
    const child = rig.identity();
    await rig.run(child, { from: fromOf(scene, child) });
    const own = await rig.pause(child, false);
    const next = resume(rig, child);
    await assert.rejects(
      rig.worker.control.activate(rig.request(next, { from: fromOf(scene, next) })),
      refused("head"),
    );
    await rig.run(next, { from: own });
  });

  test("R-5: a sandbox is not its own parent, whatever a signed origin says", async () => {
    const scene = await checkpointed();
    const { rig, source } = scene;
    const other = await anotherWorker(rig);
    const again = other.identity({ sandboxId: source.sandboxId });
    await assert.rejects(
      other.worker.control.activate(other.request(again, { from: fromOf(scene, again) })),
      refused("other sandbox"),
    );
    const child = other.identity();
    await other.worker.control.activate(other.request(child, { from: fromOf(scene, child) }));
    assert.equal(other.machine.processes.size, 1);
  });

  test("R-5: the parent's manifest is verified to the root, as any other is", async () => {
    const scene = await checkpointed();
    const { rig, taken } = scene;
    const child = rig.identity();
    const signed = signManifest(newSigningKey(), taken.manifest);
    await rig.objects.put(manifestDigest(signed), Buffer.from(signed));
    const forged = { ...scene, taken: { ...taken, signed } };
    await assert.rejects(
      rig.worker.control.activate(rig.request(child, { from: fromOf(forged, child) })),
      refused("key"),
      "no execution of the source has signed it",
    );
    const foreign = await working();
    const theirs = await checkpointedOn(foreign.rig, foreign.identity);
    await rig.objects.put(manifestDigest(theirs.taken.signed), Buffer.from(theirs.taken.signed));
    const { chain } = theirs.taken.manifest;
    await rig.objects.put(chain, await foreign.rig.objects.get(chain));
    await assert.rejects(
      rig.worker.control.activate(rig.request(child, { from: fromOf({ ...theirs, rig }, child) })),
      refused("unknown key"),
      "its chain is another root's",
    );
  });
});

async function anotherWorker(rig: WorkerRig): Promise<WorkerRig> {
  const other = new WorkerRig("another worker", rig.store);
  other.leasedBy = rig.authority;
  await other.boot({
    worker: { rootPublicKey: rig.authority.rootPublicKey },
    prepare: ({ store }) => store.writeBundle(1, rig.authority.bundle()),
  });
  return other;
}
