// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import type { PeerEvidence } from "./guest-endpoint.ts";

/** A file, whatever name leads to it. */
export interface ExecutableEvidence {
  readonly device: string;
  readonly inode: string;
}

/** What the kernel says of the process that has connected. */
export interface DaemonEvidence extends PeerEvidence {
  /** Absent where this process may not see it. */
  readonly executable?: ExecutableEvidence;
}

/** Who may command this process. */
export interface DaemonRule {
  readonly uid: number;
  /** Absent: any executable of that user. */
  readonly executable?: ExecutableEvidence;
}

/**
 * R-19, the bridge's own half: the client is the worker daemon. Throws `endpoint/mismatch` when it is somebody else, and
 * `endpoint/unverifiable` when what the rule asks for could not be read; nothing weaker is tried.
 */
export function judgeDaemon(peer: DaemonEvidence | undefined, rule: DaemonRule): void {
  if (peer === undefined) throw new SpaceError("endpoint/unverifiable", { problem: "no peer credentials" });
  if (peer.uid !== rule.uid) throw new SpaceError("endpoint/mismatch", { problem: "uid" });
  if (rule.executable === undefined) return;
  if (peer.executable === undefined) throw new SpaceError("endpoint/unverifiable", { problem: "executable" });
  const { device, inode } = rule.executable;
  if (peer.executable.device !== device || peer.executable.inode !== inode) {
    throw new SpaceError("endpoint/mismatch", { problem: "executable" });
  }
}
