// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivateRequest,
  type AuditFields,
  type ChunkSource,
  type Digest,
  type HandOverFailure,
  isSpaceError,
  type WorkerId,
} from "@space/model";
import { FrameLink, parseHandOverAnswer } from "@space/wire";
import type { WorkerParts } from "./parts.ts";

/** Where the worker that made a snapshot is, and the grant to show it. */
export type Peer = NonNullable<NonNullable<ActivateRequest["from"]>["peer"]>;

type Received =
  | { readonly kind: "chunk"; readonly sealed: Uint8Array }
  | { readonly kind: "failed"; readonly why: HandOverFailure };

const notHeld: Received = { kind: "failed", why: "not held" };

/**
 * One snapshot's chunks at the worker that made it. Whatever goes wrong, the chunk comes from the store; and with anything
 * but a chunk that is not held, nothing more is asked for: a peer that is slow or lies costs one limit of time, once.
 */
export class PeerChunks implements ChunkSource {
  readonly #parts: WorkerParts;
  readonly #manifest: Digest;
  readonly #source: WorkerId;
  readonly #peer: Peer;
  readonly #ended = new AbortController();
  #link: Promise<FrameLink> | undefined;
  #direct = 0;
  #stored = 0;
  #problem: HandOverFailure | "none" = "none";
  #isGivenUp = false;

  /** `of`: the verified manifest, and the worker that it names. */
  constructor(parts: WorkerParts, of: { readonly manifest: Digest; readonly source: WorkerId }, peer: Peer) {
    this.#parts = parts;
    this.#manifest = of.manifest;
    this.#source = of.source;
    this.#peer = peer;
  }

  get outcome(): Omit<AuditFields["hand-over/received"], "sandboxId"> {
    return {
      manifest: this.#manifest,
      source: this.#source,
      direct: this.#direct,
      stored: this.#stored,
      problem: this.#problem,
    };
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const received = this.#isGivenUp ? undefined : await this.#fetch(name);
    if (received?.kind === "chunk" && !this.#isGivenUp) {
      this.#direct += 1;
      return received.sealed;
    }
    this.#stored += 1;
    if (received?.kind === "failed" && received.why !== "not held") this.giveUp(received.why);
    if (received?.kind === "failed" && this.#problem === "none") this.#problem = "not held";
    return undefined;
  }

  refuse(_name: string): void {
    this.#direct -= 1;
    this.#stored += 1;
    this.giveUp("altered");
  }

  /** All comes from the store from now on. The first reason is the one that is told. */
  giveUp(why: HandOverFailure): void {
    if (this.#problem === "none") this.#problem = why;
    this.close();
  }

  /** Ends the connection. Nothing is asked for any more. */
  close(): void {
    this.#isGivenUp = true;
    this.#ended.abort();
    this.#link?.then((link) => link.destroy(undefined)).catch(() => undefined); // there was none
  }

  async #fetch(name: string): Promise<Received> {
    const { clock, limits } = this.#parts;
    const { promise: late, resolve } = Promise.withResolvers<Received>();
    const cancel = clock.after(limits.peerChunkMs, () => resolve({ kind: "failed", why: "too slow" }));
    const asked = this.#ask(name).catch((error: unknown) => failureOf(error));
    return Promise.race([asked, late]).finally(cancel);
  }

  async #ask(name: string): Promise<Received> {
    this.#link ??= this.#dial();
    return receive(await this.#link, JSON.stringify({ grant: this.#peer.grant, chunk: name }));
  }

  /** only who proves to be the worker that the manifest names is asked for anything. */
  async #dial(): Promise<FrameLink> {
    const { peers, clock, limits } = this.#parts;
    if (peers === undefined) throw new TypeError("no way to other workers");
    const cancel = clock.after(limits.peerDialMs, () => this.#ended.abort());
    try {
      const { host, port } = this.#peer;
      const socket = await peers.dial({ host, port, workerId: this.#source }, this.#ended.signal);
      const link = new FrameLink(socket, { dialled: true });
      if (this.#ended.signal.aborted) link.destroy(undefined);
      return link;
    } finally {
      cancel();
    }
  }
}

function failureOf(error: unknown): Received {
  const isOther = isSpaceError(error, "endpoint/mismatch");
  return { kind: "failed", why: isOther ? "other component" : "unreachable" };
}

/** One chunk, of at most what the answer's head says. */
function receive(link: FrameLink, head: string): Promise<Received> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let expected: number | undefined;
    let sizeBytes = 0;
    const fail = (why: HandOverFailure): void => {
      stream.reset("cancelled");
      resolve({ kind: "failed", why });
    };
    const stream = link.open(
      head,
      {
        onHead: (bytes) => {
          expected = readSize(bytes);
          if (expected === undefined) fail("protocol");
        },
        onData: (piece) => {
          stream.consumed(piece.length);
          sizeBytes += piece.length;
          if (expected === undefined || sizeBytes > expected) return fail("protocol");
          pieces.push(piece);
        },
        onEnd: () => {
          if (expected === undefined) return fail("protocol");
          if (expected === 0) return resolve(notHeld);
          if (sizeBytes < expected) return resolve({ kind: "failed", why: "broken off" });
          resolve({ kind: "chunk", sealed: Buffer.concat(pieces, sizeBytes) });
        },
        onReset: (reason) =>
          resolve({ kind: "failed", why: reason === "hand-over/refused" ? "refused" : "broken off" }),
      },
      true,
    );
  });
}

function readSize(bytes: Buffer): number | undefined {
  try {
    return parseHandOverAnswer(JSON.parse(bytes.toString("utf8"))).sizeBytes;
  } catch {
    return undefined; // no answer to what was asked
  }
}
