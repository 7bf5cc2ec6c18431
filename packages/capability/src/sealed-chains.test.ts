// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type Digest, type SealedChainProblem, SpaceError } from "@space/model";
import { manifestDigest } from "./digest.ts";
import { newSigningKey } from "./keys.ts";
import { readVouchedManifest } from "./manifest.ts";
import { absent, bundles, root, Sealing, whole } from "./sealed.fixture.ts";
import { SealedChains } from "./sealed-chains.ts";
import { verifySealedManifest } from "./sealed-links.ts";
import { parseSealedObject, type SealedLink } from "./sealed-segment.ts";
import { bundle, identity, otherSandboxId, sandboxId } from "./signed.fixture.ts";

const refuses = (opening: Promise<unknown>, problem: SealedChainProblem, link: string): Promise<void> =>
  assert.rejects(opening, { code: "snapshot/chain-refused", details: { problem, link } });

it("R-5, R-10: what a snapshot names is enough, with the root's public key, also where the keys that signed it are gone", async () => {
  const sealing = whole();
  const end = await sealing.open();
  assert.equal(end.sandboxId, sandboxId);
  assert.equal(end.certificate.certificate.identity.generation, 5n);
  assert.equal(end.links, 4, "the execution that died without a snapshot is seen, too");
  const signed = sealing.snapshot();
  assert.deepEqual(verifySealedManifest(signed, end).identity, identity(5));
  assert.equal(readVouchedManifest(signed, manifestDigest(signed)).chain, sealing.end);
});

it("R-5: a chain under another root is refused", async () => {
  const sealing = whole();
  const others = new SealedChains({ root: newSigningKey().publicKey });
  await refuses(others.open(sealing.end ?? absent, sealing.read), "unknown key", "object 1 of 2, bundle");
});

it("R-5: a missing, altered, cut or foreign object is refused, wherever in the chain it is", async () => {
  for (const at of [0, 1]) {
    const sealing = whole();
    const digest = [...sealing.objects.keys()][at] ?? assert.fail("there are two");
    const bytes = Buffer.from(sealing.objects.get(digest) ?? "");
    const link = `object ${digest.slice(0, 12)}`;
    for (const place of [0, 30, bytes.length >> 1, bytes.length - 1]) {
      const altered = Buffer.from(bytes);
      altered.writeUInt8(altered.readUInt8(place) ^ 1, place);
      sealing.objects.set(digest, altered);
      await refuses(sealing.open(), "damaged", link);
    }
    for (const other of [bytes.subarray(1), bytes.subarray(0, -1), Buffer.alloc(0)]) {
      sealing.objects.set(digest, other);
      await refuses(sealing.open(), "damaged", link);
    }
    sealing.objects.set(digest, [...sealing.objects.values()][1 - at] ?? bytes);
    await refuses(sealing.open(), "damaged", link);
    sealing.objects.delete(digest);
    await refuses(sealing.open(), "missing", link);
    sealing.objects.set(digest, bytes);
    await sealing.open();
  }
});

it("R-5: links of another sandbox are refused, whole chains and single ones", async () => {
  const other = new Sealing(otherSandboxId).certify(1);
  const taken = other.links[0] ?? assert.fail("there is one");
  other.seal();
  const after = new Sealing().certify(1);
  after.objects.set(other.end ?? absent, other.objects.get(other.end ?? absent) ?? Buffer.alloc(0));
  after.seal({ previous: other.end });
  await refuses(after.open(), "other sandbox", "object 2 of 2, link 1 of 1");
  const within = new Sealing();
  within.seal({ links: [taken] });
  await refuses(within.open(), "other sandbox", "object 1 of 1, link 1 of 1");
  const renamed = new Sealing().certify(1);
  renamed.seal();
  renamed.seal({ sandboxId: otherSandboxId, links: [taken] });
  await refuses(renamed.open(), "other sandbox", "object 2 of 2, link 1 of 1");
});

