// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createServer, type Server, type TLSSocket } from "node:tls";
import {
  type Authority,
  dialPeer,
  handshakeLimitMs,
  peerName,
  peerThumbprint,
  serverOptions,
  type TlsIdentity,
} from "@space/mtls";

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

const keepAliveMs = 15_000;

/** Dials one component by name. Resolves when both ends are verified; throws `endpoint/mismatch` or `link/closed`. */
export async function dialMesh(
  member: MeshMember,
  peer: { readonly host: string; readonly port: number; readonly name: string },
  signal: AbortSignal = AbortSignal.timeout(handshakeLimitMs),
): Promise<TLSSocket> {
  const { host, port, name: expectedName } = peer;
  const socket = await dialPeer({ host, port, expectedName, ...member }, signal);
  return socket.setKeepAlive(true, keepAliveMs);
}

/** Listens for components of the mesh. `onPeer` gets only verified ones; it may refuse a name by destroying the socket. */
export function listenMesh(
  member: MeshMember,
  address: { readonly host: string; readonly port: number },
  onPeer: (socket: TLSSocket, peer: MeshPeer) => void,
): Promise<Server> {
  const server = createServer(serverOptions(member.identity, member.authorityCertificate), (socket) => {
    socket.on("error", () => undefined); // the link that takes it over reports its end
    socket.setNoDelay(true);
    try {
      onPeer(socket, { name: peerName(socket), thumbprint: peerThumbprint(socket) });
    } catch {
      socket.destroy(); // not a component that we know how to name
    }
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.host, () => {
      server.off("error", reject);
      resolve(server);
    });
  });
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
