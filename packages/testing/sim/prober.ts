// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { CapabilityIssuer, importSigningKey, type SigningKey } from "@space/capability";
import {
  type ControlScope,
  controlScopes,
  type ExecutionIdentity,
  type FeedEntry,
  newActivationId,
  newAdmissionId,
  newTenantId,
  type Placement,
  type SandboxId,
  type SandboxRecord,
} from "@space/model";
import { FrameLink, type OperationHead } from "@space/wire";
import type { MemoryControlTables } from "../src/memory-control-tables.ts";
import type { MemoryKeyVault } from "../src/memory-keys.ts";
import { Incarnation } from "./event-loop.ts";
import type { Rates } from "./rates.ts";
import { epochMs } from "./sim-clock.ts";
import { operationHeader } from "./sim-guest.ts";
import { sign } from "./stand-in-crypto.ts";
import type { Statement } from "./statements.ts";
import type { WorkerNode } from "./worker-node.ts";
import type { WorldPorts } from "./world-ports.ts";

export interface ProberPorts extends WorldPorts {
  readonly tables: MemoryControlTables;
  readonly vault: MemoryKeyVault;
  readonly workers: readonly WorkerNode[];
  readonly presenters: readonly string[];
  readonly numbers: () => number;
  readonly rates: Rates;
  /** Mean time between two. */
  readonly everyMs: number;
}

/** One presentation that must be refused, and what is broken when it is not. */
interface Probe {
  readonly statement: Statement;
  readonly what: string;
  readonly token: string;
  readonly target: SandboxId;
  readonly presenter: string;
}

/** Something that the control plane signed for a worker. */
interface Carried {
  readonly workerId: string;
  readonly token: string;
  readonly kind: "install" | "retire";
}

/** Of so many of what passed by last one is replayed; or of so many that are overtaken. */
const carriedLimit = 60;
const overtakenLimit = 10;
const installedLimit = 300;

const own: Statement = "1: no effect across executions";

/**
 * Someone inside the mesh who has got hold of the signer: presents to workers what is right in every respect but one, and
 * replays what the control plane once signed. Whatever of it reaches a guest is a fault of the worker.
 */
export class Prober {
  readonly #ports: ProberPorts;
  readonly #owner = new Incarnation("prober");
  readonly #pems = new Map<string, string>();
  readonly #keys = new Map<string, SigningKey>();
  readonly #carried: Carried[] = [];
  #carriedCount = 0;
  /** The newest certificate of each sandbox on each worker. */
  readonly #installed = new Map<string, Carried>();
  /** Certificates whose sandbox has had a newer one on the same worker since. */
  readonly #overtaken: Carried[] = [];
  #stopped = false;

  constructor(ports: ProberPorts) {
    this.#ports = ports;
  }

