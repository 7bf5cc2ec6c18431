// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the capability package's `sealed-segment.ts`, in front of the real one (see loader.ts): the very bytes that
// were read before in this process say again what they said. A damaged object is other bytes.

import type * as Capability from "@space/capability";

type RealModule = Pick<
  typeof Capability,
  "parseSealedObject" | "sealedObjectDigest" | "sealedObjectToBytes" | "sealedSegmentLimitBytes"
>;

const real: RealModule = await import(
  new URL("../../capability/src/sealed-segment.ts", import.meta.url).href
);

export const { sealedObjectDigest, sealedObjectToBytes, sealedSegmentLimitBytes } = real;

const memory = new WeakMap<Uint8Array, Capability.SealedChainObject>();

export function parseSealedObject(bytes: Uint8Array): Capability.SealedChainObject {
  const known = memory.get(bytes);
  if (known !== undefined) return known;
  const object = real.parseSealedObject(bytes);
  memory.set(bytes, object);
  return object;
}
