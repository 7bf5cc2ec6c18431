// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { FrameBuilder, PayloadReader, ProtocolError } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { decodeHost, decodeStart, LaunchFrame } from "../launch-protocol.ts";
import { peerUser } from "./descriptors.ts";
import { Fence, freezerOf } from "./fence.ts";
import { LaunchClientLink } from "./launch-client-link.ts";
import { type Launched, launchBridge, launchGuest } from "./launched.ts";

const maxChildren = 8192;
const maxNameBytes = 256;
const maxBinds = 32;
const maxControlGroups = 16;
const maxTmpfsBytes = 4 * 1024 * 1024 * 1024 - 1;
const errnoAgain = 11;
const errnoCancelled = 125;
const errnoExists = 17;
const errnoInvalid = 22;
const errnoUnknownCall = 38;

/** One thing that runs, or is about to: known by its name from the request on, so that no name is used twice. */
interface Child {
  launched?: Launched;
  running: boolean;
  /** Killed before it had a process. */
  cancelled: boolean;
  /** Settles when nothing of it is left. */
  readonly gone: Promise<void>;
}

interface Launch {
  readonly name: string;
  readonly launch: () => Promise<Launched>;
  /** what freezes its control group; a bridge has none. */
  readonly freezer?: string | undefined;
}

export interface LaunchServiceOptions {
  /** The seccomp program for guests. */
  readonly filter: Buffer;
  /** The program that every process starts as. */
  readonly startProgram: string;
  /** Everything ends when no client has been connected for so long; never by default. */
  readonly orphanSeconds?: number;
  /** Called once, when everything has ended. The launcher then removes its socket and ends; the result is awaited first. */
  readonly onEnd: (lastWord: () => Promise<void>) => void;
}

/** The launcher's side of the launch protocol: PROTOCOL.md section 2. */
export class LaunchService {
  readonly #options: LaunchServiceOptions;
  readonly #clients = new Set<LaunchClientLink>();
  readonly #children = new Map<string, Child>();
  readonly #fence = new Fence();
  #ending = false;
  #orphanTimer: NodeJS.Timeout | undefined;

  constructor(options: LaunchServiceOptions) {
    this.#options = options;
    this.#watchOrphans();
  }

  accept(socket: Socket): void {
    if (peerUser(socket) !== 0) {
      socket.destroy();
      return;
    }
    clearTimeout(this.#orphanTimer);
    const client = new LaunchClientLink(
      socket,
      (type, payload) => this.#handle(client, type, payload),
      () => {
        this.#clients.delete(client);
        this.#watchOrphans();
      },
    );
    this.#clients.add(client);
  }

  #watchOrphans(): void {
    const { orphanSeconds } = this.#options;
    if (orphanSeconds === undefined || this.#clients.size > 0) return;
    this.#orphanTimer = setTimeout(() => void this.#end(() => Promise.resolve()), orphanSeconds * 1000);
  }

  #handle(client: LaunchClientLink, type: number, payload: Buffer): void {
    const reader = new PayloadReader(payload);
    const requestId = reader.u32();
    switch (type) {
      case LaunchFrame.start:
        void this.#start(client, requestId, payload);
        return;
      case LaunchFrame.host:
        void this.#startBridge(client, requestId, payload);
        return;
      case LaunchFrame.prepare:
      case LaunchFrame.claim:
        void client.failed(requestId, new GuestError(errnoUnknownCall, "prepare"));
        return;
      case LaunchFrame.run:
        void client.failed(requestId, new GuestError(errnoUnknownCall, "run"));
        return;
      case LaunchFrame.restore:
      case LaunchFrame.goOn:
        payload.fill(0); // it may carry a secret
        void client.failed(requestId, new GuestError(errnoUnknownCall, "restore"));
        return;
      case LaunchFrame.kill:
        void this.#kill(client, requestId, reader.string());
        return;
      case LaunchFrame.lease:
        void this.#lease(client, requestId, reader.u64());
        return;
      case LaunchFrame.list:
        void this.#list(client, requestId);
        return;
      case LaunchFrame.quit:
        void this.#end(() => client.done(requestId));
        return;
      default:
        throw new ProtocolError("no such request");
    }
  }

