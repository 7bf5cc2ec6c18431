// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import {
  isSpaceError,
  type LeaseAnswer,
  type LeaseRequest,
  type ReceiverFeed,
  SpaceError,
  type WorkerControl,
  type WorkerHello,
  type WorkerPresence,
} from "@space/model";
import {
  decodeJson,
  FrameLink,
  isFeedHead,
  type LinkStream,
  rpcMethod,
  type StreamHandlers,
  serveReceiverFeed,
  serveRpc,
  workerControlHandlers,
  workerPresenceClient,
} from "@space/wire";
import type { WorkerParts } from "./parts.ts";
import { takeKeys } from "./take-keys.ts";

/** Commands of the control plane that may run at once. */
const commandsAtOnce = 1000;

/** One link that this worker dialled, over TLS that has proved the other end to be the control plane. */
export class ControlPlaneLink {
  readonly #parts: WorkerParts;
  readonly #link: FrameLink;
  readonly #handlers: ReturnType<typeof workerControlHandlers>;
  readonly #feed: ReceiverFeed;
  readonly #ended = Promise.withResolvers<void>();

  constructor(
    parts: WorkerParts,
    { control, feed }: { readonly control: WorkerControl; readonly feed: ReceiverFeed },
    socket: Duplex,
  ) {
    this.#parts = parts;
    this.#feed = feed;
    this.#handlers = workerControlHandlers(control);
    this.#link = new FrameLink(socket, {
      dialled: true,
      maxStreams: commandsAtOnce,
      onOpen: (stream, head) => this.#command(stream, head),
      onClose: () => this.#ended.resolve(),
    });
  }

  /** Resolves when the link has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Says hello, takes newer keys, and sends what has not been heard. Throws `bundle/refused`, `link/closed`,
   * `deadline/passed`, or `worker/superseded`: then this store is not this worker's any more.
   */
  async greet(hello: WorkerHello): Promise<void> {
    const presence = workerPresenceClient(this.#link, this.#parts.clock);
    const { bundle } = await presence.hello(hello);
    this.#parts.records.finishSuccession(hello.store);
    if (bundle !== null) takeKeys(this.#parts, bundle); // before anything is admitted under it
    this.#parts.reports.use(presence);
    this.#parts.lease.use({ renew: (request) => this.#renew(presence, request) });
  }

  close(): void {
    this.#link.destroy(undefined);
  }

  /** A link on which no answer comes is of no use, also where TCP does not know it yet: another one is dialled. */
  async #renew(presence: WorkerPresence, request: LeaseRequest): Promise<LeaseAnswer> {
    try {
      return await presence.renew(request);
    } catch (error) {
      if (isSpaceError(error, "deadline/passed")) this.#link.destroy(error);
      throw error;
    }
  }

  #command(stream: LinkStream, head: Buffer): StreamHandlers {
    if (isFeedHead(head)) return serveReceiverFeed(stream, this.#feed);
    try {
      const value = decodeJson(head.toString("utf8"));
      const rpc = rpcMethod(value);
      if (rpc === undefined) throw new SpaceError("link/protocol", { problem: "not a command" });
      const params = typeof value === "object" && value !== null && "params" in value ? value.params : null;
      return serveRpc(stream, { rpc, params }, this.#handlers);
    } catch (error) {
      this.#link.destroy(error); // the control plane says nothing else: this is not it, or not of this version
      return unheard;
    }
  }
}

const unheard: StreamHandlers = {
  onData: () => undefined,
  onEnd: () => undefined,
  onReset: () => undefined,
};
