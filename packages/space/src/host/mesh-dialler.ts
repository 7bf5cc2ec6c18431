// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { TLSSocket } from "node:tls";
import { type AuditSink, type Clock, isSpaceError } from "@space/model";
import { dialPeer, handshakeLimitMs } from "@space/mtls";
import type { MeshMember } from "./mesh-sockets.ts";

export interface MeshTarget {
  readonly host: string;
  readonly port: number;
  readonly name: string;
}

const keepAliveMs = 15_000;
/** Who is not there is dialled again and again: the same impostor at the same place is recorded this often. */
const repeatAfterMs = 60_000;
const rememberedLimit = 256;

/** Dials components of the mesh. Whoever answers in the place of another is recorded. */
export class MeshDialler {
  readonly #audit: AuditSink;
  readonly #clock: Clock;
  /** When each was recorded last; the oldest first. */
  readonly #recordedAtMs = new Map<string, number>();

  constructor(ports: { readonly audit: AuditSink; readonly clock: Clock }) {
    this.#audit = ports.audit;
    this.#clock = ports.clock;
  }

  /** Dials one component by name. Resolves when both ends are verified; throws `endpoint/mismatch` or `link/closed`. */
  async dial(
    member: MeshMember,
    target: MeshTarget,
    signal: AbortSignal = AbortSignal.timeout(handshakeLimitMs),
  ): Promise<TLSSocket> {
    const { host, port, name: expectedName } = target;
    try {
      const socket = await dialPeer({ host, port, expectedName, ...member }, signal);
      return socket.setKeepAlive(true, keepAliveMs);
    } catch (error) {
      if (isSpaceError(error, "endpoint/mismatch")) this.#record(target, error.details.problem);
      throw error;
    }
  }

  #record({ host, port, name }: MeshTarget, problem: string): void {
    const peer = `${host}:${port}`;
    const key = `${name} ${peer} ${problem}`;
    const now = this.#clock.monotonicMs();
    const recordedAtMs = this.#recordedAtMs.get(key);
    if (recordedAtMs !== undefined && now - recordedAtMs < repeatAfterMs) return;
    this.#recordedAtMs.delete(key);
    this.#recordedAtMs.set(key, now);
    const [oldest] = this.#recordedAtMs.keys();
    if (oldest !== undefined && this.#recordedAtMs.size > rememberedLimit) this.#recordedAtMs.delete(oldest);
    this.#audit.record("mesh/misdialled", { name, problem, peer });
  }
}
