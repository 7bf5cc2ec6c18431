// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { constants } from "node:os";
import { PayloadReader } from "./frames.ts";

const errnoNames = new Map<number, string>(
  Object.entries(constants.errno).map(([name, value]) => [value, name]),
);

/** The guest refused or failed an operation: an expected outcome with Linux's errno. The connection stays usable. */
export class GuestError extends Error {
  override readonly name: string = "GuestError";
  /** Linux errno number, e.g. 2. */
  readonly errno: number;
  /** Its name, e.g. "ENOENT"; "E<number>" when it has none here. */
  readonly code: string;
  /** The guest's word for the step that failed: "open", "exec", "chdir"... */
  readonly step: string;

  constructor(errno: number, step: string) {
    const code = errnoNames.get(errno) ?? `E${errno}`;
    super(`${step}: ${code}`);
    this.errno = errno;
    this.code = code;
    this.step = step;
  }

  static decode(payload: Buffer): GuestError {
    const reader = new PayloadReader(payload);
    return new GuestError(reader.u32(), reader.string());
  }
}

export type ConnectionFault =
  /** The peer closed, or the socket failed: whether a request ran is unknown. */
  | "closed"
  /** The peer does not know the activation secret. Nothing but the nonce was sent to it. */
  | "unverified"
  /** The peer broke the protocol. */
  | "protocol"
  /** A deadline passed. */
  | "timeout"
  /** All connections are busy and the queue is full: nothing was sent. */
  | "exhausted";

/** The connection to a guest or launcher ended. It must be discarded, and nothing is retried here. */
export class GuestConnectionError extends Error {
  override readonly name: string = "GuestConnectionError";
  readonly fault: ConnectionFault;

  constructor(fault: ConnectionFault, options?: ErrorOptions) {
    super(`guest connection ${fault}`, options);
    this.fault = fault;
  }
}
