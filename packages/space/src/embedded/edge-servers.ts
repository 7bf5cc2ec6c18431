// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createServer } from "node:http";
import { createSecureServer } from "node:http2";
import type { Server as NetServer, Socket } from "node:net";
import { type Gateway, plainServerOptions, secureServerOptions } from "@space/gateway";
import { SpaceError } from "@space/model";
import { type Edge, edgeOptions } from "@space/mtls";
import { portOf } from "../host/mesh-sockets.ts";

export interface EdgeAddress {
  readonly host: string;
  readonly port: number;
}

/** The two public listeners: plain HTTP (API and URL mode) and TLS with HTTP/2 by ALPN (domain mode). */
export interface EdgeServers {
  readonly plainPort: number;
  readonly tlsPort: number;
  /** Ends both, and every connection to them. */
  close(): void;
}

export interface EdgeOptions {
  readonly plain: EdgeAddress;
  readonly tls: EdgeAddress;
  readonly edge: Edge;
}

/** Resolves when both listen. Throws `host/unfit` when one cannot, and then neither does. */
export async function openEdgeServers(options: EdgeOptions, gateway: Gateway): Promise<EdgeServers> {
  const plain = createServer(plainServerOptions(gateway.limits));
  const secure = createSecureServer({
    ...secureServerOptions(gateway.limits),
    ...edgeOptions(options.edge.identity),
  });
  gateway.attach(plain);
  gateway.attach(secure);
  const connections = new Set<Socket>();
  for (const server of [plain, secure]) {
    server.on("connection", (socket: Socket) => {
      connections.add(socket);
      socket.once("close", () => connections.delete(socket));
    });
  }
  const close = (): void => {
    plain.close();
    secure.close();
    for (const socket of connections) socket.destroy();
  };
  try {
    await listen(plain, options.plain, "--listen");
    await listen(secure, options.tls, "--tls-listen");
  } catch (error) {
    close(); // one that listens would keep the process alive
    throw error;
  }
  return { plainPort: portOf(plain), tlsPort: portOf(secure), close };
}

function listen(server: NetServer, { host, port }: EdgeAddress, option: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      const why = error.code === "EADDRINUSE" ? "the port is in use" : error.message;
      const problem = `cannot listen on ${host}:${port}: ${why}`;
      reject(new SpaceError("host/unfit", { problem, remedy: `give another ${option}` }, { cause: error }));
    };
    server.once("error", fail);
    server.listen(port, host, () => {
      server.off("error", fail);
      resolve();
    });
  });
}
