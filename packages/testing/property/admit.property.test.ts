// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  admit,
  type CapabilityVerification,
  CapabilityVerifier,
  certificateDigest,
  KeyRing,
} from "@space/capability";
import {
  type ExecutionIdentity,
  type IdentityVerdict,
  type NeededAccess,
  parseIdentity,
  parseSandboxId,
  type RuntimeRecord,
} from "@space/model";
import fc from "fast-check";
import { bundle, capabilityOf, root } from "../src/token-vectors.ts";
import {
  identityJson,
  issuedAt,
  otherTarget,
  portAccess,
  presenter,
  target,
} from "../src/vector-identities.ts";

const verifier = new CapabilityVerifier({ keys: KeyRing.fromBundle(bundle, root.publicKey) });
const control = { purpose: "control", scopes: ["files:read", "pty"] };

/** Few values for each part, so that two identities are often equal or differ in one part only. */
const partArbitraries = {
  sandboxId: fc.constantFrom(target, target, target, otherTarget),
  generation: fc.constantFrom("1", "2", "10"),
  worker: fc.constantFrom("a", "b"),
  activation: fc.constantFrom("a", "b"),
  attempt: fc.constantFrom(1, 2),
};
const identities = fc.record(partArbitraries, { noNullPrototype: true });
/** What the record differs in: often nothing, often one part. */
const differences = fc.oneof(
  fc.constant({}),
  fc
    .constantFrom(...Object.keys(partArbitraries))
    .chain((name) => identities.map((other) => ({ [name]: other[name as keyof Parts] }))),
  identities,
);
type Parts = typeof identities extends fc.Arbitrary<infer T> ? T : never;

interface Case {
  readonly claimed: Parts;
  readonly installed: Parts | null;
  readonly retired: boolean;
  readonly target: string;
  readonly life: number;
  readonly afterMs: number;
  readonly rightPresenter: boolean;
  readonly isPort: boolean;
  readonly needed: NeededAccess;
}

/** R-13's table and the checks before it, written again from the page and from nothing else. */
function oracle(it: Case): string {
  if (it.life > 120 || it.life <= 0) return "deny";
  if (it.afterMs < -15_000) return "deny";
  if (it.afterMs >= (it.life + 15) * 1000) return "deny";
  if (!it.rightPresenter) return "deny";
  if (it.isPort !== (it.needed.purpose === "service-port")) return "deny";
  if (it.needed.purpose === "control" && it.needed.scope !== "files:read" && it.needed.scope !== "pty")
    return "deny";
  if (it.needed.purpose === "service-port" && (it.needed.port !== 8080 || it.needed.protocol !== "http"))
    return "deny";
  if (it.claimed.sandboxId !== it.target) return "deny";
  if (it.installed === null) return "refresh-route";
  // The record is found by the target; one of another sandbox is nothing to serve from.
  if (it.installed.sandboxId !== it.target) return "deny";
  if (it.retired) return "refresh-route";
  const text = (parts: Parts): string => Object.values(parts).join();
  return text(it.claimed) === text(it.installed) ? "match" : "refresh-route";
}

const needs: fc.Arbitrary<NeededAccess> = fc.oneof(
  fc
    .constantFrom("files:read", "pty", "files:write", undefined)
    .map((scope) => ({ purpose: "control", scope }) as const),
  fc
    .record({ port: fc.constantFrom(8080, 8080, 8081), protocol: fc.constantFrom("http", "http", "tcp") })
    .map((port) => ({ purpose: "service-port", ...port }) as const),
);

/** Half of the cases go wrong nowhere but in the identity. */
const cases: fc.Arbitrary<Case> = fc
  .record({
    claimed: identities,
    difference: fc.option(differences, { freq: 8 }),
    retired: fc.constantFrom(false, false, false, true),
    target: fc.constantFrom(target, target, target, otherTarget),
    plain: fc.boolean(),
    life: fc.constantFrom(1, 60, 119, 120, 121, 0, -1),
    afterMs: fc.oneof(
      fc.integer({ min: -20_000, max: 150_000 }),
      fc.constantFrom(-15_001, -15_000, 119_900, 120_000, 134_900, 134_999, 135_000),
    ),
    rightPresenter: fc.constantFrom(true, true, false),
    isPort: fc.boolean(),
    needed: needs,
  })
  .map(({ plain, difference, ...rest }) => {
    const made = { ...rest, installed: difference && { ...rest.claimed, ...difference } };
    if (!plain) return made;
    const needed: NeededAccess = made.isPort ? portAccess : { purpose: "control", scope: "pty" };
    return { ...made, life: 120, afterMs: 1000, rightPresenter: true, needed };
  });

const recordOf = (identity: ExecutionIdentity, retired: boolean): RuntimeRecord => ({
  identity,
  state: retired ? "retired" : "installed",
  certificate: "",
  certificateDigest: certificateDigest(""),
  epoch: 1n,
  hostBootId: "",
  evidence: "",
});

const verify = ({ claimed, life, isPort }: Case): CapabilityVerification =>
  verifier.verify(
    capabilityOf({
      sbx: identityJson(claimed),
      exp: issuedAt + life,
      access: isPort ? portAccess : control,
    }),
  );

function decide(made: Case): IdentityVerdict {
  const { installed, retired, rightPresenter, needed, afterMs } = made;
  return admit({
    verification: verify(made),
    target: parseSandboxId(made.target),
    record: installed === null ? undefined : recordOf(parseIdentity(identityJson(installed)), retired),
    presenter: rightPresenter ? presenter : "",
    needed,
    nowMs: issuedAt * 1000 + afterMs,
  });
}

it("R-13: the verdict is the table's, for any capability, record and request", () => {
  const seen = { match: 0, "refresh-route": 0, deny: 0 };
  fc.assert(
    fc.property(cases, (made) => {
      const verdict = decide(made);
      seen[verdict.kind] += 1;
      assert.equal(
        verdict.kind,
        oracle(made),
        JSON.stringify(verdict, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
      );
      const identity = parseIdentity(identityJson(made.claimed));
      if (verdict.kind === "match") assert.deepEqual(verdict.identity, identity);
      if (verdict.kind === "refresh-route") assert.deepEqual(verdict.rejected, identity);
    }),
    { numRuns: 3000 },
  );
  for (const [kind, times] of Object.entries(seen)) assert.ok(times > 100, `${kind} came ${times} times`);
});

it("statement 1: whatever else differs, only the installed execution ever matches", () => {
  fc.assert(
    fc.property(cases, (made) => {
      if (decide(made).kind !== "match") return;
      assert.deepEqual(made.claimed, made.installed);
      assert.deepEqual([made.retired, made.claimed.sandboxId], [false, made.target]);
    }),
    { numRuns: 1000 },
  );
});
