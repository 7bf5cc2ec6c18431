// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxState } from "./lifecycle.ts";
import type { SealedChainProblem } from "./sealed-chain-problem.ts";
import type { SigningKeyState } from "./signing-key.ts";

/** What a failure means for the caller; the one table in `wire` maps it to HTTP and RPC statuses. */
export type ErrorKind =
  | "invalid"
  | "unauthenticated"
  | "denied"
  | "not-found"
  | "conflict"
  /** It was there, and what it was is gone: never the same as "not found". */
  | "gone"
  | "exhausted"
  | "too-large"
  | "unavailable"
  | "internal";

/**
 * Every failure that SPACE can report, with its public fields. Adding a line here (and its kind below) is the only
 * way to add an error. Codes are stable for ever.
 */
export interface ErrorDetails {
  "input/invalid": { readonly field: string; readonly problem: string };
  "input/too-large": { readonly what: string; readonly limitBytes: number };
  "key/missing": Record<never, never>;
  "key/unknown": Record<never, never>;
  "token/missing": Record<never, never>;
  "token/wrong": Record<never, never>;
  "sandbox/not-found": { readonly sandboxId: string };
  "sandbox/state": { readonly sandboxId: string; readonly state: SandboxState };
  /** It died without a snapshot of its last state. `snapshot` is the newest that there is, to be named by who resumes it. */
  "sandbox/lost": { readonly sandboxId: string; readonly reason: string; readonly snapshot: string | null };
  "sandbox/not-running": { readonly sandboxId: string };
  "sandbox/port-closed": { readonly sandboxId: string; readonly port: number };
  "template/not-found": { readonly template: string };
  "limit/sandboxes": { readonly limit: number };
  "capability/malformed": { readonly problem: string };
  "capability/key": Record<never, never>;
  "capability/signature": Record<never, never>;
  "capability/time": { readonly problem: "expired" | "not-yet" | "lifetime" };
  "bundle/refused": { readonly problem: string };
  /** a verification bundle older than the held one. */
  "bundle/rollback": { readonly held: number; readonly offered: number };
  /** what needs the root's signature waits until the root key is there. */
  "root-key/absent": Record<never, never>;
  "signing-key/unknown": { readonly kid: string };
  "signing-key/state": { readonly kid: string; readonly state: SigningKeyState };
  "signing-key/limit": { readonly limit: number };
  /** `link` says which statement of the chain it is. */
  "chain/refused": { readonly link: string; readonly problem: string };
  "certificate/refused": { readonly problem: string };
  "lease/refused": { readonly problem: string };
  /** A worker does not give a snapshot's chunks to another. The one that asked is told nothing more; the audit log says why. */
  "hand-over/refused": { readonly problem: string };
  "record/conflict": {
    readonly sandboxId: string;
    readonly installed: bigint;
    readonly offered: bigint;
  };
  "record/stale": {
    readonly sandboxId: string;
    readonly installed: bigint;
    readonly offered: bigint;
  };
  "record/absent": { readonly sandboxId: string };
  "route/unrepaired": { readonly sandboxId: string; readonly retryAfterMs: number };
  "route/refused": { readonly sandboxId: string };
  "worker/unreachable": { readonly workerId: string };
  /** Its store is a copy, or older than the one that this worker was last connected with: it has to enrol as a new worker. */
  "worker/superseded": { readonly workerId: string };
  "worker/none-free": Record<never, never>;
  /** it has no lease now, so it neither starts nor serves anything. */
  /** what ran before may still act on a worker that has not confirmed its end: it is waited for. */
  "worker/unfenced": { readonly workerId: string; readonly retryAfterMs: number };
  "worker/fenced": { readonly workerId: string };
  "worker/busy": { readonly sandboxId: string; readonly limit: number };
  "endpoint/mismatch": { readonly problem: string };
  "endpoint/unverifiable": { readonly problem: string };
  "substrate/failed": { readonly step: string };
  "substrate/unsupported": { readonly feature: string };
  "snapshot/refused": { readonly problem: string };
  /** It runs on, unsaved: `holder` does something that cannot be saved with its memory, and `remedy` says what to change. Not a conflict: E2B's SDK takes that for paused already. */
  "snapshot/unsavable": { readonly holder: string; readonly problem: string; readonly remedy: string };
  /** The attempt to save it has ended what was to be saved. */
  "snapshot/fatal": { readonly problem: string };
  "snapshot/missing": { readonly digest: string };
  /** Made by a version of SPACE that wrote manifests in another form: only that version can resume it. */
  "snapshot/version": { readonly version: number };
  /** `link` says which statement of the chain that is sealed in the snapshot, or which of its objects. */
  "snapshot/chain-refused": { readonly problem: SealedChainProblem; readonly link: string };
  /** What the store holds under a chunk's name is not what was sealed there. `name` is the name in the store, which tells nothing of the content. */
  "chunk/damaged": { readonly name: string };
  "chunk/truncated": { readonly name: string };
  /** A whole chunk, but another one's: of this tenant or of another. */
  "chunk/misplaced": { readonly name: string };
  /** Intact, and of another length than the manifest says. */
  "chunk/size": { readonly name: string };
  /** Sealed in a form that is newer than this program, or in none. */
  "chunk/version": { readonly version: number };
  /** A tenant's key that its snapshots were sealed with is not in the store. */
  "tenant-key/missing": { readonly keyId: string };
  /** The key-encryption key that something was wrapped under is not held here (any more). */
  "key-wrapping/unknown": { readonly wrappingKey: string };
  "key-wrapping/refused": { readonly problem: string };
  "key-wrapping/failed": { readonly step: string };
  "store/failed": { readonly step: string };
  /** Nothing was written: what is left of the disk under `what` is kept for what runs. */
  "store/full": { readonly what: "snapshots" };
  "stream/lost": Record<never, never>;
  "link/closed": Record<never, never>;
  "link/protocol": { readonly problem: string };
  "deadline/passed": { readonly what: string; readonly limitMs: number };
  "host/unfit": { readonly problem: string; readonly remedy: string };
  "data/in-use": { readonly pid: number };
  "guest/operation": { readonly errno: number; readonly step: string };
  "internal/bug": { readonly where: string };
}

