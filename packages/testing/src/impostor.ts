// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createServer, type Server, type Socket } from "node:net";

/** A listener in this process, which counts who comes and what they say. */
export class Impostor implements AsyncDisposable {
  connections = 0;
  bytes = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(onSocket: (socket: Socket) => void) {
    this.#server = createServer((socket) => {
      this.connections += 1;
      this.#sockets.add(socket.on("error", () => undefined));
      socket.on("data", (chunk) => {
        this.bytes += chunk.length;
      });
      onSocket(socket);
    });
  }

  static async at(path: string, onSocket: (socket: Socket) => void = () => undefined): Promise<Impostor> {
    const impostor = new Impostor(onSocket);
    await new Promise<void>((resolve) => impostor.#server.listen(path, resolve));
    return impostor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
