// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { type AuditSink, isSpaceError } from "@space/model";
import { type Authority, peerName, peerThumbprint, serverOptions, type TlsIdentity } from "@space/mtls";

/** What a component needs to speak on private hops: who it is, and whose word it takes for others. */
export interface MeshMember {
  readonly identity: TlsIdentity;
  readonly authorityCertificate: Authority["certificate"];
}

export interface MeshPeer {
  readonly name: string;
  /** what a capability's `cnf` is compared with. */
  readonly thumbprint: string;
}

export interface MeshServing {
  /** Gets verified components only. It refuses one that has no business here by throwing `endpoint/mismatch` or `input/invalid`. */
  readonly onPeer: (socket: TLSSocket, peer: MeshPeer) => void;
  readonly audit: AuditSink;
}

/** Listens for components of the mesh. Who is not let in is cut off and recorded. */
export function listenMesh(
  member: MeshMember,
  address: { readonly host: string; readonly port: number },
  { onPeer, audit }: MeshServing,
): Promise<Server> {
  const refuse = (socket: Socket, error: unknown): void => {
    const { remoteAddress: host, remotePort: port } = socket; // Node forgets them when the handshake fails
    const peer = host === undefined ? "unknown" : `${host}:${port}`;
    socket.destroy();
    audit.record("mesh/refused", { problem: problemOf(error), peer });
  };
  const server = createServer(serverOptions(member.identity, member.authorityCertificate), (socket) => {
    socket.on("error", () => undefined); // the link that takes it over reports its end
    socket.setNoDelay(true);
    try {
      onPeer(socket, { name: peerName(socket), thumbprint: peerThumbprint(socket) });
    } catch (error) {
      refuse(socket, error);
    }
  });
  // A certificate that is not to be trusted shows only as a reset in the error.
  server.on("tlsClientError", (error, socket) => refuse(socket, socket.authorizationError ?? error));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.host, () => {
      server.off("error", reject);
      resolve(server);
    });
  });
}

/** A constant of ours or of Node's: nothing that the peer wrote. */
function problemOf(error: unknown): string {
  if (isSpaceError(error, "endpoint/mismatch")) return error.details.problem;
  if (isSpaceError(error, "input/invalid")) return "the peer is no component that may dial here";
  if (error instanceof Error) return "code" in error ? String(error.code) : "failed";
  return String(error); // TLS's own name for why a certificate is not to be trusted
}

export function portOf(server: { address(): unknown }): number {
  const address = server.address();
  if (
    typeof address === "object" &&
    address !== null &&
    "port" in address &&
    typeof address.port === "number"
  ) {
    return address.port;
  }
  throw new TypeError("the server does not listen on a port");
}
