// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { fileSignature } from "@space/control-plane";
import {
  type ApiCaller,
  type CallerCredential,
  type ConnectedSandbox,
  type Digest,
  isSpaceError,
  parseDigest,
  type SandboxId,
  Secret,
  type WorkerId,
} from "@space/model";
import { askReplicas, type ChooseReplica } from "./ask-replicas.ts";
import type { ControlNode } from "./control-node.ts";
import type { Incarnation } from "./event-loop.ts";
import { authorityOf, type GatewayNode } from "./gateway-node.ts";
import type { Rates } from "./rates.ts";
import { readStream } from "./read-stream.ts";
import { epochMs } from "./sim-clock.ts";
import { operationHeader } from "./sim-guest.ts";
import type { HttpOutcome } from "./sim-http.ts";
import type { TrueOperation } from "./truth.ts";
import type { WorldPorts } from "./world-ports.ts";

export interface CallerPorts extends WorldPorts {
  readonly owner: Incarnation;
  readonly gateways: readonly GatewayNode[];
  readonly chooseReplica: ChooseReplica;
  readonly apiCaller: ApiCaller;
  readonly workerIds: readonly WorkerId[];
  readonly rates: Rates;
  readonly numbers: () => number;
  /** Whether it works as much as it may between two moves, and moves more often before its end. */
  readonly isBusy: boolean;
  /** Whether new lives may begin, and old ones go on. */
  readonly goesOn: () => boolean;
}

type Kind = "read" | "write" | "long-write" | "start";

const apiLimitMs = 100_000;
/** How often an execution is its sandbox's last: many a sandbox in use is never paused. */
const lastChance = 0.85;
/** How often that is a move instead of a pause and a resume. */
const moveChance = 0.25;
const mostTries = 6;
/** Before the first retry; each further one waits twice as long, as a client's library does. */
const retryMs = 1000;
/** How long a caller who could have no sandbox waits at most before another one tries. */
const impatienceMs = 20_000;
/** Where a stream that was cut goes on. */
const connect = "/process.Process/Connect";
const longBody = Buffer.alloc(200, "x");
const shortBody = Buffer.from("x");

/** One caller's sandbox, from create to kill: it lives through pauses and resumes, is worked in, and is interfered with. */
export class Life {
  readonly #ports: CallerPorts;
  #token = "";
  #sandboxId: SandboxId | undefined;

  constructor(ports: CallerPorts) {
    this.#ports = ports;
  }

  /** Ends when its sandbox is dead, or could not be made. */
  async live(): Promise<void> {
    const { random, goesOn, isBusy } = this.#ports;
    const created = await this.#api((service, caller) =>
      service.create(caller, {
        template: "base",
        timeoutMs: random.chance(0.1) ? random.between(5_000, 40_000) | 0 : 3_600_000,
        metadata: {},
        variables: {},
        onTimeout: random.chance(0.5) ? "kill" : "pause",
        keepMemory: true,
        autoResume: false,
        autoRecover: random.chance(0.3),
      }),
    );
    if (created === undefined) {
      await this.#ports.loop.sleep(random.between(0, impatienceMs), this.#ports.owner);
      return;
    }
    this.#know(created);
    while (goesOn()) {
      await this.#work();
      if (random.chance(isBusy ? 0.12 : lastChance)) break;
      if (!(await this.#move())) break;
    }
    await this.#api((service, caller) => service.kill(caller, created.sandboxId));
  }

  #know({ sandboxId, accessToken }: ConnectedSandbox): void {
    this.#sandboxId = sandboxId;
    this.#token = accessToken.reveal();
  }