  /** Something that was signed for a worker has passed by. */
  carried(workerId: string, kind: "install" | "retire", token: string): void {
    const carried = { workerId, kind, token };
    this.#carried[this.#carriedCount % carriedLimit] = carried;
    this.#carriedCount += 1;
    const sandboxId = kind === "install" ? sandboxOf(token) : undefined;
    if (sandboxId === undefined) return;
    const place = `${workerId} ${sandboxId}`;
    const before = this.#installed.get(place);
    if (this.#installed.size >= installedLimit) this.#installed.clear();
    this.#installed.set(place, carried);
    if (before === undefined || before.token === token) return;
    this.#overtaken.push(before);
    if (this.#overtaken.length > overtakenLimit) this.#overtaken.shift();
  }

  start(): void {
    const { loop, random } = this.#ports;
    if (this.#stopped) return;
    loop.after(random.between(0, 2 * this.#ports.everyMs), this.#owner, () => {
      for (const [kid, pem] of this.#ports.vault.texts) this.#pems.set(kid, pem);
      if (random.chance(0.25)) this.#replay();
      else this.#probe();
      this.start();
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  /** whoever carries it, an old certificate or retirement changes nothing that it should not. */
  #replay(): void {
    const { random, workers, loop } = this.#ports;
    if (this.#carried.length === 0) return;
    const isOvertaken = this.#overtaken.length > 0 && random.chance(0.5);
    const { workerId, kind, token } = random.pick(isOvertaken ? this.#overtaken : this.#carried);
    const node = workers.find((worker) => worker.workerId === workerId);
    const feed = node?.worker?.feed;
    if (node === undefined || feed === undefined) return;
    const entry: FeedEntry =
      kind === "install" ? { kind, certificate: token } : { kind, retirement: token, keepFrozen: null };
    loop.soon(node.owner, () => {
      feed.tell({ position: null, entry }).catch(() => undefined); // refused, as it should be
    });
  }

  #probe(): void {
    const { random, tables, workers } = this.#ports;
    const running = tables.all().filter(({ state }) => state === "running");
    if (running.length === 0) return;
    const record = random.pick(running);
    const { identity } = record.execution;
    const node = workers.find(({ workerId }) => workerId === identity.placement.workerId);
    const key = this.#signingKey();
    if (node?.owner === undefined || key === undefined) return;
    const probe = this.#make(record, running, key);
    if (probe !== undefined) this.#present(node, probe);
  }

  #make(record: SandboxRecord, running: readonly SandboxRecord[], key: SigningKey): Probe | undefined {
    const { random, presenters } = this.#ports;
    const { identity } = record.execution;
    const presenter = random.pick(presenters);
    const base = { target: record.sandboxId, presenter };
    const as = (what: string, statement: Statement, change: Partial<ExecutionIdentity>): Probe => ({
      ...base,
      what,
      statement,
      token: this.#token(key, { ...identity, ...change }, presenter),
    });
    const { placement, activation, generation } = identity;
    const kinds: readonly (() => Probe | undefined)[] = [
      () => as("a newer generation", own, { generation: (generation + 1n) as typeof generation }), // cast: one more
      () =>
        as("another pod", "R-2: placement", {
          placement: { ...placement, podUid: this.#otherPod(placement) },
        }),
      () => as("another substrate", own, { placement: { ...placement, substrate: "gvisor" } }),
      () => as("another activation", own, { activation: { ...activation, id: newActivationId(random) } }),
      () => as("another attempt", own, { activation: { ...activation, attempt: activation.attempt + 1 } }),
      () => this.#otherSandbox(record, running, key, presenter),
      () => ({
        ...as("a presenter's of another link", "R-7: presenter", {}),
        presenter: random.pick(presenters.filter((other) => other !== presenter)),
      }),
      () => this.#changed(base, key, identity, "a life of 121 s", { exp: 121 }),
      () => this.#changed(base, key, identity, "one that ended 31 s ago", { iat: -151, exp: -31 }),
      () => this.#changed(base, key, identity, "one of 31 s in the future", { iat: 31, exp: 151 }),
      () => ({
        ...as("a scope that the operation does not need", own, {}),
        token: this.#token(key, identity, presenter, ["metrics"]),
      }),
      () => ({
        ...as("one altered byte", "R-10: keys", {}),
        token: altered(this.#token(key, identity, presenter)),
      }),
      () => this.#byEndedKey(record, presenter),
    ];
    return random.pick(kinds)();
  }

  /** the one that was at this address before, or one that never was. */
  #otherPod({ workerId }: Placement): string {
    return this.#ports.workers.find((node) => node.workerId === workerId)?.earlierPod ?? "pod-0";
  }

  /** a capability that is good for one sandbox, presented for another. */
  #otherSandbox(
    record: SandboxRecord,
    running: readonly SandboxRecord[],
    key: SigningKey,
    presenter: string,
  ): Probe | undefined {
    const { workerId } = record.execution.identity.placement;
    const other = running.find(
      ({ sandboxId, execution }) =>
        sandboxId !== record.sandboxId && execution.identity.placement.workerId === workerId,
    );
    if (other === undefined) return undefined;
    const token = this.#token(key, other.execution.identity, presenter);
    return { statement: own, what: "another sandbox's", token, target: record.sandboxId, presenter };
  }

  /** signed by a key that the worker knows to count no more. */
  #byEndedKey(record: SandboxRecord, presenter: string): Probe | undefined {
    const { tables, oracle, workers } = this.#ports;
    const { identity } = record.execution;
    const host = workers.find(({ workerId }) => workerId === identity.placement.workerId)?.host ?? "";
    const ended = tables.signingKeys
      .all()
      .find(({ kid }) => this.#pems.has(kid) && oracle.receivers.revokedMs(host, kid) !== undefined);
    const pem = ended && this.#pems.get(ended.kid);
    if (pem === undefined) return undefined;
    const token = this.#token(this.#keyOf(pem), identity, presenter);
    return { statement: "R-10: keys", what: "a revoked key's", token, target: record.sandboxId, presenter };
  }

  #signingKey(): SigningKey | undefined {
    const signing = this.#ports.tables.signingKeys.all().find(({ state }) => state === "signing");
    const pem = signing && this.#pems.get(signing.kid);
    return pem === undefined ? undefined : this.#keyOf(pem);
  }

  #keyOf(pem: string): SigningKey {
    const key = this.#keys.get(pem) ?? importSigningKey(pem);
    this.#keys.set(pem, key);
    return key;
  }

  #token(
    key: SigningKey,
    identity: ExecutionIdentity,
    presenter: string,
    scopes: readonly ControlScope[] = controlScopes,
  ): string {
    const { random, loop } = this.#ports;
    const clock = {
      wallMs: () => Math.floor(epochMs + loop.nowMs),
      monotonicMs: () => 0,
      after: () => () => undefined,
    };
    const issuer = new CapabilityIssuer({ issuer: "simulation", key, clock, random });
    const caller = { tenantId: newTenantId(random), principal: "prober" };
    return issuer.issue({ identity, access: { purpose: "control", scopes }, caller, presenter }).token;
  }

  /** Well signed, with other times: in seconds from now, beyond all skew. */
  #changed(
    base: { readonly target: SandboxId; readonly presenter: string },
    key: SigningKey,
    identity: ExecutionIdentity,
    what: string,
    times: { readonly iat?: number; readonly exp: number },
  ): Probe {
    const [header = "", payload = ""] = this.#token(key, identity, base.presenter).split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
    const nowSeconds = claims.iat;
    claims.iat = nowSeconds + (times.iat ?? 0);
    claims.exp = nowSeconds + times.exp;
    const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
    const token = `${signed}.${sign(null, Buffer.from(signed), key.privateKey).toString("base64url")}`;
    return { ...base, statement: "R-9: time", what, token };
  }

  #present(node: WorkerNode, { statement, what, token, target, presenter }: Probe): void {
    const { loop, network, oracle, random, numbers } = this.#ports;
    const { owner, worker } = node;
    if (owner === undefined || worker === undefined) return;
    const number = numbers();
    this.#ports.rates.probes += 1;
    oracle.operations.set(number, {
      number,
      sandboxId: target,
      authorityFor: () => "",
      isEntitled: false,
      credentialEndsMs: 0,
      isEffect: false,
      forbidden: { statement, what },
      presented: [],
      reached: [],
    });
    const [near, far] = network.connect({ host: "prober", owner: this.#owner }, { host: node.host, owner });
    loop.soon(owner, () => worker.acceptGateway(far.asDuplex(), presenter));
    const link = new FrameLink(near.asDuplex(), { dialled: true });
    const head: OperationHead = {
      admission: newAdmissionId(random),
      sandbox: target,
      capability: token,
      target: { purpose: "control" },
      method: "GET",
      path: "/files?path=/a",
      headers: [operationHeader, String(number)],
    };
    const over = (): void => link.destroy(undefined);
    link.open(JSON.stringify(head), { onData: over, onEnd: over, onReset: over }, true);
    loop.after(60_000, this.#owner, () => {
      over();
      oracle.forget(number);
    });
  }
}

/** Of a certificate, without checking anything; what is none names none. */
function sandboxOf(token: string): string | undefined {
  const [, payload] = token.split(".");
  if (payload === undefined) return undefined;
  return JSON.parse(Buffer.from(payload, "base64url").toString("utf8")).sbx.sandboxId;
}

function altered(token: string): string {
  const at = token.lastIndexOf(".") + 5;
  return `${token.slice(0, at)}${token[at] === "A" ? "B" : "A"}${token.slice(at + 1)}`;
}
