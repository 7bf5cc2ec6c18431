// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { verifyHandOverGrant } from "@space/capability";
import {
  compareIdentity,
  type HandOverGrant,
  type HandOverProblem,
  isSpaceError,
  issueSkewSeconds,
  type WorkerId,
} from "@space/model";
import {
  FrameLink,
  type HandOverHead,
  type LinkStream,
  parseHandOverHead,
  type StreamHandlers,
} from "@space/wire";
import { isPlacedHere, type WorkerParts } from "../sbx-manager/parts.ts";

/** Given to the link at once; what follows waits until there is room. */
const pieceBytes = 256 * 1024;

export interface PeerLinkOptions {
  /** Who asks, as its certificate says. */
  readonly peer: WorkerId;
  readonly onClose: () => void;
}

type Verdict =
  | { readonly kind: "give"; readonly grant: HandOverGrant; readonly sealed: Buffer | undefined }
  | { readonly kind: "refuse"; readonly problem: HandOverProblem };

/**
 * Another worker's connection. Each stream asks for one sealed chunk with the control plane's grant, which is compared
 * anew with this worker's own durable record before a byte is sent. Whoever asks for nothing, or does not
 * read what it asked for, is cut off.
 */
export class PeerLink {
  readonly #parts: WorkerParts;
  readonly #options: PeerLinkOptions;
  readonly #link: FrameLink;
  #cancelIdle: () => void = () => undefined;
  #hasGiven = false;

  constructor(parts: WorkerParts, socket: Duplex, options: PeerLinkOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#link = new FrameLink(socket, {
      dialled: false,
      maxStreams: parts.limits.chunksPerPeer,
      onOpen: (stream, head, ended) => this.#open(stream, head, ended),
      onClose: () => {
        this.#cancelIdle();
        options.onClose();
      },
    });
    this.#progressed();
  }

  close(): void {
    this.#link.destroy(undefined);
  }

  #open(stream: LinkStream, bytes: Buffer, ended: boolean): StreamHandlers {
    const head = ended ? readHead(bytes) : undefined;
    const verdict: Verdict =
      head === undefined ? refuse("request") : judge(this.#parts, this.#options.peer, head);
    const ignored: StreamHandlers = {
      onData: () => stream.reset("unexpected"),
      onEnd: () => undefined,
      onReset: () => undefined,
    };
    if (verdict.kind === "refuse") {
      this.#parts.counters.handOversRefused += 1;
      const { peer } = this.#options;
      this.#parts.audit.record("hand-over/refused", { peer, problem: verdict.problem });
      stream.reset("hand-over/refused"); // why is not the asker's to know
      return ignored;
    }
    this.#progressed();
    this.#auditOnce(verdict.grant);
    const { sealed } = verdict;
    stream.sendHead(JSON.stringify({ sizeBytes: sealed?.length ?? 0 }), sealed === undefined);
    if (sealed === undefined) return ignored;
    this.#parts.counters.chunksGiven += 1;
    let at = 0;
    const sendMore = (): void => {
      this.#progressed();
      let hasRoom = true;
      while (hasRoom && at < sealed.length) {
        hasRoom = stream.send(sealed.subarray(at, at + pieceBytes));
        at += pieceBytes;
      }
      if (at >= sealed.length) stream.end();
    };
    sendMore();
    return { ...ignored, onDrain: sendMore };
  }

  #auditOnce({ identity, manifest, target }: HandOverGrant): void {
    if (this.#hasGiven) return;
    this.#hasGiven = true;
    this.#parts.audit.record("hand-over/given", { sandboxId: identity.sandboxId, manifest, target });
  }

  #progressed(): void {
    this.#cancelIdle();
    this.#cancelIdle = this.#parts.clock.after(this.#parts.limits.peerIdleMs, () => this.close());
  }
}

function readHead(bytes: Buffer): HandOverHead | undefined {
  try {
    return parseHandOverHead(JSON.parse(bytes.toString("utf8")));
  } catch {
    return undefined; // whatever it is, it is no request
  }
}

/** From local state only, in the order form, key, signature, time, binding, record, policy. */
function judge(parts: WorkerParts, peer: WorkerId, { grant: token, chunk }: HandOverHead): Verdict {
  const { clock, keys, lease, records, handOvers } = parts;
  let grant: HandOverGrant;
  try {
    grant = verifyHandOverGrant(token, keys.ring);
  } catch (error) {
    if (!isSpaceError(error, "hand-over/refused")) throw error;
    const { problem } = error.details;
    return refuse(problem === "key" || problem === "signature" ? problem : "form");
  }
  const nowMs = clock.wallMs();
  const isEarly = grant.issuedAtSeconds * 1000 > nowMs + issueSkewSeconds * 1000;
  if (isEarly || grant.expiresAtSeconds * 1000 <= nowMs) return refuse("time");
  if (grant.target !== peer) return refuse("asker"); // whose certificate opened this connection
  if (!isPlacedHere(parts, grant.identity.placement)) return refuse("giver");
  if (!lease.held) return refuse("lease");
  // this very execution ran here, and has ended for ever. What may still run is nobody else's to restore.
  const record = records.read(grant.identity.sandboxId);
  const isRetired =
    record?.state === "retired" && compareIdentity(record.identity, grant.identity) === "identical";
  if (!isRetired) return refuse("record");
  const held = handOvers.find(grant.manifest);
  const isOfIt = held !== undefined && compareIdentity(held.identity, grant.identity) === "identical";
  if (!isOfIt) return refuse("snapshot");
  const listed = held.chunk(chunk);
  return listed === undefined ? refuse("chunk") : { kind: "give", grant, sealed: listed.sealed };
}

function refuse(problem: HandOverProblem): Verdict {
  return { kind: "refuse", problem };
}
