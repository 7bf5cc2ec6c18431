// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { type Clock, SpaceError, type WorkerEndpoint } from "@space/model";
import { FrameLink } from "@space/wire";

/**
 * Opens an mTLS connection to a worker's node-api. Resolves only when the peer has proved by its certificate to be
 * `endpoint.workerId`: the address alone proves nothing (R-2, incident 36). Gives up when the signal fires.
 */
export type Dial = (endpoint: WorkerEndpoint, signal: AbortSignal) => Promise<Duplex>;

/** One link per worker, shared by all operations. */
export interface WorkerLinks {
  /** The live link, when there is one. */
  current(endpoint: WorkerEndpoint): FrameLink | undefined;
  /**
   * The live link, or a new one; concurrent callers share the dialling. Rejects with `worker/unreachable`: nothing of
   * any operation has been sent then.
   */
  link(endpoint: WorkerEndpoint): Promise<FrameLink>;
  /** Resolves when every worker that is linked has received all that was sent before, or its link has ended. */
  received(): Promise<void>;
  /**
   * from now on links are dialled anew, by the certificate of now. What is open on the old ones goes on there; each
   * ends with its last stream.
   */
  renew(): void;
  /** Ends every link and refuses new ones. */
  close(): void;
}

export interface WorkerLinkLimits {
  readonly dialWaitMs: number;
  /** After a failed dial, others fail at once for this long: a dead worker costs no storm of connections (incident 35). */
  readonly dialPauseMs: number;
  /** A link is asked for a sign of life this often, and ended when none comes in `pingWaitMs`. */
  readonly pingEveryMs: number;
  readonly pingWaitMs: number;
}

export const defaultWorkerLinkLimits: WorkerLinkLimits = Object.freeze({
  dialWaitMs: 5000,
  dialPauseMs: 250,
  pingEveryMs: 10_000,
  pingWaitMs: 10_000,
});

/** How often a link that is to end is looked at for its last stream. */
const drainLookMs = 1000;
/** How many workers' last failures are remembered; forgetting one only allows a dial. */
const failureLimit = 10_000;

export function createWorkerLinks(
  limits: WorkerLinkLimits,
  ports: { readonly dial: Dial; readonly clock: Clock },
): WorkerLinks {
  return new DialledLinks(limits, ports.dial, ports.clock);
}

class DialledLinks implements WorkerLinks {
  readonly #limits: WorkerLinkLimits;
  readonly #dial: Dial;
  readonly #clock: Clock;
  readonly #live = new Map<string, FrameLink>();
  readonly #dialling = new Map<string, Promise<FrameLink>>();
  readonly #failedAtMs = new Map<string, number>();
  /** What ends each dial that is under way. */
  readonly #dials = new Set<AbortController>();
  #isClosing = false;
  /** Links of an older certificate, with streams. */
  readonly #draining = new Set<FrameLink>();
  #renewals = 0;

  constructor(limits: WorkerLinkLimits, dial: Dial, clock: Clock) {
    this.#limits = limits;
    this.#dial = dial;
    this.#clock = clock;
  }

  current(endpoint: WorkerEndpoint): FrameLink | undefined {
    const link = this.#live.get(nameOf(endpoint));
    return link === undefined || link.closed ? undefined : link;
  }

  link(endpoint: WorkerEndpoint): Promise<FrameLink> {
    const live = this.current(endpoint);
    if (live !== undefined) return Promise.resolve(live);
    const name = nameOf(endpoint);
    const dialling = this.#dialling.get(name);
    if (dialling !== undefined) return dialling;
    const failedAtMs = this.#failedAtMs.get(name) ?? Number.NEGATIVE_INFINITY;
    const paused = this.#clock.monotonicMs() - failedAtMs < this.#limits.dialPauseMs;
    if (paused || this.#isClosing) return Promise.reject(unreachable(endpoint, undefined));
    const opening: Promise<FrameLink> = this.#open(endpoint, name).finally(() => {
      if (this.#dialling.get(name) === opening) this.#dialling.delete(name);
    });
    this.#dialling.set(name, opening);
    return opening;
  }