  /** A few operations, some of them at once. */
  async #work(): Promise<void> {
    const { random, loop, owner, isBusy } = this.#ports;
    const count = isBusy || random.chance(0.15) ? 1 + random.below(4) : Number(random.chance(0.8));
    const underWay: Promise<void>[] = [];
    for (let at = 0; at < count; at += 1) {
      const done = this.#operate(this.#kind());
      if (random.chance(0.6)) await done;
      else underWay.push(done);
      if (random.chance(0.3)) await loop.sleep(random.between(0, random.chance(0.1) ? 70_000 : 4000), owner);
    }
    if (random.chance(0.06)) void this.#intrude();
    if (random.chance(0.7)) await Promise.all(underWay);
  }

  #kind(): Kind {
    const { random } = this.#ports;
    const fraction = random.fraction();
    if (fraction < 0.45) return "read";
    if (fraction < 0.75) return "write";
    return fraction < 0.85 ? "long-write" : "start";
  }

  /** Pauses and resumes, perhaps elsewhere, perhaps with others doing the same. False: the sandbox is gone. */
  async #move(): Promise<boolean> {
    const { random, loop, owner, goesOn } = this.#ports;
    const sandboxId = this.#sandboxId;
    if (sandboxId === undefined) return false;
    const pause = random.chance(moveChance)
      ? this.#relocate(sandboxId)
      : this.#api((service, caller) => service.pause(caller, sandboxId, random.chance(0.6)));
    if (random.chance(0.1)) void this.#operate(this.#kind());
    if (random.chance(0.1)) void this.#interfere(sandboxId);
    await pause;
    if (random.chance(0.3)) await loop.sleep(random.between(0, 5000), owner);
    for (let attempt = 0; attempt < mostTries && goesOn(); attempt += 1) {
      const resumed = await this.#connect(sandboxId);
      if (resumed === "gone") return false;
      if (resumed !== undefined) return true;
      await loop.sleep(random.between(200, 4000) * 2 ** attempt, owner);
    }
    return goesOn();
  }

  /** In one call, by which it runs elsewhere, or where it was, or is paused. */
  #relocate(sandboxId: SandboxId): Promise<unknown> {
    const { random, workerIds } = this.#ports;
    const request = random.chance(0.5) ? { workerId: random.pick(workerIds) } : {};
    return this.#api((service, caller) => service.move(caller, sandboxId, request));
  }

  /** Of a lost one it names the newest snapshot, as whoever wants what is left must (statement 5). */
  async #connect(sandboxId: SandboxId, snapshot?: Digest): Promise<ConnectedSandbox | "gone" | undefined> {
    const { random, workerIds } = this.#ports;
    const workerId = random.chance(0.3) ? random.pick(workerIds) : undefined;
    const request = {
      timeoutMs: 3_600_000,
      memory: random.chance(0.7),
      ...(workerId === undefined ? {} : { workerId }),
      ...(snapshot === undefined ? {} : { snapshot }),
    };
    let isGone = false;
    let newest: string | null = null;
    const connected = await this.#api(
      (service, caller) => service.connect(caller, sandboxId, request),
      (error) => {
        isGone = isSpaceError(error, "sandbox/not-found") || isSpaceError(error, "sandbox/state");
        if (!isSpaceError(error, "sandbox/lost")) return;
        newest = error.details.snapshot;
        isGone = newest === null;
      },
    );
    if (newest !== null && snapshot === undefined) return this.#connect(sandboxId, parseDigest(newest));
    return connected ?? (isGone ? "gone" : undefined);
  }

  /** Somebody else of the same tenant does something at the same time. */
  async #interfere(sandboxId: SandboxId): Promise<void> {
    const { random, loop, owner } = this.#ports;
    await loop.sleep(random.between(0, 60), owner);
    const fraction = random.fraction();
    if (fraction < 0.5) await this.#connect(sandboxId);
    else if (fraction < 0.7) await this.#api((service, caller) => service.kill(caller, sandboxId));
    else if (fraction < 0.85)
      await this.#api((service, caller) => service.setTimeout(caller, sandboxId, 20_000));
    else await this.#api((service, caller) => service.pause(caller, sandboxId, true));
  }

  async #api<T>(
    ask: (service: NonNullable<ControlNode["control"]>["service"], caller: ApiCaller) => Promise<T>,
    onError: (error: unknown) => void = () => undefined,
  ): Promise<T | undefined> {
    const { chooseReplica, apiCaller, owner, loop, rates, oracle } = this.#ports;
    const call = { from: { host: "callers", owner }, limitMs: apiLimitMs };
    try {
      return await askReplicas(chooseReplica, call, ({ service }) => ask(service, apiCaller));
    } catch (error) {
      if (!isSpaceError(error) || error.code === "internal/bug")
        oracle.violate(
          "no component fails by a bug",
          `an API call: ${error instanceof Error ? error.stack : String(error)}`,
        );
      rates.apiFailed(isSpaceError(error) ? error.code : "bug");
      onError(error);
      await loop.sleep(50, owner);
      return undefined;
    }
  }

  /** One operation of the caller, tried again as the answers say. */
  async #operate(kind: Kind): Promise<void> {
    const { random, loop, owner, rates, oracle } = this.#ports;
    if (this.#sandboxId === undefined) return;
    const beganMs = loop.nowMs;
    rates.operations += 1;
    for (let attempt = 0; attempt < mostTries; attempt += 1) {
      const { outcome, operation } = await this.#once(
        kind,
        { kind: "access-token", token: new Secret(this.#token) },
        true,
      );
      this.#ports.oracle.isOver(operation);
      if (outcome.status === 200) {
        const isServed = this.#heard(kind, operation, outcome);
        if (isServed) rates.served(attempt);
        else if (!oracle.isEligible(operation)) rates.notRunning += 1;
        else rates.failed("broken off");
        return;
      }
      if (outcome.status === 502 && !oracle.wasServedSince(operation.sandboxId, beganMs)) {
        rates.notRunning += 1;
        return;
      }
      const mayRetry = outcome.status === 503 || outcome.status === 429;
      if (!mayRetry) {
        rates.failed(outcome.broken ? "no answer" : String(outcome.status));
        return;
      }
      await loop.sleep(random.between(0.9, 1.5) * retryMs * 2 ** attempt, owner);
    }
    rates.failed("503 again and again");
  }

  /** Whether a whole answer came. */
  #heard(kind: Kind, operation: TrueOperation, { body, broken }: HttpOutcome): boolean {
    const { oracle, rates } = this.#ports;
    if (kind !== "start") {
      if (body.includes("|")) oracle.answered(operation, Number(body.slice(0, body.indexOf("|"))));
      return !broken;
    }
    const { uid, ending, disorder } = readStream(body);
    if (ending === "whole" || oracle.isEligible(operation)) rates.streams += 1;
    if (ending !== "whole" && oracle.isEligible(operation)) rates.droppedStreams += 1;
    if (uid !== undefined) oracle.answered(operation, uid);
    if (disorder !== undefined)
      oracle.violate("R-22: each byte once", `operation ${operation.number}: ${disorder}`);
    return ending === "whole";
  }

  /** Somebody without access, or with less, tries. */
  async #intrude(): Promise<void> {
    const { random, loop, owner } = this.#ports;
    const sandboxId = this.#sandboxId;
    if (sandboxId === undefined) return;
    const token = new Secret(this.#token);
    const isSigned = random.chance(0.5);
    const credential: CallerCredential = isSigned
      ? signedFile(token, Math.floor((epochMs + loop.nowMs + random.between(-30_000, 40_000)) / 1000))
      : { kind: "access-token", token: new Secret(`${"0".repeat(63)}${random.below(10)}`) };
    for (let times = 0; times < 3; times += 1) {
      const { outcome, operation } = await this.#once("read", credential, isSigned);
      if (outcome.status === 200) this.#heard("read", operation, outcome);
      this.#ports.oracle.isOver(operation);
      await loop.sleep(random.between(0, 40_000), owner);
    }
  }

  #once(
    kind: Kind,
    credential: CallerCredential,
    isEntitled: boolean,
  ): Promise<{ readonly outcome: HttpOutcome; readonly operation: TrueOperation }> {
    const { gateways, random, oracle, owner, numbers } = this.#ports;
    const sandboxId = this.#sandboxId as SandboxId; // cast: nothing is asked for before it is known
    const number = numbers();
    const scope = kind === "read" ? "files:read" : kind === "start" ? "process:run" : "files:write";
    const operation: TrueOperation = {
      number,
      sandboxId,
      authorityFor: (path) =>
        authorityOf({
          sandboxId,
          credential,
          wanted: { purpose: "control", scope: path === connect ? "process:attach" : scope },
        }),
      isEntitled,
      credentialEndsMs:
        credential.kind === "file-signature" && credential.expiresAtSeconds !== undefined
          ? credential.expiresAtSeconds * 1000 - epochMs + clockWorstMs
          : Number.POSITIVE_INFINITY,
      isEffect: kind !== "read",
      presented: [],
      reached: [],
    };
    oracle.operations.set(number, operation);
    const body = kind === "read" ? undefined : kind === "long-write" ? longBody : shortBody;
    return new Promise((resolve) => {
      random.pick(gateways).request(
        {
          method: kind === "read" ? "GET" : "POST",
          url: urlOf(kind, credential),
          rawHeaders: headersOf(operation, credential, body),
          body,
        },
        { owner, onPiece: () => undefined, onOutcome: (outcome) => resolve({ outcome, operation }) },
      );
    });
  }
}

