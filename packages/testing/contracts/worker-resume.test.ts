// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { manifestDigest, newSigningKey, parseSealedObject, signManifest } from "@space/capability";
import {
  type ActivateRequest,
  type Digest,
  type ExecutionIdentity,
  isSpaceError,
  newTenantId,
} from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { otherKey, SealedObjects, testTenantKey } from "../src/sealed-objects.ts";
import { WorkerRig } from "../src/worker-rig.ts";
import { resume, working } from "../src/working-worker.ts";

const code = (expected: string) => ({ code: expected });

/** Of what is not the newest snapshot of this sandbox, or not shown to be. */
const refusedSnapshot = (error: unknown): boolean =>
  isSpaceError(error, "snapshot/refused") || isSpaceError(error, "snapshot/chain-refused");

type From = NonNullable<ActivateRequest["from"]>;

describe("resume on another worker", () => {
  async function moved(): Promise<{
    rig: WorkerRig;
    other: WorkerRig;
    identity: ExecutionIdentity;
    from: From;
  }> {
    const { rig, identity } = await working();
    const from = await rig.pause(identity, false);
    const other = new WorkerRig("another worker", rig.store);
    other.leasedBy = rig.authority;
    await other.boot({
      worker: { rootPublicKey: rig.authority.rootPublicKey },
      prepare: ({ store }) => store.writeBundle(1, rig.authority.bundle()),
    });
    return { rig, other, identity, from };
  }
  const activate = (other: WorkerRig, identity: ExecutionIdentity, from: From): Promise<unknown> =>
    other.worker.control.activate(other.request(resume(other, identity), { from }));

  test("the files are there, byte for byte", async () => {
    const { other, identity, from } = await moved();
    assert.deepEqual(Object.keys((await activate(other, identity, from)) as object), ["publicKey", "memory"]);
    const [process] = other.machine.processes.values();
    assert.equal(process?.files, "a file system of several chunks");
  });

  test("a missing, damaged, cut-off, swapped or foreign chunk is refused by its own error, and nothing is left behind", async () => {
    const { rig, other, identity, from } = await moved();
    const [first, second] = from.manifest.filesystem;
    assert.ok(first !== undefined && second !== undefined, "there are several chunks");
    const stored = rig.objects.stored(second.digest);
    const theirs = new SealedObjects(rig.store, otherKey);
    await theirs.put(second.digest, await rig.objects.get(second.digest));
    const newer = Buffer.from(stored).fill(9, 0, 1);
    for (const [bytes, expected] of [
      [undefined, "snapshot/missing"],
      [stored.subarray(0, -1), "chunk/truncated"],
      [Buffer.from("damaged!"), "chunk/truncated"],
      [Buffer.concat([stored, Buffer.of(0)]), "chunk/damaged"],
      [rig.objects.stored(first.digest), "chunk/misplaced"],
      [theirs.stored(second.digest), "chunk/misplaced"],
      [newer, "chunk/version"],
    ] as const) {
      const restore = rig.objects.replace(second.digest, bytes);
      await assert.rejects(activate(other, identity, from), code(expected), expected);
      restore();
    }
    const restore = rig.objects.alter(second.digest);
    await assert.rejects(activate(other, identity, from), code("chunk/damaged"));
    restore();
    assert.equal(other.machine.processes.size, 0);
    await activate(other, identity, from);
  });

  test("with another key than the one that it was sealed with nothing is restored", async () => {
    const { other, identity, from } = await moved();
    const theirs = { ...otherKey, tenantId: newTenantId(other.random) };
    await assert.rejects(activate(other, identity, { ...from, key: theirs }), {
      code: "snapshot/refused",
      details: { problem: "other tenant's key" },
    });
    const forged = { ...testTenantKey, secret: otherKey.secret };
    for (const key of [otherKey, forged])
      await assert.rejects(activate(other, identity, { ...from, key }), code("snapshot/missing"));
    const { digest } = from;
    const stored = await other.objects.get(digest);
    await new SealedObjects(other.store, otherKey).put(digest, stored);
    const { chain } = from.manifest;
    await new SealedObjects(other.store, otherKey).put(chain, await other.objects.get(chain));
    for (let next: Digest | null = chain; next !== null; ) {
      const bytes: Uint8Array = await other.objects.get(next);
      await new SealedObjects(other.store, otherKey).put(next, bytes);
      next = parseSealedObject(bytes).previous;
    }
    await assert.rejects(activate(other, identity, { ...from, key: otherKey }), {
      code: "snapshot/refused",
      details: { problem: "other key" },
    });
    assert.equal(other.machine.processes.size, 0);
  });

  test("the key is in no durable record, no event and no error", async () => {
    const { rig, other, identity, from } = await moved();
    await assert.rejects(activate(other, identity, { ...from, since: manifestDigest("x"), head: "" }));
    await activate(other, identity, from);
    const secret = Buffer.from(testTenantKey.secret.reveal());
    const text = [rig, other]
      .map(({ disk, audit }) => inspect([disk, audit.events], { depth: 20, maxArrayLength: null }))
      .join();
    assert.ok(text.includes(identity.sandboxId), "it is all there");
    for (const encoding of ["hex", "base64", "base64url"] as const)
      assert.ok(!text.includes(secret.toString(encoding)));
    assert.ok(!text.includes(inspect(testTenantKey.secret.reveal()).slice(0, 40)));
  });

  test("a manifest that differs from the signed one is refused: reordered, shortened, or of another sandbox", async () => {
    const { other, identity, from } = await moved();
    const { manifest } = from;
    for (const altered of [
      { ...manifest, filesystem: manifest.filesystem.toReversed() },
      { ...manifest, filesystem: manifest.filesystem.slice(1) },
      { ...manifest, memory: "none" as const },
      { ...manifest, createdAtSeconds: 1 },
    ]) {
      await assert.rejects(
        activate(other, identity, { ...from, manifest: altered }),
        code("snapshot/refused"),
      );
    }
    await assert.rejects(
      activate(other, other.identity(), from),
      code("snapshot/chain-refused"),
      "another sandbox",
    );
    assert.equal(other.machine.processes.size, 0);
  });

  test("R-5, incident 33: a manifest that the signed head of the chain does not name is refused", async () => {
    const { rig, other, identity, from } = await moved();
    const { certificate } = from.manifest;
    let refused = 0;
    for (const head of [
      rig.headOf(from.manifest, manifestDigest("a newer one")),
      rig.headOf(from.manifest, null),
      rig.authority.head({ sandboxId: other.identity().sandboxId, certificate, manifest: from.digest }),
      rig.headOf(from.manifest, from.digest, newSigningKey()),
      from.head.slice(1),
      "",
    ]) {
      await assert.rejects(activate(other, identity, { ...from, head }), refusedSnapshot, head);
      refused += 1;
    }
    faultLanded("a head of each other kind was given with it", refused - 5);
    assert.equal(other.machine.processes.size, 0);
  });

  test("R-10, incident 30: a snapshot whose certificate was signed by a key that is gone is restored all the same", async () => {
    const { rig, other, identity, from } = await moved();
    const next = newSigningKey();
    await other.worker.control.replaceKeys(rig.authority.bundle(2, [next]));
    await assert.rejects(
      activate(other, identity, from),
      code("snapshot/refused"),
      "the head is of the old key",
    );
    const replaced = other.audit.of("keys/replaced").filter(({ version }) => version === 2);
    faultLanded("the key that signed its certificate is not trusted any more", replaced.length);
    const head = rig.headOf(from.manifest, from.digest, next);
    await activate(other, identity, { ...from, head });
    assert.equal(other.machine.processes.size, 1);
  });

  test("a manifest of no earlier generation is refused", async () => {
    const { other, identity, from } = await moved();
    const same = other.identity({ sandboxId: identity.sandboxId, generation: 1 });
    await assert.rejects(
      other.worker.control.activate(other.request(same, { from })),
      code("snapshot/refused"),
    );
  });

  test("a manifest that the execution's certified key has not signed is refused", async () => {
    const { rig, other, identity, from } = await moved();
    const signed = signManifest(newSigningKey(), from.manifest);
    const forged = rig.sourceOf({ manifest: from.manifest, signed });
    await other.objects.put(forged.digest, Buffer.from(signed));
    await assert.rejects(activate(other, identity, forged), code("snapshot/refused"));
    await other.objects.put(manifestDigest("nonsense"), Buffer.from("nonsense"));
    const digest = manifestDigest("nonsense");
    const nonsense = { ...from, digest, head: rig.headOf(from.manifest, digest) };
    await assert.rejects(activate(other, identity, nonsense), code("snapshot/refused"));
    const nowhere = manifestDigest("nowhere");
    const unknown = { ...from, digest: nowhere, head: rig.headOf(from.manifest, nowhere) };
    await assert.rejects(activate(other, identity, unknown), code("snapshot/missing"));
  });
});
