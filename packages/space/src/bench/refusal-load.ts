// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { admit, CapabilityVerifier } from "@space/capability";
import { type ExecutionIdentity, freezeIdentity, parseGeneration } from "@space/model";
import { systemClock } from "../host/system-clock.ts";
import type { CapabilityScene } from "./capability-scene.ts";
import { rounded } from "./statistics.ts";

const distinct = 200;
const passes = { whole: 200, quick: 10 };

export interface RefusalReport {
  readonly kinds: readonly { readonly kind: string; readonly sent: number; readonly refused: number }[];
  /** Good requests between the others, and how many of them were refused. */
  readonly goodSent: number;
  readonly goodRefused: number;
  /** Requests that must be refused and were not. */
  readonly served: number;
  readonly perSecond: number;
}

interface Stream {
  readonly kind: string;
  readonly tokens: readonly string[];
}

/**
 * Sends requests that must be refused as fast as they are decided, each followed by a good one, and counts both. The
 * revoked ones are remembered before their key goes.
 */
export function measureRefusals(scene: CapabilityScene, quick: boolean): RefusalReport {
  const { ring, request, nowMs } = scene;
  const verifier = new CapabilityVerifier({ keys: ring });
  const revoked = new CapabilityVerifier({ keys: ring });
  for (const token of scene.tokens) revoked.verify(token);
  revoked.replaceKeys(scene.ringAfterRevocation); // what was remembered does not count any more
  const tally = new Map<string, { sent: number; refused: number }>();
  const count = (kind: string, token: string, by: CapabilityVerifier): void => {
    const entry = tally.get(kind) ?? { sent: 0, refused: 0 };
    tally.set(kind, entry);
    const verdict = admit({ ...request, nowMs, verification: by.verify(token) });
    entry.sent += 1;
    if (verdict.kind !== "match") entry.refused += 1;
  };
  const streams = streamsOf(scene);
  const good = scene.tokens.slice(0, distinct);
  const beganMs = performance.now();
  for (let pass = 0; pass < (quick ? passes.quick : passes.whole); pass += 1) {
    for (const [index, token] of good.entries()) {
      for (const { kind, tokens } of streams) count(kind, tokens[index] ?? "", verifier);
      count("revoked while remembered", token, revoked);
      count("good", token, verifier);
    }
  }
  const seconds = (performance.now() - beganMs) / 1000;
  const all = [...tally].map(([kind, sums]) => ({ kind, ...sums }));
  const kinds = all.filter(({ kind }) => kind !== "good");
  const { sent: goodSent, refused: goodRefused } = tally.get("good") ?? { sent: 0, refused: 0 };
  return {
    kinds,
    goodSent,
    goodRefused,
    served: kinds.reduce((sum, { sent, refused }) => sum + sent - refused, 0),
    perSecond: rounded(all.reduce((sum, { sent }) => sum + sent, 0) / seconds),
  };
}

function streamsOf({ identity, tokens, issue, nowMs }: CapabilityScene): readonly Stream[] {
  const past = { ...systemClock, wallMs: () => nowMs - 136_000 };
  const other: ExecutionIdentity = freezeIdentity({ ...identity, generation: parseGeneration("8") });
  const many = (make: (index: number) => string): readonly string[] =>
    Array.from({ length: distinct }, (_, n) => make(n));
  return [
    { kind: "expired", tokens: many(() => issue({ clock: past })) },
    { kind: "altered", tokens: many((n) => altered(tokens[n] ?? "", n)) },
    { kind: "other identity", tokens: many(() => issue({ identity: other })) },
  ];
}

/** Another character somewhere in the signed part. */
function altered(token: string, index: number): string {
  const at = 120 + ((index * 7) % (token.lastIndexOf(".") - 130));
  return `${token.slice(0, at)}${token.charAt(at) === "A" ? "B" : "A"}${token.slice(at + 1)}`;
}
