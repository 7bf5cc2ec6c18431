// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type FeedItem, isSpaceError, type ReceiverFeed, SpaceError } from "@space/model";
import { encodeLine, LineReader } from "./json-lines.ts";
import type { FrameLink } from "./link.ts";
import type { LinkStream, StreamHandlers } from "./link-stream.ts";
import {
  acknowledgementToJson,
  parseAcknowledgement,
  parseTold,
  type ToldItem,
  toldToJson,
} from "./receiver-feed-codec.ts";
import { decodeError, encodeError } from "./rpc.ts";

/** Items told and not yet acknowledged, of one feed: more wait at the sender, and a receiver refuses them. */
export const feedWindow = 256;
/** Items that wait at the sender: what a receiver that was away for an hour may be owed. */
export const feedQueueLimit = 100_000;

const headText = '{"feed":1}';
/** A token of 64 KiB and its frame. */
const lineLimitBytes = 128 * 1024;

/** Whether an opener's head begins a receiver's feed. */
export function isFeedHead(head: Buffer): boolean {
  return head.equals(Buffer.from(headText));
}

interface Told {
  readonly resolve: () => void;
  readonly reject: (error: SpaceError) => void;
}

/**
 * The control plane's end: a {@link ReceiverFeed} over one stream of the link. It begins with the first item, and is
 * over with the link: what was not acknowledged by then rejects with `link/closed`. What is beyond the window waits
 * here, in order; beyond {@link feedQueueLimit} `tell` rejects with `link/protocol`.
 */
export function receiverFeedOver(link: FrameLink): ReceiverFeed {
  const feed = new OutgoingFeed(link);
  return { tell: (item) => feed.tell(item) };
}

class OutgoingFeed implements ReceiverFeed {
  readonly #told = new Map<number, Told>();
  readonly #waiting: (Told & { readonly item: FeedItem })[] = [];
  readonly #reader = new LineReader(lineLimitBytes);
  readonly #link: FrameLink;
  #stream: LinkStream | undefined;
  #seq = 0;

  constructor(link: FrameLink) {
    this.#link = link;
  }

  tell(item: FeedItem): Promise<void> {
    if (this.#stream?.over === true) return Promise.reject(new SpaceError("link/closed", {}));
    if (this.#waiting.length >= feedQueueLimit) return Promise.reject(problem("more than the feed's queue"));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ item, resolve, reject });
    this.#fill();
    return promise;
  }

  #fill(): void {
    while (this.#told.size < feedWindow) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#seq += 1;
      this.#told.set(this.#seq, next);
      this.#stream ??= this.#open();
      this.#stream.send(encodeLine(toldToJson({ seq: this.#seq, item: next.item })));
    }
  }

  #open(): LinkStream {
    const stream = this.#link.open(
      headText,
      {
        onData: (chunk) => {
          stream.consumed(chunk.length);
          for (const line of this.#reader.push(chunk)) this.#settle(line);
        },
        onEnd: () => {
          stream.reset("unexpected");
          this.#end(undefined);
        },
        onReset: (cause) => this.#end(cause),
      },
      false,
    );
    return stream;
  }

  #settle(line: unknown): void {
    const { seq, error } = parseAcknowledgement(line);
    const told = this.#told.get(seq);
    if (told === undefined) throw problem("nothing to acknowledge");
    this.#told.delete(seq);
    if (error === undefined) told.resolve();
    else told.reject(decodeError(error));
    this.#fill();
  }

  #end(cause: unknown): void {
    const unknown = [...this.#told.values(), ...this.#waiting.splice(0)];
    this.#told.clear();
    for (const { reject } of unknown) reject(new SpaceError("link/closed", {}, { cause }));
  }
}

/**
 * The receiver's end: applies what it is told, in order, and acknowledges each item when it is done. An answer that
 * finds the stream over is lost, and the item will be told again.
 */
export function serveReceiverFeed(stream: LinkStream, receiver: ReceiverFeed): StreamHandlers {
  const reader = new LineReader(lineLimitBytes);
  let applying = 0;
  const apply = ({ seq, item }: ToldItem): void => {
    applying += 1;
    if (applying > feedWindow) throw problem("more than the feed's window");
    void applyItem(receiver, item).then((error) => {
      applying -= 1;
      if (error !== undefined && !isSpaceError(error)) stream.report(error);
      const told = error === undefined ? undefined : encodeError(error, item.entry.kind);
      stream.send(encodeLine(acknowledgementToJson({ seq, error: told })));
    });
  };
  return {
    onData: (chunk) => {
      stream.consumed(chunk.length);
      for (const line of reader.push(chunk)) apply(parseTold(line));
    },
    onEnd: () => stream.reset("unexpected"),
    onReset: () => undefined,
  };
}

/** What it was refused with; undefined when it was applied. Never rejects. */
async function applyItem(receiver: ReceiverFeed, item: FeedItem): Promise<unknown> {
  try {
    await receiver.tell(item);
    return undefined;
  } catch (error) {
    return error ?? new TypeError("refused with nothing");
  }
}

function problem(text: string): SpaceError {
  return new SpaceError("link/protocol", { problem: text });
}
