// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import type { WorkerId } from "@space/model";
import { FrameLink } from "@space/wire";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { type BoundedRate, boundedRate } from "./bounded-rate.ts";
import type { SandboxAddress } from "./caller.ts";
import { openSecondGateway } from "./drill-system.ts";
import { countOne, namedSandboxes, readName } from "./named-sandboxes.ts";
import { presentAgainAndAgain, type Tally } from "./old-caller.ts";
import { Owner } from "./owner.ts";
import { entryNow } from "./recovery-scene.ts";
import { SteadyLoad } from "./steady-load.ts";

export interface KeysOptions {
  readonly callers: number;
  /** Keys rotated and then revoked: every second one while it retires, the others while they sign. */
  readonly rounds: number;
  readonly paceMs: number;
}

export interface KeysReport {
  readonly drill: "keys";
  readonly ok: boolean;
  readonly rotations: number;
  readonly revocations: number;
  /** Requests of valid callers, over two gateways, and those that were not served at once. */
  readonly requests: number;
  readonly refused: BoundedRate;
  readonly refusals: Readonly<Record<string, number>>;
  /** Requests with capabilities of the key before, presented to the workers while that was trusted; and refused all the same. */
  readonly oldRequests: number;
  readonly oldRefused: number;
  /** From the word that a key be revoked to the last request that any worker admitted under it: the longest. */
  readonly refusedWithinMs: number;
  readonly promisedMs: number;
  /** Capabilities of a key that were admitted once more after the word came back that it is revoked. */
  readonly admittedAfterwards: number;
}

const sandboxes = 6;
/** For receivers that are connected; `docs/keys.md` says what it is for one that does not answer. */
const promisedMs = 5000;
/** How long the key before is presented after a rotation, and after its revocation. */
const presentMs = 500;

interface Found {
  rotations: number;
  revocations: number;
  oldRequests: number;
  oldRefused: number;
  refusedWithinMs: number;
  admittedAfterwards: number;
}

/**
 * Rotates and revokes signing keys under load, while capabilities of each key before are presented to every worker: whether
 * a valid caller is refused, and how long a revoked key still counts anywhere.
 */
export async function drillKeys(system: EmbeddedSystem, options: KeysOptions): Promise<KeysReport> {
  const second = await openSecondGateway(system);
  const refusals: Record<string, number> = {};
  let requests = 0;
  const load = new SteadyLoad({
    urls: [system.apiUrl, second.url],
    paceMs: options.paceMs,
    async ask(caller, sandbox) {
      requests += 1;
      const problem = await readName(caller, sandbox);
      if (problem !== undefined) countOne(refusals, problem);
    },
  });
  const found: Found = {
    rotations: 0,
    revocations: 0,
    oldRequests: 0,
    oldRefused: 0,
    refusedWithinMs: 0,
    admittedAfterwards: 0,
  };
  try {
    const cast = await namedSandboxes(new Owner(system), sandboxes, system.apiUrl);
    load.add(options.callers, cast);
    await using links = new WorkerLinks(system);
    for (let round = 0; round < options.rounds; round += 1)
      await rotateAndRevoke({ system, cast, links, found }, round % 2 === 1);
    await load.end();
  } finally {
    await load.end();
    second.close();
  }
  const refused = Object.values(refusals).reduce((sum, count) => sum + count, 0);
  const isWhole = refused === 0 && found.oldRefused === 0 && found.admittedAfterwards === 0;
  return {
    drill: "keys",
    ok: isWhole && found.refusedWithinMs <= promisedMs,
    rotations: found.rotations,
    revocations: found.revocations,
    requests,
    refused: boundedRate(refused, requests),
    refusals,
    oldRequests: found.oldRequests,
    oldRefused: found.oldRefused,
    refusedWithinMs: found.refusedWithinMs,
    promisedMs,
    admittedAfterwards: found.admittedAfterwards,
  };
}