/** how far the clock that decides of a signature's expiry, a replica's, may be behind true time. */
const clockWorstMs = 7_500;

function urlOf(kind: Kind, credential: CallerCredential): string {
  if (kind === "start") return "/process.Process/Start";
  if (credential.kind !== "file-signature") return "/files?path=/a";
  const { signature, expiresAtSeconds } = credential;
  return `/files?path=/a&username=user&signature=${encodeURIComponent(signature.reveal())}&signature_expiration=${expiresAtSeconds}`;
}

function headersOf(
  { sandboxId, number }: TrueOperation,
  credential: CallerCredential,
  body: Buffer | undefined,
): string[] {
  const headers = ["Host", "localhost", "E2b-Sandbox-Id", sandboxId, "E2b-Sandbox-Port", "49983"];
  headers.push(operationHeader, String(number));
  if (credential.kind === "access-token") headers.push("X-Access-Token", credential.token.reveal());
  if (body !== undefined) headers.push("Content-Length", String(body.length));
  return headers;
}

function signedFile(token: Secret<string>, expiresAtSeconds: number): CallerCredential {
  const of = { path: "/a", operation: "read", username: "user", expiresAtSeconds } as const;
  return { kind: "file-signature", ...of, signature: new Secret(fileSignature(of, token)) };
}
