// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { claimedKeyId, type SealedLink, sealedObjectDigest, sealedObjectToBytes } from "@space/capability";
import {
  type ChainLinks,
  type Digest,
  type Generation,
  type SandboxId,
  type SealedSegment,
  SpaceError,
  type TenantKey,
} from "@space/model";
import type { ControlParts } from "./parts.ts";

/** So many objects are added one by one; the next takes the place of all of them, so that a restore reads few. */
export const foldEvery = 32;
/** Objects above this are begun anew, and chains above it are not folded. */
const objectGoalBytes = 1024 * 1024;
const noEnd = 2n ** 63n - 1n;
/** The objects of one sandbox's chain, those included whose place others have taken: one for each pause, at most. */
const segmentsLimit = 1_000_000;

type SealParts = Pick<ControlParts, "sandboxes" | "snapshots" | "keys">;

/** The chain of a sandbox as it is to be sealed now. */
export interface SealPlan {
  /** To be remembered with the claim, before {@link storeSeal}. */
  readonly added: readonly SealedSegment[];
  /** The object that the chain ends with. */
  readonly end: SealedSegment;
  readonly sandboxId: SandboxId;
  readonly bytes: ReadonlyMap<Digest, Buffer>;
  /** The newest objects that were remembered before, the newest first, as many as can be asked for. */
  readonly before: readonly SealedSegment[];
}

/**
 * everything that was signed about the sandbox, as objects that each name the one before. What was written before is
 * written no more, and what is written is bounded, however long the chain is: links since the newest object alone, except
 * that one of {@link foldEvery} holds again what the ones before it hold. Nothing is signed or verified here: the workers
 * do that. undefined for a sandbox that has never run.
 */
export async function planSeal(parts: SealParts, sandboxId: SandboxId): Promise<SealPlan | undefined> {
  const { sandboxes } = parts;
  const segments = await sandboxes.segments(sandboxId, foldEvery);
  const newest = segments[0];
  const links = await sandboxes.links(sandboxId, { after: newest?.through ?? 0n, through: noEnd });
  const groups = groupsOf(links);
  if (groups.length === 0)
    return newest && { added: [], end: newest, sandboxId, bytes: new Map(), before: segments };
  const folded = await fold(sandboxes, sandboxId, segments);
  const base = folded === undefined ? newest : folded.base;
  const run = folded !== undefined || newest === undefined ? 0 : (newest.run + 1) % foldEvery;
  const made = build(parts, sandboxId, folded?.groups ?? groups, { base, run });
  return { ...made, sandboxId, before: base === undefined ? [] : segments.slice(segments.indexOf(base)) };
}

/** The same of a sandbox that has run. Throws `chain/refused` where nothing was ever signed of it. */
export async function requireSeal(parts: SealParts, sandboxId: SandboxId): Promise<SealPlan> {
  const seal = await planSeal(parts, sandboxId);
  if (seal === undefined) throw new SpaceError("chain/refused", { link: "head", problem: "no certificate" });
  return seal;
}

/** Links up to a certificate: the manifests before it, then itself. */
interface Group {
  readonly through: Generation;
  readonly links: readonly SealedLink[];
  readonly sizeBytes: number;
}

/** A manifest that no certificate follows yet is left to the next object: it is in the snapshot itself. */
function groupsOf({ certificates, manifests }: ChainLinks): readonly Group[] {
  let at = 0;
  return certificates.map(({ generation: through, token: certificate }) => {
    const links: SealedLink[] = [];
    let sizeBytes = certificate.length;
    for (let next = manifests[at]; next !== undefined && next.generation < through; next = manifests[at]) {
      links.push({ manifest: next.token });
      sizeBytes += next.token.length;
      at += 1;
    }
    links.push({ certificate });
    return { through, links, sizeBytes };
  });
}

/** The links of the objects that were added since the last fold, and the new ones; undefined: it is not the time, or they are too many. */
async function fold(
  sandboxes: SealParts["sandboxes"],
  sandboxId: SandboxId,
  segments: readonly SealedSegment[],
): Promise<{ readonly base: SealedSegment; readonly groups: readonly Group[] } | undefined> {
  const [newest] = segments;
  const base = newest && segments[newest.run];
  if (newest?.run !== foldEvery - 1 || base === undefined) return undefined;
  const links = await sandboxes.links(sandboxId, { after: base.through, through: noEnd });
  const groups = groupsOf(links);
  const sizeBytes = groups.reduce((sum, group) => sum + group.sizeBytes, 0);
  return sizeBytes > objectGoalBytes ? undefined : { base, groups };
}

function build(
  parts: SealParts,
  sandboxId: SandboxId,
  groups: readonly Group[],
  { base, run }: { readonly base: SealedSegment | undefined; readonly run: number },
): Pick<SealPlan, "added" | "end" | "bytes"> {
  const added: SealedSegment[] = [];
  const bytes = new Map<Digest, Buffer>();
  let before = base;
  for (const { links, through } of cut(groups)) {
    const object = objectOf(parts, sandboxId, { links, previous: before?.digest ?? null });
    const digest = sealedObjectDigest(object);
    before = {
      digest,
      previous: before?.digest ?? null,
      after: before?.through ?? 0n,
      through,
      run: added.length === 0 ? run : 0,
    };
    bytes.set(digest, object);
    added.push(before);
  }
  if (before === undefined) throw new TypeError("there are links");
  return { added, end: before, bytes };
}