interface Stage {
  readonly system: EmbeddedSystem;
  readonly cast: readonly SandboxAddress[];
  readonly links: WorkerLinks;
  readonly found: Found;
}

/** `whileSigning`: the key is revoked in place of being rotated first; its successor is made for that. */
async function rotateAndRevoke(stage: Stage, whileSigning: boolean): Promise<void> {
  const { system, found } = stage;
  const kid = system.keys.view().keys.find(({ state }) => state === "signing")?.kid ?? "";
  const old = await presentOld(stage);
  try {
    await pause(presentMs);
    if (!whileSigning) {
      await system.keys.rotate();
      found.rotations += 1;
      await pause(presentMs);
    }
    found.oldRequests += old.requests();
    found.oldRefused += old.refused();
    await revoke(stage, kid, old);
  } finally {
    await old.end();
  }
}

async function revoke({ system, cast, found }: Stage, kid: string, old: OldCapabilities): Promise<void> {
  const askedMs = systemClock.wallMs();
  const { state } = await system.keys.revoke(kid);
  const revokedMs = systemClock.wallMs();
  if (state !== "revoked") throw new UnsoundRun(`the key is ${state}: a receiver did not answer`);
  found.revocations += 1;
  const requestsThen = old.requests();
  await pause(presentMs);
  await old.end();
  if (old.requests() - requestsThen < cast.length)
    throw new UnsoundRun("too little was presented after the revocation");
  const lastAdmitted = old.lastAdmittedMs();
  found.refusedWithinMs = Math.max(found.refusedWithinMs, ...lastAdmitted.map((ms) => ms - askedMs));
  found.admittedAfterwards += lastAdmitted.filter((ms) => ms > revokedMs).length;
}

interface OldCapabilities {
  requests(): number;
  refused(): number;
  /** Of each sandbox's capability. */
  lastAdmittedMs(): readonly number[];
  end(): Promise<void>;
}

/** Presents a capability for each sandbox, signed by the key that signs now, to its worker until it is told to stop. */
async function presentOld({ system, cast, links }: Omit<Stage, "found">): Promise<OldCapabilities> {
  const entries = await Promise.all(cast.map((sandbox) => entryNow(system, sandbox)));
  const workers = new Set(entries.map(({ route }) => route.endpoint.workerId));
  if (workers.size < system.workerIds.length) throw new UnsoundRun("not every worker has a sandbox");
  let isOver = false;
  const goesOn = (): boolean => !isOver;
  const presenting = entries.map(async (entry) => {
    const link = await links.to(entry.route.endpoint.workerId);
    const tally: Tally = { requests: 0, admitted: 0, lastAdmittedMs: 0 };
    return { tally, over: presentAgainAndAgain({ link, entry, goesOn }, tally) };
  });
  const all = await Promise.all(presenting);
  return {
    requests: () => all.reduce((sum, { tally }) => sum + tally.requests, 0),
    refused: () => all.reduce((sum, { tally }) => sum + tally.requests - tally.admitted, 0),
    lastAdmittedMs: () => all.map(({ tally }) => tally.lastAdmittedMs),
    async end() {
      isOver = true;
      await Promise.all(all.map(({ over }) => over));
    },
  };
}

/** One link to each worker, by the gateway's own certificate. */
class WorkerLinks implements AsyncDisposable {
  readonly #system: EmbeddedSystem;
  readonly #links = new Map<WorkerId, Promise<FrameLink>>();

  constructor(system: EmbeddedSystem) {
    this.#system = system;
  }

  to(workerId: WorkerId): Promise<FrameLink> {
    const open = this.#links.get(workerId) ?? this.#dial(workerId);
    this.#links.set(workerId, open);
    return open;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const link of this.#links.values()) (await link).destroy(undefined);
  }

  async #dial(workerId: WorkerId): Promise<FrameLink> {
    return new FrameLink(await this.#system.dialWorker(workerId), { dialled: true });
  }
}
