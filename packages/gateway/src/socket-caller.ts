// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Clock } from "@space/model";
import type { AnswerHead } from "@space/wire";
import type { CallerSide } from "./caller-side.ts";
import { type Refusal, type RefusedRequest, refusalAnswer } from "./refusal.ts";
import { restartClose, WebSocketFrames } from "./websocket-frames.ts";

export interface SocketCallerPorts {
  readonly socket: Duplex;
  readonly clock: Clock;
  readonly lingerMs: number;
}

/** The caller of a WebSocket handshake: the bare socket, on which the answer is written by hand. */
export class SocketCaller implements CallerSide {
  readonly #request: RefusedRequest;
  readonly #ports: SocketCallerPorts;
  readonly #socket: Duplex;
  readonly #frames = new WebSocketFrames();
  #accepted = false;

  constructor(request: RefusedRequest, ports: SocketCallerPorts) {
    this.#request = request;
    this.#ports = ports;
    this.#socket = ports.socket;
  }

  /** 101 opens the socket; any other answer is an ordinary one, and the connection ends with it. */
  answer({ status, headers }: AnswerHead): boolean {
    const hop = status === 101 ? ["connection", "Upgrade", "upgrade", "websocket"] : ["connection", "close"];
    const text = headText(status, [...hop, ...headers]);
    if (text === undefined) return false;
    this.#accepted = status === 101;
    this.#socket.write(text, "latin1");
    return true;
  }

  data(chunk: Buffer): boolean {
    if (this.#accepted) this.#frames.push(chunk);
    return this.#socket.write(chunk);
  }

  onceDrained(callback: () => void): void {
    this.#socket.once("drain", callback);
  }

  end(): void {
    this.#socket.end();
    if (!this.#accepted) this.#leave();
  }

  /** no port's connection is continued. A WebSocket whose sandbox moves hears 1012, where a frame may stand. */
  broken(restarts: boolean): void {
    const { socket } = this.#ports;
    if (restarts && this.#accepted && this.#frames.between) {
      socket.end(restartClose());
      this.#accepted = false;
      return this.#leave();
    }
    // A plain end would look like the guest's own. TLS shows a missing close by itself.
    if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
    else socket.destroy();
  }

  refuse(refusal: Refusal): void {
    const { status, headers, body } = refusalAnswer(refusal, this.#request);
    this.#socket.write(headText(status, ["connection", "close", ...headers]) ?? "", "latin1");
    this.#socket.end(body);
    this.#leave();
  }

  /** Reads on for a while, so that the caller gets to see the answer; then cuts the connection. */
  #leave(): void {
    const { socket, clock, lingerMs } = this.#ports;
    const cancel = clock.after(lingerMs, () => socket.destroy());
    socket.once("close", cancel);
    socket.resume();
  }
}

/** Undefined when a header holds what cannot be sent. */
function headText(status: number, headers: readonly string[]): string | undefined {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? "";
    const value = headers[at + 1] ?? "";
    if (!isSendable(name, value)) return undefined;
    text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

function isSendable(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false; // it came from a guest; what is wrong with it matters to nobody
  }
}
