// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The seven statements of section 8 of the identity protocol, and the rules behind them that a run can see broken. */
export type Statement =
  | "1: no effect across executions"
  | "2: one incarnation acts"
  | "3: no byte after the epoch"
  | "4: repair admits nobody"
  | "5: newest intact snapshot"
  | "6: a delete wins"
  | "7: acknowledged writes survive"
  | "R-2: placement"
  | "R-4: lifecycle and identity"
  | "R-7: presenter"
  | "R-9: time"
  | "R-10: keys"
  | "R-12: durable before acknowledged"
  | "R-22: each byte once"
  | "R-24: only a fresh look-up repairs"
  | "R-25: authorisation ends"
  | "R-26: one repair"
  | "R-28: never a second run"
  | "settles: every state becomes true"
  | "settles: snapshots are kept, and nothing else"
  | "no component fails by a bug";

export interface Violation {
  readonly statement: Statement;
  readonly problem: string;
  /** True time since the world began. */
  readonly atMs: number;
  /** Events before it. */
  readonly step: number;
  /** Executions that had begun by then. */
  readonly executions: number;
}

/** What a capability says, read by nobody's code but this. */
export interface ReadCapability {
  readonly sandboxId: string;
  readonly generation: string;
  readonly workerId: string;
  readonly podUid: string | undefined;
  readonly activationId: string;
  readonly attempt: number;
  readonly presenter: string;
  readonly kid: string;
}

/** Headers that were read, which are the same for all that one key signs; forgotten together when there are so many. */
const kids = new Map<string, string>();
const kidsLimit = 1000;

/** Reads a capability's text, without checking anything. */
export function readCapability(token: string): ReadCapability {
  const headerEnd = token.indexOf(".");
  const kid = kidOf(token.slice(0, headerEnd));
  const { sbx, cnf } = decoded(token.slice(headerEnd + 1, token.indexOf(".", headerEnd + 1)));
  return {
    sandboxId: sbx.sandboxId,
    generation: sbx.generation,
    workerId: sbx.placement.workerId,
    podUid: sbx.placement.podUid,
    activationId: sbx.activation.id,
    attempt: sbx.activation.attempt,
    presenter: cnf["x5t#S256"],
    kid,
  };
}

function kidOf(header: string): string {
  const known = kids.get(header);
  if (known !== undefined) return known;
  const { kid } = decoded(header);
  if (kids.size >= kidsLimit) kids.clear();
  kids.set(header, kid);
  return kid;
}

function decoded(part: string) {
  return JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
}

/** Reads a verification bundle's text, without checking anything. */
export function readBundle(token: string): { readonly keys: readonly string[]; readonly iat: number } {
  const { keys, iat } = decoded(token.split(".")[1] ?? "");
  return { keys: keys.map(({ kid }: { readonly kid: string }) => kid), iat };
}
