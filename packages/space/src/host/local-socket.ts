// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { connect, type Socket } from "node:net";

const readBytes = 64 * 1024;

/**
 * Dials a Unix socket whose bytes are read into one buffer and told as `data`, copied. Node gives each read of an ordinary
 * socket 64 KiB, out of the memory that its TLS sockets share: a process that reads from both in turn keeps 64 KiB for
 * every TLS record, until its garbage collector marks the whole heap to be rid of them.
 *
 * Whoever takes it over listens for `data` before the other end speaks: bytes that nobody listens for end the connection.
 */
export function connectLocal(path: string): Socket {
  const buffer = Buffer.allocUnsafeSlow(readBytes);
  const socket: Socket = connect({
    path,
    onread: {
      buffer,
      callback: (length: number) => {
        const isHeard = socket.emit("data", Buffer.from(buffer.subarray(0, length)));
        if (!isHeard) socket.destroy();
        return isHeard;
      },
    },
  });
  return socket;
}
