// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";
import * as v from "valibot";
import { type BenchGuest, openBenchSubstrate, startGuest, writeInGuest } from "./bench-guest.ts";
import { BenchProcess } from "./bench-process.ts";
import { type Contender, servedFile, servedFileUrlPath } from "./contender.ts";
import { BenchmarkedSystem } from "./contenders/benchmarked-system.ts";
import { CapabilityKit } from "./contenders/capability-kit.ts";
import { Nginx } from "./contenders/nginx.ts";
import type { Ending } from "./ending.ts";
import { agentHeaders, type CreatedSandbox } from "./sandbox-client.ts";

/** Fresh tokens for each second of a sample: more than any Node process verifies. */
const freshTokensPerSecond = 12_000;
const portsSchema = v.tuple([v.number(), v.number()]);

/** A system with one sandbox that has the file. */
export interface ReadySystem {
  readonly system: BenchmarkedSystem;
  readonly sandbox: CreatedSandbox;
}

/** Everything that is measured beside each other. */
export interface PathContenders {
  readonly all: readonly Contender[];
  readonly checked: ReadySystem;
  readonly unchecked: ReadySystem;
  /** The guest behind the agent. */
  readonly guest: BenchGuest;
  readonly kit: CapabilityKit;
  mustRun(): void;
}

interface Parts {
  readonly folder: string;
  readonly ending: Ending;
  readonly running: { mustRun(): void }[];
}

/** Starts all of them. What runs afterwards is ended by `ending`. */
export async function startPathContenders(folder: string, ending: Ending): Promise<PathContenders> {
  const parts: Parts = { folder, ending, running: [] };
  const checked = await readySystem(parts, true);
  const unchecked = await readySystem(parts, false);
  const substrate = await openBenchSubstrate(folder, "cold", ending);
  ending.add(() => substrate.close("stopAll"));
  const guest = await startGuest(substrate);
  await writeInGuest(guest, servedFile.path, servedFile.content);
  const kit = new CapabilityKit();
  const all = [
    wholePath("path", "gateway, worker with verification, bridge, guest", checked),
    wholePath("path-unchecked", "the same, its worker without verification", unchecked),
    ...(await plainContenders(parts, guest, kit)),
    await hello(parts),
  ];
  return {
    all,
    checked,
    unchecked,
    guest,
    kit,
    mustRun: () => {
      for (const each of parts.running) each.mustRun();
    },
  };
}

async function readySystem({ folder, ending, running }: Parts, checked: boolean): Promise<ReadySystem> {
  const name = checked ? "checked" : "unchecked";
  const system = await BenchmarkedSystem.start({ folder, name, workers: 1, checked }, ending);
  running.push(system.process);
  const client = await system.client();
  const sandbox = await client.create();
  await client.writeFile(sandbox, servedFile.path, servedFile.content);
  client.close();
  await system.settled();
  return { system, sandbox };
}

function wholePath(name: string, what: string, { system, sandbox }: ReadySystem): Contender {
  const { gateway, worker, bridge, guest } = system.processes();
  const target = { url: `${system.address.apiUrl}${servedFileUrlPath}`, headers: agentHeaders(sandbox) };
  return { name, what, target: () => target, processes: { gateway, worker, bridge, guest } };
}

async function plainContenders(
  parts: Parts,
  guest: BenchGuest,
  kit: CapabilityKit,
): Promise<readonly Contender[]> {
  const { folder, ending, running } = parts;
  const socket = join(folder, "agent");
  const config = agentConfig(guest, socket);
  const agent = await BenchProcess.start({ name: "agent", entry: "agent-main.ts", config, folder });
  ending.add(() => agent.process.stop());
  const files = await Nginx.files(folder);
  ending.add(() => files.nginx.stop());
  const sockets = [socket, files.socket];
  const proxy = await Nginx.proxy(folder, sockets);
  ending.add(() => proxy.nginx.stop());
  running.push(agent.process, files.nginx, proxy.nginx);
  const hops: Hops = {
    nginx: { pid: proxy.nginx.workerPid, ports: proxy.ports },
    plain: await startHop(parts, sockets, null),
    known: await startHop(parts, sockets, kit.checkConfig(folder, "known")),
    fresh: await startHop(parts, sockets, kit.checkConfig(folder, "fresh")),
  };
  const tokens = new HopTokens(kit, hops.known.process);
  const behind = { agent: [agent.process.pid], guest: [guest.evidence.guest.pid] };
  return [
    fixed({
      name: "agent",
      what: "the agent itself, without a proxy",
      port: Number(agent.ready),
      processes: behind,
    }),
    ...hopsBefore({ at: 0, suffix: "", what: "before the same agent", processes: behind }, hops, tokens),
    ...hopsBefore(
      { at: 1, suffix: "-files", what: "before an nginx that has the file", processes: {} },
      hops,
      tokens,
    ),
  ];
}

