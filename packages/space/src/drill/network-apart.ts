// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import { UnsoundRun } from "../bench/unsound.ts";
import type { NetworkPlaces } from "../embedded/network-places.ts";
import { becomes } from "./waiting.ts";

const madeLimit = { limitMs: 5000, lookEveryMs: 10 };

/** Addresses of these namespaces alone: nothing of the host is in them. */
const home = { own: "10.77.1.1", router: "10.77.1.2" };
const away = { own: "10.77.2.1", router: "10.77.2.2" };

/**
 * Two network namespaces beside this process's own: a worker's, and between the two a router's, whose links can be taken
 * down. Both ends keep their addresses and routes then, and whatever they send is lost without a word. Only for a process
 * that is in a network namespace of its own, with `ip` of iproute2; all is gone with {@link close}.
 */
export class NetworkApart {
  readonly #router: ChildProcess;
  readonly #worker: ChildProcess;

  static async make(): Promise<NetworkApart> {
    const network = new NetworkApart();
    try {
      await network.#connect();
      return network;
    } catch (error) {
      network.close();
      throw error;
    }
  }

  private constructor() {
    this.#router = holdNamespace();
    this.#worker = holdNamespace();
  }

  /** The first worker behind the router, everything else here. */
  get places(): NetworkPlaces {
    return { controlPlane: home.own, workers: [{ host: away.own, enter: this.enterWorkers }] };
  }

  /** Goes before a program that is to run where the first worker does. */
  get enterWorkers(): readonly string[] {
    return enter(this.#worker);
  }

  cut(): void {
    this.#links("down");
  }

  heal(): void {
    this.#links("up");
  }

  /** What still runs in the namespaces keeps them. */
  close(): void {
    this.#router.stdin?.destroy();
    this.#worker.stdin?.destroy();
  }

  async #connect(): Promise<void> {
    const holders = [this.#router, this.#worker];
    if (!(await becomes(() => holders.every(isApart), madeLimit)))
      throw new UnsoundRun("no network namespaces");
    const [router, worker] = [String(this.#router.pid), String(this.#worker.pid)];
    ip("link add home0 type veth peer name to-home netns", router);
    ip("link add to-worker netns", router, "type veth peer name away0 netns", worker);
    ip("link set lo up");
    ip(`address add ${home.own}/24 dev home0`);
    ip("link set home0 up");
    ip(`route add ${away.own}/32 via ${home.router}`);
    this.#run(this.#router, `ip address add ${home.router}/24 dev to-home`);
    this.#run(this.#router, `ip address add ${away.router}/24 dev to-worker`);
    this.#run(this.#router, "tee /proc/sys/net/ipv4/ip_forward", "1");
    this.#run(this.#worker, "ip link set lo up");
    this.#run(this.#worker, `ip address add ${away.own}/24 dev away0`);
    this.#run(this.#worker, "ip link set away0 up");
    this.#links("up");
    this.#run(this.#worker, `ip route add default via ${away.router}`);
  }

  #links(state: "up" | "down"): void {
    for (const link of ["to-home", "to-worker"]) this.#run(this.#router, `ip link set ${link} ${state}`);
  }

  #run(where: ChildProcess, command: string, input = ""): void {
    const [program = "", ...rest] = [...enter(where), ...command.split(" ")];
    execFileSync(program, rest, { input, stdio: ["pipe", "ignore", "inherit"] });
  }
}

/** A process whose only business is that its network namespace exists; it ends with this one. */
function holdNamespace(): ChildProcess {
  return spawn("unshare", ["--net", "cat"], { stdio: ["pipe", "ignore", "ignore"], detached: true });
}

function isApart({ pid }: ChildProcess): boolean {
  return readlinkSync(`/proc/${pid}/ns/net`) !== readlinkSync("/proc/self/ns/net");
}

function enter({ pid }: ChildProcess): readonly string[] {
  return ["nsenter", `--net=/proc/${pid}/ns/net`, "--"];
}

function ip(...words: readonly string[]): void {
  execFileSync(
    "ip",
    words.flatMap((word) => word.split(" ")),
    { stdio: ["ignore", "ignore", "inherit"] },
  );
}