export type ErrorCode = keyof ErrorDetails;

const kinds = {
  "input/invalid": "invalid",
  "input/too-large": "too-large",
  "key/missing": "unauthenticated",
  "key/unknown": "unauthenticated",
  "token/missing": "unauthenticated",
  "token/wrong": "unauthenticated",
  "sandbox/not-found": "not-found",
  "sandbox/state": "conflict",
  "sandbox/lost": "gone",
  "sandbox/not-running": "not-found",
  "sandbox/port-closed": "unavailable",
  "template/not-found": "not-found",
  "limit/sandboxes": "exhausted",
  "capability/malformed": "denied",
  "capability/key": "denied",
  "capability/signature": "denied",
  "capability/time": "denied",
  "bundle/refused": "denied",
  "bundle/rollback": "denied",
  "root-key/absent": "unavailable",
  "signing-key/unknown": "not-found",
  "signing-key/state": "conflict",
  "signing-key/limit": "exhausted",
  "chain/refused": "denied",
  "certificate/refused": "denied",
  "lease/refused": "denied",
  "hand-over/refused": "denied",
  "record/conflict": "conflict",
  "record/stale": "conflict",
  "record/absent": "not-found",
  "route/unrepaired": "unavailable",
  "route/refused": "denied",
  "worker/unreachable": "unavailable",
  "worker/superseded": "denied",
  "worker/none-free": "unavailable",
  "worker/fenced": "unavailable",
  "worker/unfenced": "unavailable",
  "worker/busy": "unavailable",
  "endpoint/mismatch": "unavailable",
  "endpoint/unverifiable": "unavailable",
  "substrate/failed": "unavailable",
  "substrate/unsupported": "invalid",
  "snapshot/refused": "unavailable",
  "snapshot/unsavable": "invalid",
  "snapshot/fatal": "gone",
  "snapshot/missing": "unavailable",
  "snapshot/version": "unavailable",
  "snapshot/chain-refused": "unavailable",
  "chunk/damaged": "unavailable",
  "chunk/truncated": "unavailable",
  "chunk/misplaced": "unavailable",
  "chunk/size": "unavailable",
  "chunk/version": "unavailable",
  "tenant-key/missing": "unavailable",
  "key-wrapping/unknown": "unavailable",
  "key-wrapping/refused": "unavailable",
  "key-wrapping/failed": "unavailable",
  "store/failed": "unavailable",
  "store/full": "unavailable",
  "stream/lost": "unavailable",
  "link/closed": "unavailable",
  "link/protocol": "internal",
  "deadline/passed": "unavailable",
  "host/unfit": "unavailable",
  "data/in-use": "conflict",
  "guest/operation": "internal",
  "internal/bug": "internal",
} as const satisfies Record<ErrorCode, ErrorKind>;

/** The one error class. The message is the code; values are in `details`, each of them public; `cause` stays inside the process. */
export class SpaceError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name: string = "SpaceError";
  readonly code: C;
  readonly details: ErrorDetails[C];

  constructor(code: C, details: ErrorDetails[C], options?: ErrorOptions) {
    super(code, options);
    this.code = code;
    this.details = details;
  }

  get kind(): ErrorKind {
    return kinds[this.code];
  }
}

/** Narrows to a `SpaceError`, of one code when given. */
export function isSpaceError<C extends ErrorCode>(value: unknown, code?: C): value is SpaceError<C> {
  return value instanceof SpaceError && (code === undefined || value.code === code);
}

/** Whether the text is one of the codes (for errors that came over a wire). */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(kinds, text);
}
