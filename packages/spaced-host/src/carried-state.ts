// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId } from "@space/model";
import type { ProcessExit, SavedProcess, WatchOptions } from "@space/spaced-guest";
import type { MessageCodec } from "./message-codec.ts";

/** A process as its next bridge needs it. Times are left ones: those of a guest's memory stand still with it. */
export interface CarriedProcess {
  readonly description: CarriedDescription;
  readonly link: SavedProcess;
  /** Its input was closed by a caller. */
  readonly closed: boolean;
  /** Killed after so long; null: never. */
  readonly limitMs: number | null;
}

export interface CarriedDescription {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly tag: string | undefined;
  readonly terminal: boolean;
  /** Whether anything can be written to it. */
  readonly stdin: boolean;
  /** Ran as the guest's root, and so may have changed what only root may. */
  readonly privileged: boolean;
}

export interface CarriedEnd {
  readonly pid: number;
  readonly tag: string | undefined;
  readonly exit: ProcessExit;
}

/** How a stream's answer goes on. */
export type CarriedReader = {
  readonly keepaliveMs: number;
  /** Null: no limit. */
  readonly deadlineMs: number | null;
} & (
  | { readonly kind: "process"; readonly pid: number }
  | { readonly kind: "watch"; readonly path: string; readonly options: Required<WatchOptions> }
);

/** a named answer, at the byte where it stands. */
export interface CarriedStream {
  readonly key: string;
  readonly codec: MessageCodec;
  readonly kind: "process" | "watch";
  readonly answered: boolean;
  /** Offset of the first byte kept, and of the first that no exchange has taken. */
  readonly start: number;
  readonly handed: number;
  readonly bytes: Uint8Array;
  /** Nothing follows the bytes; null then. */
  readonly reader: CarriedReader | null;
}

/** a start that its caller's key names. */
export interface CarriedStart {
  readonly key: string;
  readonly digest: string;
  readonly ageMs: number;
  readonly streamKey: string | undefined;
  readonly state:
    | { readonly kind: "running"; readonly pid: number }
    | { readonly kind: "ended"; readonly pid: number; readonly exit: ProcessExit }
    | { readonly kind: "did-not-run" }
    | { readonly kind: "unknown" };
}

/** From when on a memory knows everything; null: from the sandbox's beginning. */
export interface CarriedSince {
  readonly agoMs: number;
  readonly wallMs: number;
}

/**
 * What the bridge knows of a guest that was saved with its memory: the next bridge goes on with its processes and their
 * streams from there. It goes with the memory, sealed as that is.
 */
export interface CarriedState {
  /** A fork's child is another sandbox: it gets the processes, and none of the streams. */
  readonly sandboxId: SandboxId;
  readonly processes: readonly CarriedProcess[];
  readonly ended: readonly CarriedEnd[];
  readonly streams: readonly CarriedStream[];
  readonly inputs: { readonly keys: readonly string[]; readonly forgotAgoMs: number | null };
  readonly starts: { readonly known: readonly CarriedStart[]; readonly since: CarriedSince | null };
}