it("R-5: a link left out, doubled, put in another order or taken from another line is refused by its place", async () => {
  const [one, snapshot, two, five] = whole().generations.length === 3 ? linksOf(whole()) : assert.fail();
  const broken: readonly [SealedLink[], number][] = [
    [[snapshot, two, five], 1],
    [[one, two, five], 2],
    [[one, snapshot, five], 3],
    [[one, snapshot, five, two], 3],
    [[one, one, snapshot, two, five], 2],
    [[one, snapshot, snapshot, two, five], 3],
    [[two, five], 1],
  ];
  for (const [links, at] of broken) {
    const sealing = new Sealing();
    sealing.seal({ links });
    await refuses(sealing.open(), "broken link", `object 1 of 1, link ${at} of ${links.length}`);
  }
  const sealing = new Sealing();
  sealing.seal({ links: [one, snapshot, two, five] });
  await sealing.open();
});

let sealed: readonly [SealedLink, SealedLink, SealedLink, SealedLink] | undefined;
/** The links of one whole chain, in order. */
function linksOf(sealing: Sealing): readonly [SealedLink, SealedLink, SealedLink, SealedLink] {
  const links = [...sealing.objects.values()].flatMap((bytes) => parseSealedObject(bytes).links);
  const [a, b, c, d] = links;
  assert.ok(a && b && c && d);
  sealed ??= [a, b, c, d];
  return sealed;
}

it("R-5: a chain begins at generation 1", async () => {
  const sealing = new Sealing().certify(2);
  sealing.seal();
  await refuses(sealing.open(), "broken link", "object 1 of 1, link 1 of 1");
});

it("R-1: generations only grow, and one is one process with one key", async () => {
  for (const change of [
    { identity: identity(3) },
    { identity: identity(5, { activation: "z" }) },
    { identity: identity(5, { attempt: 2 }) },
  ]) {
    const sealing = new Sealing().certify(1).certify(5).certify(6, change);
    sealing.seal();
    await refuses(sealing.open(), "broken link", "object 1 of 1, link 3 of 3");
  }
});

it("R-5, statement 5: an execution is restored from the newest snapshot before it, or from its parent's", async () => {
  for (const restoredFrom of [null, absent]) {
    const sealing = new Sealing().certify(1);
    sealing.commit(sealing.snapshot()).certify(2, { restoredFrom });
    sealing.seal();
    await refuses(sealing.open(), "broken link", "object 1 of 1, link 3 of 3");
  }
  const forked = new Sealing().certify(1, {
    restoredFrom: absent,
    origin: { kind: "fork", parentManifest: absent },
  });
  forked.seal();
  await forked.open();
  forked.certify(2, { restoredFrom: absent });
  forked.seal();
  await refuses(forked.open(), "broken link", "object 2 of 2, link 1 of 1");
  const snapshotted = new Sealing().certify(1, {
    restoredFrom: absent,
    origin: { kind: "template", parentManifest: absent },
  });
  snapshotted.commit(snapshotted.snapshot()).certify(2).seal();
  await snapshotted.open();
});

it("R-10: a link counts only under a key that one of the object's bundles holds", async () => {
  const signer = newSigningKey();
  const stranger = new Sealing(sandboxId, signer).certify(1);
  stranger.seal();
  await refuses(stranger.open(), "unknown key", "object 1 of 1, link 1 of 1");
  const own = new Sealing(sandboxId, signer).certify(1);
  own.seal({ bundles: [bundle(newSigningKey(), 1, [signer])] });
  await refuses(own.open(), "unknown key", "object 1 of 1, bundle");
  const missing = whole();
  missing.certify(6);
  missing.seal({ bundles: [bundles[0] ?? ""] });
  await refuses(missing.open(), "unknown key", "object 3 of 3, link 1 of 1");
  const forged = new Sealing().certify(1);
  const token = forged.generations[0]?.certificate ?? "";
  forged.seal({ links: [{ certificate: `${token.slice(0, -86)}${"A".repeat(86)}` }] });
  await refuses(forged.open(), "signature", "object 1 of 1, link 1 of 1");
  const unsigned = new Sealing().certify(1);
  const [whole1 = ""] = bundles;
  unsigned.seal({ bundles: [`${whole1.slice(0, -86)}${"A".repeat(86)}`] });
  await refuses(unsigned.open(), "signature", "object 1 of 1, bundle");
  const nonsense = new Sealing().certify(1);
  nonsense.seal({ bundles: ["x"] });
  await refuses(nonsense.open(), "damaged", "object 1 of 1, bundle");
});

