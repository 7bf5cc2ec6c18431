// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// For tests: both ends of a link in one process, and an end that speaks raw frames.

import { type Duplex, duplexPair } from "node:stream";
import { encodeHeader, type Frame, FrameReader, type FrameType } from "./frame.ts";
import { FrameLink, type LinkOptions } from "./link.ts";
import type { LinkStream, StreamHandlers } from "./link-stream.ts";

/** What a stream's user was told, as words in order. Data is given back at once unless `holds`. */
export class Listener implements StreamHandlers {
  readonly told: string[] = [];
  readonly held: Buffer[] = [];
  receivedBytes = 0;
  stream: LinkStream | undefined;
  holds = false;

  onHead(head: Buffer): void {
    this.told.push(`head ${head.toString()}`);
  }

  onProceed(admission: string): void {
    this.told.push(`proceed ${admission}`);
  }

  onData(chunk: Buffer): void {
    this.receivedBytes += chunk.length;
    if (chunk.length < 100) this.told.push(`data ${chunk.toString()}`);
    if (this.holds) this.held.push(chunk);
    else this.stream?.consumed(chunk.length);
  }

  onEnd(): void {
    this.told.push("end");
  }

  onReset(reason: string): void {
    this.told.push(`reset ${reason}`);
  }

  onDrain(): void {
    this.told.push("drain");
  }

  /** Gives back everything held, and holds no more. */
  release(): void {
    this.holds = false;
    for (const { length } of this.held.splice(0)) this.stream?.consumed(length);
  }
}

export interface Linked {
  readonly near: FrameLink;
  readonly far: FrameLink;
  /** The listeners of the streams that `near` opened, at `far`, in order. */
  readonly accepted: Listener[];
  /** What handlers threw, on either side. */
  readonly bugs: unknown[];
  readonly sockets: readonly [Duplex, Duplex];
  /** Opens a stream at `near`. */
  open(head?: string, end?: boolean): Listener & { stream: LinkStream };
}

/** Two links over a pair of streams. `far` answers nothing by itself. */
export function linked(options: Partial<LinkOptions> = {}, nearOptions: Partial<LinkOptions> = {}): Linked {
  const sockets = duplexPair();
  const bugs: unknown[] = [];
  const accepted: Listener[] = [];
  const onBug = (error: unknown): void => void bugs.push(error);
  const far = new FrameLink(sockets[1], {
    dialled: false,
    onBug,
    onOpen: (stream, head) => {
      const listener = new Listener();
      listener.stream = stream;
      listener.told.push(`open ${head.toString()}`);
      accepted.push(listener);
      return listener;
    },
    ...options,
  });
  const near = new FrameLink(sockets[0], { dialled: true, onBug, ...nearOptions });
  const open = (head = "", end = false): Listener & { stream: LinkStream } => {
    const listener = new Listener();
    return Object.assign(listener, { stream: near.open(head, listener, end) });
  };
  return { near, far, accepted, bugs, sockets, open };
}

/** Type (known or not), stream, payload. */
export type RawFrame = readonly [type: number, stream: number, payload?: Buffer | string];

/** An accepting link whose other side is written and read frame by frame. Its listeners hold what they get. */
export function rawPeer(options: Partial<LinkOptions> = {}): {
  readonly link: FrameLink;
  readonly accepted: Listener[];
  readonly received: Frame[];
  readonly closes: unknown[];
  send(...frames: readonly RawFrame[]): void;
} {
  const [near, far] = duplexPair();
  const accepted: Listener[] = [];
  const received: Frame[] = [];
  const closes: unknown[] = [];
  const link = new FrameLink(far, {
    dialled: false,
    onBug: () => undefined,
    onClose: (cause) => closes.push(cause),
    onOpen: (stream) => {
      const listener = new Listener();
      listener.stream = stream;
      listener.holds = true;
      accepted.push(listener);
      return listener;
    },
    ...options,
  });
  const reader = new FrameReader();
  near.on("data", (bytes: Buffer) => reader.push(bytes, (frame) => received.push(frame)));
  near.on("error", () => undefined);
  const send = (...frames: readonly RawFrame[]): void => {
    const bytes = frames.flatMap(([type, stream, payload = ""]) => {
      const body = Buffer.from(payload);
      return [encodeHeader(type as FrameType, stream, body.length), body]; // cast: also types that do not exist
    });
    near.write(Buffer.concat(bytes));
  };
  return { link, accepted, received, closes, send };
}

/** Lets both ends do everything that they can do without time passing. */
export async function settled(turns = 40): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
