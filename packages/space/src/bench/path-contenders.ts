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
  const substrate = await openBenchSubstrate(folder, "cold");
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
  const agent = await BenchProcess.start({
    name: "agent",
    entry: "agent-main.ts",
    config: agentConfig(guest, socket),
    folder,
  });
  ending.add(() => agent.process.stop());
  const files = await Nginx.files(folder);
  ending.add(() => files.nginx.stop());
  const proxy = await Nginx.proxy(folder, [socket, files.socket]);
  ending.add(() => proxy.nginx.stop());
  running.push(agent.process, files.nginx, proxy.nginx);

  const behind = { agent: [agent.process.pid], guest: [guest.evidence.guest.pid] };
  const fixed = (name: string, what: string, port: unknown, processes: Contender["processes"]): Contender => {
    const target = { url: `http://127.0.0.1:${String(port)}${servedFileUrlPath}`, headers: {} };
    return { name, what, target: () => target, processes };
  };
  const nginx = [proxy.nginx.workerPid];
  const hop = await startHop(parts, [socket, files.socket], null);
  const tokens = new HopTokens(kit);
  const known = await startHop(parts, [socket, files.socket], kit.checkConfig(folder, "known"));
  const fresh = await startHop(parts, [socket, files.socket], kit.checkConfig(folder, "fresh"));
  const withTokens = (
    base: Contender,
    values: (seconds: number) => Promise<readonly string[]>,
  ): Contender => ({
    ...base,
    target: async (seconds) => ({
      ...(await base.target(seconds)),
      rotated: { header: "X-Capability", values: await values(seconds) },
    }),
  });
  const perBackend = [
    { at: 0, suffix: "", before: "before the same agent", processes: behind },
    { at: 1, suffix: "-files", before: "before an nginx that has the file", processes: {} },
  ].flatMap(({ at, suffix, before, processes }) => [
    fixed(`nginx${suffix}`, `nginx as a plain proxy ${before}`, proxy.ports[at], {
      proxy: nginx,
      ...processes,
    }),
    fixed(`node${suffix}`, `a plain Node proxy ${before}`, hop.ports[at], {
      proxy: [hop.process.pid],
      ...processes,
    }),
    withTokens(
      fixed(
        `node-checked${suffix}`,
        `the Node proxy with the real check ${before}, tokens used again`,
        known.ports[at],
        {
          proxy: [known.process.pid],
          ...processes,
        },
      ),
      () => tokens.known(known.process),
    ),
    withTokens(
      fixed(`node-checked-fresh${suffix}`, `the same ${before}, every token new`, fresh.ports[at], {
        proxy: [fresh.process.pid],
        ...processes,
      }),
      (seconds) => Promise.resolve(kit.issue(freshTokensPerSecond * seconds)),
    ),
  ]);
  return [fixed("agent", "the agent itself, without a proxy", agent.ready, behind), ...perBackend];
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
  return { process, ports: v.parse(portsSchema, ready) };
}

/** Tokens that the hop has verified before they are measured. */
class HopTokens {
  readonly #kit: CapabilityKit;
  #shown: readonly string[] | undefined;

  constructor(kit: CapabilityKit) {
    this.#kit = kit;
  }

  async known(hop: BenchProcess): Promise<readonly string[]> {
    const { tokens } = this.#kit.reused();
    if (tokens !== this.#shown) await hop.ask(tokens);
    this.#shown = tokens;
    return tokens;
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