  async received(): Promise<void> {
    const links = [...this.#live.values(), ...this.#draining];
    await Promise.all(links.map((link) => link.ping().catch(() => undefined)));
  }

  renew(): void {
    this.#renewals += 1;
    this.#dialling.clear(); // who waits for one is told so; nobody joins it
    for (const link of this.#live.values()) this.#draining.add(link);
    this.#live.clear();
    this.#drain();
  }

  close(): void {
    this.#isClosing = true;
    for (const given of this.#dials) given.abort();
    for (const link of [...this.#live.values(), ...this.#draining]) link.destroy(undefined);
  }

  #drain(): void {
    for (const link of [...this.#draining]) if (link.size === 0) link.destroy(undefined);
    if (this.#draining.size > 0) this.#clock.after(drainLookMs, () => this.#drain());
  }

  async #open(endpoint: WorkerEndpoint, name: string): Promise<FrameLink> {
    const renewals = this.#renewals;
    try {
      const socket = await this.#bounded(endpoint);
      if (renewals !== this.#renewals) {
        socket.destroy(); // dialled by a certificate that has been replaced meanwhile
        return await this.link(endpoint);
      }
      this.#failedAtMs.delete(name);
      return this.#keep(socket, name);
    } catch (cause) {
      if (this.#failedAtMs.size >= failureLimit) this.#failedAtMs.clear();
      this.#failedAtMs.set(name, this.#clock.monotonicMs());
      throw unreachable(endpoint, cause);
    }
  }

  /** A dial that ends in time; a socket that comes too late is thrown away. */
  async #bounded(endpoint: WorkerEndpoint): Promise<Duplex> {
    const given = new AbortController(); // one of its own: what listens to it goes with it
    this.#dials.add(given);
    const cancel = this.#clock.after(this.#limits.dialWaitMs, () => given.abort());
    try {
      return await Promise.race([this.#dialUntil(endpoint, given.signal), aborted(given.signal)]);
    } finally {
      cancel();
      this.#dials.delete(given);
    }
  }

  async #dialUntil(endpoint: WorkerEndpoint, signal: AbortSignal): Promise<Duplex> {
    const socket = await this.#dial(endpoint, signal);
    if (!signal.aborted) return socket;
    socket.destroy();
    throw new SpaceError("link/closed", {});
  }

  #keep(socket: Duplex, name: string): FrameLink {
    const link: FrameLink = new FrameLink(socket, {
      dialled: true,
      onClose: () => {
        stopPings();
        if (this.#live.get(name) === link) this.#live.delete(name);
        this.#draining.delete(link);
      },
    });
    const stopPings = this.#pingWhileOpen(link);
    this.#live.set(name, link);
    return link;
  }

  #pingWhileOpen(link: FrameLink): () => void {
    const { pingEveryMs, pingWaitMs } = this.#limits;
    let cancel = (): void => undefined;
    const wait = (): void => {
      cancel = this.#clock.after(pingEveryMs, ask);
    };
    const ask = (): void => {
      cancel = this.#clock.after(pingWaitMs, () => link.destroy(new SpaceError("link/closed", {})));
      link.ping().then(
        () => {
          cancel();
          if (!link.closed) wait();
        },
        () => undefined, // the link is closed: onClose has cancelled
      );
    };
    wait();
    return () => cancel();
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(new SpaceError("link/closed", {}));
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}

function nameOf({ workerId, host, port }: WorkerEndpoint): string {
  return `${workerId} ${host} ${port}`;
}

function unreachable({ workerId }: WorkerEndpoint, cause: unknown): SpaceError {
  return new SpaceError("worker/unreachable", { workerId }, { cause });
}
