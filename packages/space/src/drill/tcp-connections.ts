// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFileSync } from "node:child_process";
import { UnsoundRun } from "../bench/unsound.ts";

/** One TCP connection of a process, as the kernel counts it. */
export interface TcpConnection {
  readonly pid: number;
  readonly localPort: number;
  /** 0: it listens. */
  readonly peerPort: number;
  /** Segments with data that this end has sent. */
  readonly dataSegments: number;
}

const outputLimitBytes = 64 * 1024 * 1024;

/** What workers send to their control plane, and to anybody else, from now on, as often as it is looked. */
export class WorkerConnections {
  readonly #pids: readonly number[];
  readonly #meshPort: number;
  readonly #serving: ReadonlySet<number>;
  /** By connection: segments at the first look, and at the last. */
  readonly #sent = new Map<string, { readonly first: number; last: number }>();
  readonly #others = new Set<string>();

  constructor(pids: readonly number[], meshPort: number) {
    this.#pids = pids;
    this.#meshPort = meshPort;
    this.#serving = listeningPorts(pids);
    for (const connection of connectionsOf(pids))
      this.#sent.set(nameOf(connection), { first: connection.dataSegments, last: connection.dataSegments });
  }

  look(): void {
    for (const connection of connectionsOf(this.#pids)) {
      const { localPort, peerPort, dataSegments } = connection;
      if (this.#serving.has(localPort)) continue; // a gateway's
      if (peerPort !== this.#meshPort) this.#others.add(nameOf(connection));
      const seen = this.#sent.get(nameOf(connection));
      if (seen === undefined) this.#sent.set(nameOf(connection), { first: 0, last: dataSegments });
      else seen.last = dataSegments;
    }
  }

  /** Segments with data that went to the control plane. */
  get segments(): number {
    return [...this.#sent.values()].reduce((sum, { first, last }) => sum + last - first, 0);
  }

  /** Connections to anybody else. */
  get others(): number {
    return this.#others.size;
  }
}

function nameOf({ pid, localPort, peerPort }: TcpConnection): string {
  return `${pid} ${localPort} ${peerPort}`;
}

/** Every TCP connection of these processes that is not listening, by `ss` of iproute2. Throws {@link UnsoundRun} for none. */
export function connectionsOf(pids: readonly number[]): readonly TcpConnection[] {
  return listed("-tinOHp", pids);
}

/** The TCP ports that these processes listen on. Throws {@link UnsoundRun} for none. */
export function listeningPorts(pids: readonly number[]): ReadonlySet<number> {
  return new Set(listed("-tlnOHp", pids).map(({ localPort }) => localPort));
}

function listed(options: string, pids: readonly number[]): readonly TcpConnection[] {
  const found = execFileSync("ss", [options], { encoding: "utf8", maxBuffer: outputLimitBytes })
    .split("\n")
    .filter((line) => line !== "")
    .map(connectionOf)
    .filter(({ pid }) => pids.includes(pid));
  if (found.length === 0) throw new UnsoundRun("ss shows no connections of the processes that are watched");
  return found;
}

/** `STATE RECV SEND LOCAL:PORT PEER:PORT users:(("NAME",pid=N,fd=N)) … data_segs_out:N …` */
export function connectionOf(line: string): TcpConnection {
  const [, localPort, peerPort] = /^\S+\s+\d+\s+\d+\s+\S+:(\d+)\s+\S+:(\d+|\*)/.exec(line) ?? [];
  const [, pid = "0"] = /pid=(\d+)/.exec(line) ?? [];
  const [, segments = "0"] = /data_segs_out:(\d+)/.exec(line) ?? [];
  if (localPort === undefined || peerPort === undefined) throw new UnsoundRun(`ss says: ${line}`);
  return {
    pid: Number(pid),
    localPort: Number(localPort),
    peerPort: peerPort === "*" ? 0 : Number(peerPort),
    dataSegments: Number(segments),
  };
}