it("R-5: a manifest counts only when the newest execution signed it and it follows the newest manifest", async () => {
  const cases: readonly [SealedChainProblem, (sealing: Sealing) => string][] = [
    ["broken link", (sealing) => sealing.snapshot({}, newSigningKey())],
    ["broken link", (sealing) => sealing.snapshot({ previousManifest: absent })],
    ["broken link", (sealing) => sealing.snapshot({ certificate: absent })],
    ["broken link", (sealing) => sealing.snapshot({ identity: identity(9) })],
    ["other sandbox", (sealing) => sealing.snapshot({ identity: identity(2, { sandbox: otherSandboxId }) })],
    ["damaged", () => "x"],
  ];
  for (const [problem, make] of cases) {
    const sealing = new Sealing().certify(2, { identity: identity(1) });
    sealing.commit(make(sealing));
    const links = [...sealing.links];
    sealing.certify(5);
    sealing.seal({ links: [...links, ...sealing.links.slice(-1)] });
    await refuses(sealing.open(), problem, "object 1 of 1, link 2 of 3");
  }
});

it("R-5: the manifest that a chain is sealed in follows it, and nothing else does", async () => {
  const sealing = whole();
  const end = await sealing.open();
  const refused = (signed: string, problem: SealedChainProblem): void => {
    assert.throws(() => verifySealedManifest(signed, end), { details: { problem, link: "manifest" } });
  };
  refused(sealing.snapshot({ previousManifest: null }), "broken link");
  refused(sealing.snapshot({ certificate: absent }), "broken link");
  refused(sealing.snapshot({ identity: identity(2) }), "broken link");
  refused(sealing.snapshot({ identity: identity(5, { sandbox: otherSandboxId }) }), "other sandbox");
  assert.throws(() => verifySealedManifest(sealing.snapshot({}, sealing.generations[0]?.key), end), {
    code: "snapshot/refused",
  });
});

it("R-5: what was verified once is verified no more, and the newest object is read all the same", async () => {
  const sealing = new Sealing().certify(1);
  const chains = new SealedChains({ root: root.publicKey, remembered: 2 });
  for (let generation = 2; generation <= 40; generation += 1) {
    await chains.open(sealing.seal(), sealing.read);
    sealing.commit(sealing.snapshot()).certify(generation);
  }
  const newest = sealing.seal();
  sealing.reads = 0;
  const end = await chains.open(newest, sealing.read);
  assert.deepEqual([end.links, sealing.reads], [79, 1]);
  sealing.reads = 0;
  assert.deepEqual(await chains.open(newest, sealing.read), end);
  assert.equal(sealing.reads, 1);
  sealing.reads = 0;
  assert.deepEqual(await sealing.open(), end);
  assert.equal(sealing.reads, 40, "by whoever has never seen it, all of them");
  sealing.objects.delete(newest);
  await refuses(chains.open(newest, sealing.read), "missing", `object ${newest.slice(0, 12)}`);
});

it("R-5: what was remembered of one chain helps no other one", async () => {
  const [one, two] = [whole(), new Sealing(otherSandboxId).certify(1)];
  const chains = new SealedChains({ root: root.publicKey });
  await chains.open(one.end ?? absent, one.read);
  two.seal({ previous: one.end });
  const both = async (digest: Digest): Promise<Uint8Array> => one.objects.get(digest) ?? two.read(digest);
  await refuses(chains.open(two.end ?? absent, both), "other sandbox", "object 1 of 1, link 1 of 1");
});

it("R-5: what the store cannot read is no verdict", async () => {
  const sealing = whole();
  const failing = new SealedChains({ root: root.publicKey }).open(sealing.end ?? absent, async () => {
    throw new SpaceError("store/failed", { step: "get" });
  });
  await assert.rejects(failing, { code: "store/failed" });
});

it("R-5: a chain that does not fit into memory is read twice, and verified alike", async () => {
  const sealing = whole();
  const chains = new SealedChains({ root: root.publicKey, heldBytes: 2500 });
  const end = await chains.open(sealing.end ?? absent, sealing.read);
  assert.deepEqual([end.links, sealing.reads], [4, 4]);
  const small = new Sealing().certify(1);
  small.seal({ links: small.links.slice(0, 0) });
  await refuses(small.open(), "damaged", `object ${small.end?.slice(0, 12)}`);
});