/** Groups in objects of about {@link objectGoalBytes}: one, unless many executions were certified since the last snapshot. */
function cut(
  groups: readonly Group[],
): readonly { readonly links: readonly SealedLink[]; readonly through: Generation }[] {
  const objects: { links: SealedLink[]; through: Generation; sizeBytes: number }[] = [];
  for (const { links, through, sizeBytes } of groups) {
    const last = objects.at(-1);
    if (last === undefined || last.sizeBytes + sizeBytes > objectGoalBytes)
      objects.push({ links: [...links], through, sizeBytes });
    else {
      last.links.push(...links);
      last.through = through;
      last.sizeBytes += sizeBytes;
    }
  }
  return objects;
}

/** with the bundles that show whose keys signed the links, so that the root's public key is enough to verify them. */
function objectOf(
  { keys }: SealParts,
  sandboxId: SandboxId,
  { links, previous }: { readonly links: readonly SealedLink[]; readonly previous: Digest | null },
): Buffer {
  const kids = new Set(
    links.map((link) => claimedKeyId("certificate" in link ? link.certificate : link.manifest) ?? ""),
  );
  const bundles = new Set([...kids].flatMap((kid) => keys.archive.bundleOf(kid) ?? []));
  return sealedObjectToBytes({ sandboxId, previous, bundles: [...bundles], links });
}

/**
 * Makes the plan's objects durable, sealed with this key; and those before them that are not there: their pause may have been
 * given up before they were written, or the tenant's key is another now, and then that is the whole chain. They are the
 * same again, made of the same links. Throws `store/failed` or `store/full`.
 */
export async function storeSeal(
  parts: SealParts,
  { sandboxId, bytes, before }: Pick<SealPlan, "sandboxId" | "bytes" | "before">,
  key: TenantKey,
): Promise<void> {
  const { objects } = parts.snapshots.open(key);
  const absent: SealedSegment[] = [];
  for await (const segment of backwards(parts, sandboxId, before)) {
    if (await objects.keeps(segment.digest)) break; // so those before it are there too: the oldest is written first
    absent.unshift(segment);
  }
  for (const segment of absent) await objects.put(segment.digest, await rebuild(parts, sandboxId, segment));
  for (const [digest, object] of bytes) await objects.put(digest, object);
}

/** The chain from the first of these on, the newest first. Those that are not among them are asked for only when they are come to. */
async function* backwards(
  { sandboxes }: SealParts,
  sandboxId: SandboxId,
  newest: readonly SealedSegment[],
): AsyncIterable<SealedSegment> {
  const [first] = newest;
  if (first === undefined) return;
  const near = byDigest(newest);
  let last = first.digest;
  for (const segment of chainFrom(near, first.digest)) {
    last = segment.digest;
    yield segment;
  }
  if (near.get(last)?.previous == null) return;
  const all = await sandboxes.segments(sandboxId, segmentsLimit);
  yield* chainFrom(byDigest(all), near.get(last)?.previous ?? null);
}

function byDigest(segments: readonly SealedSegment[]): ReadonlyMap<Digest, SealedSegment> {
  return new Map(segments.map((segment) => [segment.digest, segment]));
}

/** As far as they are known. */
function* chainFrom(
  segments: ReadonlyMap<Digest, SealedSegment>,
  from: Digest | null,
): Iterable<SealedSegment> {
  for (let next = from; next !== null; ) {
    const segment = segments.get(next);
    if (segment === undefined) return;
    yield segment;
    next = segment.previous;
  }
}

/** what a restore reads of the chain: from its newest object on, and from the one that the snapshot's manifest names. */
export async function objectsOfChain(
  { sandboxes }: Pick<SealParts, "sandboxes">,
  sandboxId: SandboxId,
  named: Digest,
): Promise<ReadonlySet<Digest>> {
  const all = await sandboxes.segments(sandboxId, segmentsLimit);
  const segments = byDigest(all);
  const needed = new Set([named]);
  for (const from of [named, all[0]?.digest ?? null])
    for (const { digest } of chainFrom(segments, from)) needed.add(digest);
  return needed;
}

async function rebuild(parts: SealParts, sandboxId: SandboxId, segment: SealedSegment): Promise<Buffer> {
  const { after, through, previous, digest } = segment;
  const links = groupsOf(await parts.sandboxes.links(sandboxId, { after, through })).flatMap(
    (group) => group.links,
  );
  const object = objectOf(parts, sandboxId, { links, previous });
  if (sealedObjectDigest(object) === digest) return object;
  throw new SpaceError("snapshot/chain-refused", {
    problem: "damaged",
    link: `object ${digest.slice(0, 12)}`,
  });
}