interface Hop {
  readonly pid: number;
  /** One before each backend. */
  readonly ports: readonly number[];
}

interface Hops {
  readonly nginx: Hop;
  readonly plain: Hop;
  readonly known: Hop & { readonly process: BenchProcess };
  readonly fresh: Hop;
}

interface Backend {
  readonly at: number;
  readonly suffix: string;
  readonly what: string;
  readonly processes: Contender["processes"];
}

/** The four hops before one backend. */
function hopsBefore(backend: Backend, hops: Hops, tokens: HopTokens): readonly Contender[] {
  const hop = (name: string, what: string, { pid, ports }: Hop): Contender =>
    fixed({
      name: `${name}${backend.suffix}`,
      what: `${what} ${backend.what}`,
      port: ports[backend.at] ?? 0,
      processes: { proxy: [pid], ...backend.processes },
    });
  const known = hop("node-checked", "the Node proxy with the real check and tokens used again", hops.known);
  const fresh = hop("node-checked-fresh", "the same with every token new", hops.fresh);
  return [
    hop("nginx", "nginx as a plain proxy", hops.nginx),
    hop("node", "a plain Node proxy", hops.plain),
    presenting(known, () => tokens.known()),
    presenting(fresh, (seconds) => Promise.resolve(tokens.fresh(freshTokensPerSecond * seconds))),
  ];
}

interface FixedContender extends Omit<Contender, "target"> {
  readonly port: number;
}

function fixed({ port, ...about }: FixedContender): Contender {
  const target = { url: `http://127.0.0.1:${port}${servedFileUrlPath}`, headers: {} };
  return { ...about, target: () => target };
}

/** The contender whose requests show capabilities. */
function presenting(base: Contender, values: (seconds: number) => Promise<readonly string[]>): Contender {
  return {
    ...base,
    target: async (seconds) => {
      const rotated = { header: "X-Capability", values: await values(seconds) };
      return { ...(await base.target(seconds)), rotated };
    },
  };
}

function agentConfig(guest: BenchGuest, listen: string) {
  const { activationId, sandboxId, secret, evidence } = guest;
  const { pid, startTime } = evidence.guest;
  return {
    activationId,
    sandboxId,
    secret,
    guestSocket: evidence.socketPath,
    guest: { pid, startTime },
    listen,
  };
}

async function startHop({ folder, ending, running }: Parts, agents: readonly string[], check: unknown) {
  const name = `hop-${running.length}`;
  const { process, ready } = await BenchProcess.start({
    name,
    entry: "hop-main.ts",
    config: { agents, check },
    folder,
  });
  ending.add(() => process.stop());
  running.push(process);
  return { process, pid: process.pid, ports: v.parse(portsSchema, ready) };
}

/** Capabilities for the hops with the check. */
class HopTokens {
  readonly #kit: CapabilityKit;
  readonly #hop: BenchProcess;
  #shown: readonly string[] | undefined;

  constructor(kit: CapabilityKit, hop: BenchProcess) {
    this.#kit = kit;
    this.#hop = hop;
  }

  /** Those that the hop has verified before they are measured. */
  async known(): Promise<readonly string[]> {
    const tokens = this.#kit.reused();
    if (tokens !== this.#shown) await this.#hop.ask(tokens);
    this.#shown = tokens;
    return tokens;
  }

  fresh(count: number): readonly string[] {
    return this.#kit.issue(count);
  }
}

async function hello({ folder, ending, running }: Parts): Promise<Contender> {
  const { process, ready } = await BenchProcess.start({
    name: "hello",
    entry: "hello-main.ts",
    config: {},
    folder,
  });
  ending.add(() => process.stop());
  running.push(process);
  const target = { url: `http://127.0.0.1:${String(ready)}/`, headers: {} };
  const what = "node:http answering from memory: the unit of a hop's cost";
  return { name: "hello", what, target: () => target, processes: { server: [process.pid] } };
}
