// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type KeyBundleReceiver,
  type ResolveAnswer,
  type ResolveRequest,
  Secret,
  type WantedAccess,
} from "@space/model";
import { UnsoundRun } from "../bench/unsound.ts";
import type { GatewaysControl } from "../embedded/gateway-part.ts";
import { ProcessChannel } from "./process-channel.ts";

export interface ControlConfig {
  readonly data: string;
  readonly workers: number;
}

/** What the process says of itself once it serves. */
export interface ControlReady {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly workerIds: readonly string[];
  readonly workerPids: readonly number[];
  /** Where it listens for workers. */
  readonly meshPort: number;
}

/** A question for a route, as it goes from process to process. */
export interface AskedRoute {
  readonly sandboxId: string;
  readonly token: string;
  readonly wanted: WantedAccess;
  readonly presenter: string;
}

const logTailChars = 2_000;

interface StartedProcess {
  readonly child: ChildProcess;
  readonly channel: ProcessChannel;
  /** How it ended, when it has. */
  readonly ended: Promise<string>;
  readonly logPath: string;
  /** Who is given verification bundles. */
  readonly gateway: { replaceKeys(bundle: string): Promise<void> };
}

/** A control plane with its workers, in a process of its own. What asks it is outside of it, and sees when it stands still. */
export class ControlProcess implements GatewaysControl {
  readonly ready: ControlReady;
  readonly routes: GatewaysControl["routes"];
  readonly #started: StartedProcess;

  /** Starts it; throws {@link UnsoundRun} with the end of its log when it does not come up. */
  static async start(config: ControlConfig): Promise<ControlProcess> {
    const started = spawnControl(config.data);
    try {
      const ready = await started.channel.ask("start", config);
      return new ControlProcess(started, ready as ControlReady); // cast: our own program's word
    } catch (error) {
      const log = readFileSync(started.logPath, "utf8").slice(-logTailChars);
      await end(started);
      throw new UnsoundRun(`the control plane did not start: ${String(error)}\n${log}`);
    }
  }

  private constructor(started: StartedProcess, ready: ControlReady) {
    this.#started = started;
    this.ready = ready;
    this.routes = routesOver(started.channel);
  }

  get apiUrl(): string {
    return this.ready.apiUrl;
  }

  get apiKey(): Secret<string> {
    return new Secret(this.ready.apiKey);
  }

  get pid(): number {
    return this.#started.child.pid ?? 0;
  }

  /** For one gateway, until this process ends. */
  async attachGateway(gateway: KeyBundleReceiver): Promise<() => void> {
    this.#started.gateway.replaceKeys = (bundle) => gateway.replaceKeys(bundle);
    await this.#started.channel.ask("attach");
    return () => undefined;
  }

  /** Lets it go on if it was stopped, and ends it with all that it started. */
  stop(): Promise<void> {
    return end(this.#started);
  }
}

function spawnControl(data: string): StartedProcess {
  const logPath = join(data, "control-process.log");
  const log = openSync(logPath, "a", 0o600);
  const child = spawn(process.execPath, [join(import.meta.dirname, "control-main.ts")], {
    stdio: ["ignore", log, log, "ipc"],
    serialization: "advanced",
    detached: true, // Ctrl-C reaches the whole foreground group: the drill decides the order of stopping
  });
  closeSync(log);
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  child.once("error", (error) => resolve(error.message));
  child.once("exit", (code, signal) => resolve(signal ?? `code ${code}`));
  const gateway: StartedProcess["gateway"] = { replaceKeys: () => Promise.resolve() };
  const channel = new ProcessChannel(
    {
      on: (event, listener) => child.on(event, listener),
      send: (message) => child.connected && child.send(message),
    },
    { replaceKeys: (bundle) => gateway.replaceKeys(String(bundle)) },
  );
  void ended.then((how) => channel.close(`the control plane ended (${how})`));
  return { child, channel, ended, logPath, gateway };
}

async function end({ child, ended }: StartedProcess): Promise<void> {
  child.kill("SIGCONT");
  if (child.connected) child.disconnect();
  await ended;
}

function routesOver(channel: ProcessChannel): GatewaysControl["routes"] {
  let asked = 0;
  return {
    get asked() {
      return asked;
    },
    resolve({ sandboxId, credential, wanted, presenter }: ResolveRequest): Promise<ResolveAnswer> {
      asked += 1;
      if (credential.kind !== "access-token") return Promise.resolve({ kind: "not-found" });
      const question: AskedRoute = { sandboxId, token: credential.token.reveal(), wanted, presenter };
      return channel.ask("resolve", question) as Promise<ResolveAnswer>; // cast: our own program's word
    },
  };
}
