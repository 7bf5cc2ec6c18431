// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { connect, type TLSSocket } from "node:tls";

import { isSpaceError, SpaceError } from "@space/model";

import type { TlsIdentity } from "./authority.ts";
import { clientOptions } from "./tls-options.ts";

export interface DialRequest {
  readonly host: string;
  readonly port: number;
  /** The one component that may answer there. */
  readonly expectedName: string;
  readonly identity: TlsIdentity;
  readonly authorityCertificate: string;
}

/**
 * Opens a connection of the mesh. Resolves only when the peer has proved to be `expectedName`; until then nothing is
 * sent. Throws `endpoint/mismatch` when another component answers, or one whose certificate proves nothing;
 * `link/closed` (with the cause) for everything else, the signal included. The caller owns the socket and must look at
 * `destroyed` before it waits for `close`.
 */
export async function dialPeer(request: DialRequest, signal: AbortSignal): Promise<TLSSocket> {
  const { host, port, expectedName, identity, authorityCertificate } = request;
  if (signal.aborted) throw new SpaceError("link/closed", {}, { cause: signal.reason });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host, port, ...clientOptions(identity, authorityCertificate, expectedName) });
  const onAbort = (): void => {
    reject(new SpaceError("link/closed", {}, { cause: signal.reason }));
  };
  const onError = (cause: Error): void => {
    reject(isSpaceError(cause) ? cause : failureOf(socket, cause));
  };
  const onClose = (): void => {
    reject(new SpaceError("link/closed", {}));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("secureConnect", resolve).once("close", onClose).on("error", onError);
  try {
    await promise;
    return socket.setNoDelay(true); // `onError` stays, so an error before its owner listens is not unheard
  } catch (failure) {
    socket.destroy();
    throw failure;
  } finally {
    signal.removeEventListener("abort", onAbort);
    socket.off("close", onClose);
  }
}

/** What TLS says of a certificate that it refuses is a name of its own, and nothing that the peer wrote. */
function failureOf({ authorizationError }: TLSSocket, cause: Error): SpaceError {
  const problem: unknown = authorizationError; // null, against its type, where no certificate was judged
  return typeof problem === "string"
    ? new SpaceError("endpoint/mismatch", { problem }, { cause })
    : new SpaceError("link/closed", {}, { cause });
}