  async #start(client: LaunchClientLink, requestId: number, payload: Buffer): Promise<void> {
    try {
      const record = decoded(payload, decodeStart);
      const { activationId, binds, cgroupFiles, uidBase, tmpfsLimitBytes } = record;
      const sane =
        binds.length <= maxBinds &&
        cgroupFiles.length <= maxControlGroups &&
        tmpfsLimitBytes <= maxTmpfsBytes;
      if (!sane || uidBase < 65_536 || uidBase > 0xffff_ffff - 65_536)
        throw new GuestError(errnoInvalid, "record");
      const { filter, startProgram } = this.#options;
      const launch = (): Promise<Launched> => launchGuest({ payload, record, filter, startProgram });
      await this.#launch(client, requestId, { name: activationId, launch, freezer: freezerOf(cgroupFiles) });
    } catch (error) {
      await client.failed(requestId, error);
    } finally {
      payload.fill(0); // it carries a secret
    }
  }

  async #startBridge(client: LaunchClientLink, requestId: number, payload: Buffer): Promise<void> {
    try {
      const record = decoded(payload, decodeHost);
      const { name, uid, gid, argv, binds } = record;
      if (uid === 0 || gid === 0 || argv.length === 0 || binds.length > maxBinds)
        throw new GuestError(errnoInvalid, "record");
      const launch = (): Promise<Launched> =>
        Promise.resolve(launchBridge(payload, record, this.#options.startProgram));
      await this.#launch(client, requestId, { name, launch });
    } catch (error) {
      await client.failed(requestId, error);
    }
  }

  /** Starts under a free name and answers when it runs. Rejects with what went wrong. */
  async #launch(
    client: LaunchClientLink,
    requestId: number,
    { name, launch, freezer }: Launch,
  ): Promise<void> {
    const length = Buffer.byteLength(name);
    if (length === 0 || length > maxNameBytes) throw new GuestError(errnoInvalid, "name");
    if (this.#children.has(name)) throw new GuestError(errnoExists, "name");
    if (this.#children.size >= maxChildren || this.#ending) throw new GuestError(errnoAgain, "name");
    let settle: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const child: Child = { running: false, cancelled: false, gone };
    this.#children.set(name, child);
    const forget = (): void => {
      this.#children.delete(name);
      settle();
    };
    let launched: Launched;
    try {
      launched = await launch();
    } catch (error) {
      forget();
      throw error;
    }
    child.launched = launched;
    void launched.exited.then((status) => {
      forget();
      if (freezer !== undefined) this.#fence.remove(freezer);
      if (child.running) this.#tellExit(name, launched.pid, status);
    });
    if (child.cancelled) launched.child.kill("SIGKILL");
    try {
      await launched.ready;
      if (child.cancelled) throw new GuestError(errnoCancelled, "killed");
    } catch (error) {
      await launched.exited; // its name is free again when the caller learns of it
      throw error;
    }
    child.running = true;
    if (freezer !== undefined) this.#fence.add(freezer);
    await client.started(requestId, launched.pid, launched.startTime);
  }

  /** */
  async #lease(client: LaunchClientLink, requestId: number, deadlineNs: bigint): Promise<void> {
    if (deadlineNs === 0n) {
      await client.failed(requestId, new GuestError(errnoInvalid, "record"));
      return;
    }
    this.#fence.holdUntil(deadlineNs);
    await client.done(requestId);
  }

  #tellExit(name: string, pid: number, status: number): void {
    const frame = new FrameBuilder(64).begin(LaunchFrame.exited).string(name).u32(pid).i32(status).end();
    for (const client of this.#clients) void client.send(frame);
  }

  async #kill(client: LaunchClientLink, requestId: number, name: string): Promise<void> {
    await this.#killChild(this.#children.get(name));
    await client.done(requestId);
  }

  async #killChild(child: Child | undefined): Promise<void> {
    if (child === undefined) return;
    child.cancelled = true;
    child.launched?.child.kill("SIGKILL"); // not reaped yet, so it can be no other's pid
    await child.gone;
  }

  #list(client: LaunchClientLink, requestId: number): Promise<void> {
    const found = [...this.#children].flatMap(([name, { launched, running }]) =>
      launched === undefined ? [] : [{ name, launched, running }],
    );
    const frame = new FrameBuilder(256).begin(LaunchFrame.listing).u32(requestId).u32(found.length);
    for (const { name, launched, running } of found) {
      frame
        .string(name)
        .u32(launched.pid)
        .u64(launched.startTime)
        .u8(running ? 1 : 0);
    }
    return client.send(frame.end());
  }

  async #end(lastWord: () => Promise<void>): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    this.#fence.close();
    await Promise.all([...this.#children.values()].map((child) => this.#killChild(child)));
    this.#options.onEnd(lastWord);
  }
}

function decoded<T>(payload: Buffer, decode: (reader: PayloadReader) => T): T {
  const reader = new PayloadReader(payload);
  reader.u32(); // the request's number
  try {
    const record = decode(reader);
    if (reader.atEnd) return record;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
  }
  throw new GuestError(errnoInvalid, "record");
}
