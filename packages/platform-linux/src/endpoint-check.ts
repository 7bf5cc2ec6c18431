// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { isSpaceError, type ProcessEvidence, SpaceError } from "@space/model";
import { evidenceMismatch, processEvidence } from "./process-evidence.ts";
import { closeDescriptor, openPidFd, type PeerCredentials, signalPidFd } from "./system-calls.ts";
import { holdsSocket, listeningInodes, peerCredentials, peerProcess } from "./unix-peer.ts";

/** what a check comes to. Only `verified` forwards; there is nothing weaker to fall back to. */
export type EndpointVerdict =
  | { readonly kind: "verified" }
  | { readonly kind: "mismatch"; readonly problem: string }
  | { readonly kind: "unverifiable"; readonly problem: string };

/** What the kernel says; a test gives its own. Each may throw `endpoint/unverifiable`, or what reading /proc throws. */
export interface EndpointReader {
  peerCredentials(socket: Socket): PeerCredentials;
  peerProcess(socket: Socket): number | "ended" | "unsupported";
  processEvidence(pid: number): ProcessEvidence;
  /** Whether the process holds what listens at the path, and nobody else listens there. */
  ownsListener(pid: number, socketPath: string): boolean;
}

export const kernelReader: EndpointReader = {
  peerCredentials,
  peerProcess,
  processEvidence,
  ownsListener(pid, socketPath) {
    const inodes = listeningInodes(socketPath, pid);
    return inodes.length > 0 && inodes.every((inode) => holdsSocket(pid, inode));
  },
};

/** Who must be at the other end of a connection that was dialled to `socketPath`. */
export interface RecordedEndpoint {
  readonly process: ProcessEvidence;
  readonly socketPath: string;
}

/**
 * R-19, checks 1 to 3, on a connected socket: the peer is the recorded process and still lives, its start time,
 * executable and user are the record's, and it owns the listening socket. Never throws; whatever cannot be read makes
 * the endpoint unverifiable.
 */
export function checkEndpoint(
  socket: Socket,
  recorded: RecordedEndpoint,
  reader: EndpointReader = kernelReader,
): EndpointVerdict {
  try {
    const problem = findMismatch(socket, recorded, reader);
    return problem === undefined ? { kind: "verified" } : { kind: "mismatch", problem };
  } catch (error) {
    const isTyped = isSpaceError(error, "endpoint/unverifiable");
    return { kind: "unverifiable", problem: isTyped ? error.details.problem : "the process cannot be read" };
  }
}

/** The same as an error: `endpoint/mismatch` or `endpoint/unverifiable`, with who was to be there. */
export function requireEndpoint(name: string, verdict: EndpointVerdict): void {
  switch (verdict.kind) {
    case "verified":
      return;
    case "mismatch":
      throw new SpaceError("endpoint/mismatch", { problem: `${name}: ${verdict.problem}` });
    case "unverifiable":
      throw new SpaceError("endpoint/unverifiable", { problem: `${name}: ${verdict.problem}` });
  }
}

function findMismatch(
  socket: Socket,
  { process, socketPath }: RecordedEndpoint,
  reader: EndpointReader,
): string | undefined {
  const { pid } = reader.peerCredentials(socket);
  if (pid !== process.pid) return "another pid";
  const living = reader.peerProcess(socket);
  if (living === "ended") return "the peer has ended";
  if (living !== "unsupported" && living !== pid) return "another pid";
  const mismatch = evidenceMismatch(process, reader.processEvidence(pid));
  if (mismatch !== undefined) return mismatch;
  return reader.ownsListener(pid, socketPath) ? undefined : "the socket is not its own";
}

/** a process's evidence with a descriptor held open, so that the pid cannot come to mean another unnoticed. */
export class HeldProcess {
  readonly evidence: ProcessEvidence;
  #pidFd: number;

  private constructor(evidence: ProcessEvidence, pidFd: number) {
    this.evidence = evidence;
    this.#pidFd = pidFd;
  }

  /**
   * Takes the evidence of the process that started then. Throws `endpoint/mismatch` for another one, or
   * `endpoint/unverifiable` when there is none.
   */
  static hold(pid: number, startTime: string): HeldProcess {
    const pidFd = openPidFd(pid);
    if (pidFd < 0) throw new SpaceError("endpoint/unverifiable", { problem: "the process is gone" });
    try {
      const evidence = processEvidence(pid); // after the descriptor was opened: it is of the process that this holds
      if (evidence.startTime === startTime) return new HeldProcess(evidence, pidFd);
      throw new SpaceError("endpoint/mismatch", { problem: "the pid was used again" });
    } catch (error) {
      closeDescriptor(pidFd);
      throw error;
    }
  }

  /** Whether it is this process. */
  is(pid: number, startTime: string): boolean {
    return this.evidence.pid === pid && this.evidence.startTime === startTime && this.alive;
  }

  get alive(): boolean {
    return this.#pidFd >= 0 && signalPidFd(this.#pidFd, 0) === 0;
  }

  release(): void {
    if (this.#pidFd >= 0) closeDescriptor(this.#pidFd);
    this.#pidFd = -1;
  }
}
