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
  onceDrained(callback: () => void): void;
  onClose(callback: () => void): void;
}

const joinedLimitBytes = 4096;

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
      // As text, a short body leaves in one piece with the head.
      if (body !== undefined && body.length <= joinedLimitBytes)
        response.end(body.toString("latin1"), "latin1");
      else response.end(body);
    },
    abort() {
      response.socket?.destroy();
    },
    stopUpload() {
      response.req.socket.destroy();
    },
    onceDrained(callback) {
      response.once("drain", callback);
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
    onceDrained(callback) {
      response.once("drain", callback);
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
