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
 * over with the link: what was not acknowledged by then rejects with `link/closed`. The caller keeps within
 * {@link feedWindow}; an item beyond it throws `link/protocol`.
 */
export function receiverFeedOver(link: FrameLink): ReceiverFeed {
  const told = new Map<number, Told>();
  let stream: LinkStream | undefined;
  let seq = 0;
  return {
    tell(item) {
      if (told.size >= feedWindow) return Promise.reject(problem("more than the feed's window"));
      stream ??= openFeed(link, told);
      seq += 1;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      if (stream.over) return Promise.reject(new SpaceError("link/closed", {}));
      told.set(seq, { resolve, reject });
      stream.send(encodeLine(toldToJson({ seq, item })));
      return promise;
    },
  };
}

function openFeed(link: FrameLink, told: Map<number, Told>): LinkStream {
  const reader = new LineReader(lineLimitBytes);
  const end = (cause: unknown): void => {
    const waiting = [...told.values()];
    told.clear();
    for (const { reject } of waiting) reject(new SpaceError("link/closed", {}, { cause }));
  };
  const stream = link.open(
    headText,
    {
      onData: (chunk) => {
        stream.consumed(chunk.length);
        for (const line of reader.push(chunk)) settle(told, line);
      },
      onEnd: () => {
        stream.reset("unexpected");
        end(undefined);
      },
      onReset: end,
    },
    false,
  );
  return stream;
}

function settle(told: Map<number, Told>, line: unknown): void {
  const { seq, error } = parseAcknowledgement(line);
  const waiting = told.get(seq);
  if (waiting === undefined) throw problem("nothing to acknowledge");
  told.delete(seq);
  if (error === undefined) waiting.resolve();
  else waiting.reject(decodeError(error));
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
