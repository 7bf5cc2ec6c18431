// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock, SandboxId } from "@space/model";
import type { WatchOptions } from "@space/spaced-guest";
import type { CarriedReader, CarriedState, CarriedStream } from "./carried-state.ts";
import type { ContinuedStream, ContinuedStreams } from "./continued-streams.ts";
import type { InputMemory } from "./input-memory.ts";
import type { ProcessTable } from "./process-table.ts";
import { RpcStream } from "./rpc-stream.ts";
import type { StartMemory } from "./start-memory.ts";
import { Subscriber } from "./subscriber.ts";
import { follow, type WatchedGuest, watchReader } from "./watch-events.ts";

/** One guest's side of a bridge. */
export interface CarriedGuest extends WatchedGuest {
  readonly facts: { readonly sandboxId: SandboxId };
  readonly ports: { readonly clock: Clock };
  readonly processes: ProcessTable;
  readonly streams: ContinuedStreams;
  readonly inputs: InputMemory;
  readonly starts: StartMemory;
}

/**
 * all that the next bridge needs to go on with a guest that was let go of. A stream in the middle of its beginning,
 * and one that brings input piece by piece, is not among it: those end.
 */
export function carriedState(guest: CarriedGuest): CarriedState {
  const { processes, streams, inputs, starts, facts } = guest;
  const { running, ended } = processes.save();
  const readers = readersOf(guest, running);
  return {
    sandboxId: facts.sandboxId,
    processes: running.map(({ process }) => process),
    ended,
    streams: [...streams.list()].flatMap((stream) => carriedStream(stream, readers) ?? []),
    inputs: inputs.save(),
    starts: starts.save(),
  };
}

type Running = ReturnType<CarriedGuest["processes"]["save"]>["running"];

function readersOf({ watches }: CarriedGuest, running: Running): Map<ContinuedStream, CarriedReader> {
  const found = new Map<ContinuedStream, CarriedReader>();
  for (const { process, readers } of running) {
    for (const { named, times } of readers)
      if (named !== undefined) found.set(named, { kind: "process", pid: process.link.pid, ...times });
  }
  for (const { subscriber, target } of watches.list()) {
    if (subscriber?.named === undefined) continue;
    const reader = { kind: "watch", path: target.path, options: whole(target.options) } as const;
    found.set(subscriber.named, { ...reader, ...subscriber.times });
  }
  return found;
}

function whole({
  recursive = false,
  withEntries = false,
  allowNetworkMounts = false,
}: WatchOptions): Required<WatchOptions> {
  return { recursive, withEntries, allowNetworkMounts };
}

function carriedStream(
  stream: ContinuedStream,
  readers: ReadonlyMap<ContinuedStream, CarriedReader>,
): CarriedStream | undefined {
  const { key, kind, codec, answer, rpc } = stream;
  const reader = readers.get(stream) ?? null;
  const { head, start, handed, bytes, ended } = answer.save();
  const waiting = rpc?.waiting;
  const isLast = ended || waiting?.isLast === true;
  if (kind === "input" || answer.dead || (reader === null && !isLast)) return undefined;
  return {
    key,
    kind,
    codec,
    answered: head !== undefined,
    start,
    handed,
    bytes: Buffer.concat([bytes, waiting?.bytes ?? Buffer.alloc(0)]),
    reader: isLast ? null : reader,
  };
}

/** Begins where another bridge has let go. The processes wait to be taken over; folders are watched by `watchAgain`. */
export class Restoring {
  readonly #watched: (() => Promise<void>)[] = [];

  constructor(guest: CarriedGuest, state: CarriedState) {
    const { processes, inputs, starts, facts, ports } = guest;
    processes.restore(state);
    // A fork's child has its parent's processes. Nobody of its own has begun a stream, an input or a start of theirs.
    if (state.sandboxId !== facts.sandboxId) return;
    inputs.restore(state.inputs);
    for (const stream of state.streams) this.#restoreStream(guest, stream, ports.clock);
    const running = new Map(processes.list().map((process) => [process.pid, process]));
    starts.restore(state.starts, (pid) => running.get(pid));
  }

  /** Once the guest can be asked. Never rejects: a folder that cannot be watched any more ends its stream. */
  async watchAgain(): Promise<void> {
    await Promise.all(this.#watched.splice(0).map((again) => again()));
  }

  #restoreStream(guest: CarriedGuest, carried: CarriedStream, clock: Clock): void {
    const { key, kind, codec, answered, start, handed, bytes, reader } = carried;
    const head = answered
      ? { status: 200, headers: ["content-type", `application/connect+${codec}`] }
      : undefined;
    const saved = { head, start, handed, bytes, ended: reader === null };
    const named = guest.streams.restore({ key, kind, codec }, saved);
    if (reader === null) return;
    const stream = new RpcStream(named.answer, codec);
    named.rpc = stream;
    const options = {
      keepaliveMs: reader.keepaliveMs,
      deadlineMs: reader.deadlineMs ?? undefined,
      named,
    };
    if (reader.kind === "process") {
      const process = guest.processes.list().find(({ pid }) => pid === reader.pid);
      if (process === undefined) named.answer.reset("guest lost");
      else process.resubscribe(new Subscriber(stream, options, clock));
      return;
    }
    const { path, options: how } = reader;
    const events = watchReader(stream, options, clock);
    this.#watched.push(async () => {
      await follow({ path, options: how }, events, { guest, greeting: [] }).catch(() =>
        stream.reset("guest lost"),
      );
    });
  }
}
