// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { UnsoundRun } from "../bench/unsound.ts";
import { runDirectory } from "../data/data-directory.ts";
import { readOwnersKey } from "../data/owners-key.ts";
import { portOf } from "../host/mesh-sockets.ts";
import { systemClock } from "../host/system-clock.ts";
import { readWorkerConfig } from "../worker/worker-config.ts";

export interface InstallationOptions {
  readonly data: string;
  readonly workers: number;
  /** More arguments of `up`. */
  readonly args: readonly string[];
}

const upLimitMs = 60_000;
const stopLimitMs = 90_000;
const lookEveryMs = 50;
const program = join(import.meta.dirname, "../main.ts");

/** A real `./space up` in processes of its own, which can be killed and started again on the same data and address. */
export class Installation {
  readonly #options: InstallationOptions;
  readonly #listen: string;
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #isUp = false;
  #downs = 0;
  #output = "";

  private constructor(options: InstallationOptions, port: number) {
    this.#options = { ...options, data: realpathSync(options.data) };
    this.#listen = `127.0.0.1:${port}`;
  }

  static async start(options: InstallationOptions): Promise<Installation> {
    const installation = new Installation(options, await freePort());
    await installation.up();
    return installation;
  }

  get data(): string {
    return this.#options.data;
  }

  /** Where its sockets are. */
  get run(): string {
    return runDirectory(this.data);
  }

  get apiUrl(): string {
    return `http://${this.#listen}`;
  }

  get apiKey(): string {
    return readOwnersKey(this.data)?.reveal() ?? "";
  }

  /** How often its control plane has gone, and whether it is there: a request that met neither met no outage. */
  get outages(): { readonly downs: number; readonly isUp: boolean } {
    return { downs: this.#downs, isUp: this.#isUp };
  }

  /** Number, identity and control group of each worker. */
  get workers(): readonly { readonly index: number; readonly workerId: string; readonly group: string }[] {
    return Array.from({ length: this.#options.workers }, (_, at) => {
      const { workerId, controlGroup } = readWorkerConfig(
        join(this.data, "workers", String(at + 1), "config.json"),
      );
      return { index: at + 1, workerId, group: controlGroup };
    });
  }

  get controlPid(): number | undefined {
    return this.#isUp ? this.#child?.pid : undefined;
  }

  daemonPid(index: number): number | undefined {
    return pidOf("worker-main.ts", join(this.data, "workers", String(index), "config.json"));
  }

  bridgePid(index: number): number | undefined {
    return pidOf("host-main.ts", join(this.run, `w${index}`, "bridge.json"));
  }

  /** The last of what it printed. */
  get output(): string {
    return this.#output.slice(-4000);
  }

  /** Starts it. Throws {@link UnsoundRun} when it is not up in time. */
  async up(): Promise<void> {
    const { data, workers, args } = this.#options;
    const places = ["--data", data, "--listen", this.#listen, "--tls-listen", "127.0.0.1:0"];
    const command = ["--", program, "up", ...places, "--workers", String(workers), ...args];
    const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#child = child;
    this.#ended = once(child, "exit");
    let printed = "";
    const take = (bytes: Buffer): void => {
      printed += bytes.toString("utf8");
      this.#output += bytes.toString("utf8");
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const untilMs = systemClock.monotonicMs() + upLimitMs;
    while (!printed.includes("SPACE is up")) {
      if (child.exitCode !== null || child.signalCode !== null || systemClock.monotonicMs() > untilMs)
        throw new UnsoundRun(`SPACE did not come up: ${this.output}`);
      await pause(lookEveryMs);
    }
    this.#isUp = true;
  }

  /** Kills the process with control plane, gateway and API in it; resolves when it is gone. */
  async killControlPlane(): Promise<void> {
    this.standsStill();
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }

  /** It answers nothing from now on. */
  standsStill(): void {
    this.#isUp = false;
    this.#downs += 1;
  }

  goesOn(): void {
    this.#isUp = true;
  }

  /** Ctrl-C; resolves with the exit code, or with undefined when it did not end in time and was killed. */
  async stop(): Promise<number | undefined> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return undefined;
    this.#isUp = false;
    child.kill("SIGINT");
    const late = new AbortController();
    const inTime = await Promise.race([
      this.#ended.then(() => true),
      pause(stopLimitMs, false, { signal: late.signal }).catch(() => false),
    ]);
    late.abort();
    if (!inTime) child.kill("SIGKILL");
    await this.#ended;
    return inTime ? (child.exitCode ?? undefined) : undefined;
  }
}

/** The process of this program with this argument. */
function pidOf(main: string, argument: string): number | undefined {
  for (const name of readdirSync("/proc")) {
    if (!/^[0-9]+$/.test(name)) continue;
    const words = commandOf(name);
    if (words.some((word) => word.endsWith(`/${main}`)) && words.includes(argument)) return Number(name);
  }
  return undefined;
}

function commandOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return []; // it ended while it was read
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = portOf(server);
  server.close();
  await once(server, "close");
  return port;
}
