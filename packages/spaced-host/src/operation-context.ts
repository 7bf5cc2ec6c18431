// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { headerValue, type StreamPosition } from "@space/wire";
import type { AnswerSink } from "./answer-sink.ts";
import type { ContinuedStream, StreamKind } from "./continued-streams.ts";
import type { Exchange } from "./exchange.ts";
import { resolvePath } from "./guest-path.ts";
import type { GuestUser } from "./guest-users.ts";
import type { HostedActivation } from "./hosted-activation.ts";
import type { MessageCodec } from "./message-codec.ts";

/** Node's timers take no longer delays; a longer limit is none. */
const longestLimitMs = 2_147_483_647;
const defaultKeepaliveMs = 90_000;
const longestKeepaliveSeconds = 3_600;

/** One admitted operation on one activation. */
export class OperationContext {
  readonly activation: HostedActivation;
  /** The exchange that brought it. A named stream's answer may go on over others: see `answering`. */
  readonly exchange: Exchange;
  readonly position: StreamPosition | undefined;
  #stream: ContinuedStream | undefined;

  constructor(activation: HostedActivation, exchange: Exchange, position?: StreamPosition) {
    this.activation = activation;
    this.exchange = exchange;
    this.position = position;
  }

  /** from here on answer and body are those of a stream that outlives the exchange, if the gateway has named one. */
  openStream(kind: StreamKind, codec: MessageCodec): void {
    if (this.position === undefined) return;
    const { key } = this.position;
    this.#stream = this.activation.streams.open({ key, kind, codec }, this.exchange);
  }

  /** The stream, if it has a name. */
  get stream(): ContinuedStream | undefined {
    return this.#stream;
  }

  /** Where a streamed answer goes. */
  get sink(): AnswerSink {
    return this.#stream?.answer ?? this.exchange;
  }

  /** The exchange that can be answered now, if any. */
  get answering(): Exchange | undefined {
    return this.#stream === undefined ? this.exchange : this.#stream.answer.exchange;
  }

  /** Whether nobody waits for this operation any more: one that has a name may be presented again. */
  get gone(): boolean {
    if (this.#stream !== undefined) return this.#stream.answer.dead;
    return this.position === undefined ? this.exchange.gone : this.exchange.cancelled;
  }

  /** The next chunk of a streamed request. */
  nextChunk(): Promise<Buffer | undefined> {
    return (this.#stream?.body ?? this.exchange.body).next();
  }

  header(name: string): string | undefined {
    return headerValue(this.exchange.head.headers, name);
  }

  query(): URLSearchParams {
    const { path } = this.exchange.head;
    const at = path.indexOf("?");
    return new URLSearchParams(at < 0 ? "" : path.slice(at + 1));
  }

  /** The user that acts: the one named, else the one of basic authentication, else the sandbox's default. Rejects with `unauthenticated`. */
  user(named?: string | null): Promise<GuestUser> {
    const { users, facts } = this.activation;
    return users.find(named || basicUsername(this.header("authorization")) || facts.defaultUser);
  }

  /** The absolute path in the guest that `path` names for this user. */
  resolve(path: string, user: GuestUser): string {
    return resolvePath(path, { home: user.home, workdir: this.activation.facts.workdir });
  }

  /** The caller's time limit; undefined when there is none. */
  timeoutMs(): number | undefined {
    const text = this.header("connect-timeout-ms");
    if (text === undefined || !/^[0-9]{1,10}$/.test(text)) return undefined;
    const limitMs = Number(text);
    return limitMs > 0 && limitMs <= longestLimitMs ? limitMs : undefined;
  }

  /** How long a stream may be idle before the caller is shown that it lives. */
  keepaliveMs(): number {
    const text = this.header("keepalive-ping-interval");
    if (text === undefined || !/^[0-9]{1,5}$/.test(text)) return defaultKeepaliveMs;
    const seconds = Math.min(Number(text), longestKeepaliveSeconds);
    return seconds > 0 ? seconds * 1000 : defaultKeepaliveMs;
  }
}

/** The username of basic authentication. What is not of its form names nobody: identity was settled before. */
export function basicUsername(header: string | undefined): string | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/=_-]{1,1024})$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? text : text.slice(0, colon);
}
