// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ServerResponse } from "node:http";
import { constants, type Http2ServerResponse, type OutgoingHttpHeaders } from "node:http2";

/** An answer on its way to a caller, over HTTP/1 or HTTP/2. */
export interface ClientResponse {
  /** Sets status and headers (flat list). Throws what node throws for a header that cannot be sent. */
  head(status: number, headers: string[]): void;
  /** Sends a head that is still held back. */
  flush(): void;
  /** False: wait for `drain`. */
  write(chunk: Buffer): boolean;
  end(body?: Buffer): void;
  /** Ends it so that the caller sees it as incomplete (e2b-compat 3.3). */
  abort(): void;
  /** Stops the caller's upload after a complete answer. */
  stopUpload(): void;
  onDrain(callback: () => void): void;
  onClose(callback: () => void): void;
}

export function http1Response(response: ServerResponse): ClientResponse {
  return {
    head(status, headers) {
      response.writeHead(status, headers);
    },
    flush() {
      if (!response.writableEnded && !response.destroyed) response.flushHeaders();
    },
    write: (chunk) => response.write(chunk),
    end(body) {
      response.end(body);
    },
    abort() {
      response.socket?.destroy();
    },
    stopUpload() {
      response.req.socket.destroy();
    },
    onDrain(callback) {
      response.on("drain", callback);
    },
    onClose(callback) {
      response.on("close", callback);
    },
  };
}

export function http2Response(response: Http2ServerResponse): ClientResponse {
  return {
    head(status, headers) {
      response.writeHead(status, grouped(headers));
    },
    flush() {
      // HTTP/2 heads leave at once.
    },
    write: (chunk) => response.write(chunk),
    end(body) {
      if (body === undefined) response.end();
      else response.end(body);
    },
    abort() {
      // CANCEL would look like a clean end to connect clients.
      response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    },
    stopUpload() {
      response.stream.close(constants.NGHTTP2_NO_ERROR);
    },
    onDrain(callback) {
      response.on("drain", callback);
    },
    onClose(callback) {
      response.on("close", callback);
    },
  };
}

/** node's HTTP/2 takes an object; a header that comes several times becomes a list. */
function grouped(headers: readonly string[]): OutgoingHttpHeaders {
  const all: Record<string, string | string[]> = Object.create(null);
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? "";
    const value = headers[at + 1] ?? "";
    const before = all[name];
    if (before === undefined) all[name] = value;
    else if (typeof before === "string") all[name] = [before, value];
    else before.push(value);
  }
  return all;
}
