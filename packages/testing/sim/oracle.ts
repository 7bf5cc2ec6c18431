// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { RuntimeRecord, SandboxId, SandboxRecord } from "@space/model";
import type { EventLoop } from "./event-loop.ts";
import { epochMs } from "./sim-clock.ts";
import type { SimProcess } from "./sim-machine.ts";
import {
  type ReadCapability,
  readBundle,
  readCapability,
  type Statement,
  type Violation,
} from "./statements.ts";
import type { Grant, Presentation, TrueExecution, TrueOperation, TrueSandbox } from "./truth.ts";

/** capability life at the worst clocks, and what is on its way. */
const capabilityWorstMs = 150_000;
const onTheWayMs = 5_000;
/** */
const authorisationMs = 60_000;
/** how long bytes may go on after the end of an epoch. */
const epochEndMs = 100;
/** A bundle that a receiver takes so long after it was signed came slowly, whatever the clocks say. */
const slowKeysMs = 25_000;
/** Most violations that one world keeps. */
const violationLimit = 20;

/**
 * Knows what is true in a world and holds what happens against the seven statements. It uses nothing of the product's
 * judgement: identities are compared member by member with what was claimed, times are true times.
 */
export class Oracle {
  readonly violations: Violation[] = [];
  readonly operations = new Map<number, TrueOperation>();
  readonly #loop: EventLoop;
  readonly #executions = new Map<string, TrueExecution>();
  readonly #sandboxes = new Map<SandboxId, TrueSandbox>();
  readonly #capabilities = new Map<string, { readonly read: ReadCapability; readonly issuedMs: number }>();
  readonly #grants = new Map<string, Grant>();
  /** Epochs of runtime processes: how often each was frozen, and when last. */
  readonly #freezes = new Map<number, { count: number; atMs: number }>();
  readonly #streams = new Map<number, { readonly process: SimProcess; readonly freezes: number }>();
  readonly #epochEnds = new Map<string, number>();
  readonly #revoked = new Map<string, number>();
  readonly #kids = new Map<string, ReadonlySet<string>>();
  #repair: { readonly key: string; readonly step: number } | undefined;
  executionsBegun = 0;
  /** Told when a bundle took long to reach a receiver. */
  onSlowKeys: () => void = () => undefined;
  onViolation: (violation: Violation) => void = () => undefined;

  constructor(loop: EventLoop) {
    this.#loop = loop;
  }

  violate(statement: Statement, problem: string): void {
    if (this.violations.length >= violationLimit) return;
    const { nowMs, steps } = this.#loop;
    const violation = { statement, problem, atMs: nowMs, step: steps, executions: this.executionsBegun };
    this.violations.push(violation);
    this.onViolation(violation);
  }

  /** A sandbox's row has changed, durably. */
  rowChanged(before: SandboxRecord | undefined, after: SandboxRecord): void {
    const { sandboxId, execution, state } = after;
    const sandbox = this.#sandbox(sandboxId);
    sandbox.state = state;
    if (before === undefined || after.generation !== before.generation) this.#claimed(after);
    const wasDead = before?.state === "killing" || before?.state === "killed";
    if (wasDead && state !== "killing" && state !== "killed")
      this.violate("6: a delete wins", `${sandboxId} went from ${before.state} to ${state}`);
    if (before?.state === "pausing" && state === "paused") {
      const files = sandbox.snapshots.get(execution.identity.activation.id);
      if (files === undefined)
        this.violate("5: newest intact snapshot", `${sandboxId}: a commit without a snapshot`);
      else sandbox.committed = files;
      this.#keepsWrites(sandboxId, sandbox, files ?? "", "committed snapshot");
    }
    // What ran is gone and says so: writes since the snapshot are lost, and were reported as lost.
    if (state !== "lost") return;
    sandbox.acknowledged = new Set(numbersOf(sandbox.committed ?? ""));
    for (const { uid } of sandbox.processes) sandbox.lost.add(uid);
  }

  recordChanged(host: string, before: RuntimeRecord | undefined, after: RuntimeRecord): void {
    if (before === undefined) return;
    const [old, now] = [before.identity, after.identity];
    const isLower =
      now.generation < old.generation ||
      (now.generation === old.generation && now.activation.attempt < old.activation.attempt);
    const isConflict = now.generation === old.generation && now.activation.id !== old.activation.id;
    if (isLower || isConflict)
      this.violate(
        "1: no effect across executions",
        `R-12 ${host}: a record went back from ${old.generation} to ${now.generation}`,
      );
    if (before.epoch !== after.epoch)
      this.#epochEnds.set(`${host} ${now.sandboxId} ${before.epoch}`, this.#loop.nowMs);
  }

  started(process: SimProcess, fromSnapshot: boolean): void {
    const sandbox = this.#sandbox(process.sandboxId);
    sandbox.processes.push(process);
    if (fromSnapshot) {
      if (process.files !== sandbox.committed)
        this.violate(
          "5: newest intact snapshot",
          `${process.sandboxId} was restored to [${process.files}], committed is [${sandbox.committed}]`,
        );
      this.#keepsWrites(process.sandboxId, sandbox, process.files, "restored files");
    }
    this.turned(process);
  }

  turned(process: SimProcess): void {
    const { running } = this.#sandbox(process.sandboxId);
    if (process.state === "running") running.add(process);
    else running.delete(process);
    if (process.state === "frozen") {
      const count = this.#freezes.get(process.uid)?.count ?? 0;
      this.#freezes.set(process.uid, { count: count + 1, atMs: this.#loop.nowMs });
    }
    if (running.size > 1) {
      const where = [...running].map(
        ({ uid, host, activation }) =>
          `${uid} on ${host} (generation ${this.#executions.get(activation)?.generation})`,
      );
      this.violate("2: one incarnation acts", `${process.sandboxId}: ${where.join(" and ")}`);
    }
  }

  snapshotted(process: SimProcess): void {
    this.#sandbox(process.sandboxId).snapshots.set(process.activation, process.files);
  }

  /** A look-up was sent. Returns what to call with a granted entry. */
  asked(gateway: string, authority: string): (capability: string) => void {
    const beganMs = this.#loop.nowMs;
    const key = `${gateway} ${authority}`;
    const isRepair = this.#repair?.key === key && this.#repair.step === this.#loop.steps;
    const before = this.#grants.get(key);
    const limitMs =
      isRepair && before !== undefined && before.untilMs > beganMs
        ? before.untilMs
        : Number.POSITIVE_INFINITY;
    return (capability) => {
      if (!this.#capabilities.has(capability))
        this.#capabilities.set(capability, { read: readCapability(capability), issuedMs: this.#loop.nowMs });
      const untilMs = Math.min(beganMs + authorisationMs, limitMs);
      if (untilMs > (this.#grants.get(key)?.untilMs ?? 0)) this.#grants.set(key, { untilMs });
    };
  }

  /** A recognised rejection reached a gateway, for this authority: a look-up in this very turn is a repair. */
  rejected(gateway: string, authority: string): void {
    this.#repair = { key: `${gateway} ${authority}`, step: this.#loop.steps };
  }

  /** An operation's head leaves a gateway. */
  presented(
    { gateway, host, path }: { readonly gateway: string; readonly host: string; readonly path: string },
    number: number,
    token: string,
  ): Presentation | undefined {
    const operation = this.operations.get(number);
    if (operation === undefined) return undefined;
    const known = this.#capabilities.get(token);
    if (known === undefined) {
      this.violate("R-10: keys", `operation ${number}: a capability that was never issued to this gateway`);
      return undefined;
    }
    const { nowMs } = this.#loop;
    const grant = this.#grants.get(`${gateway} ${operation.authorityFor(path)}`);
    if (grant === undefined || nowMs > grant.untilMs + onTheWayMs)
      this.violate(
        "R-25: authorisation ends",
        `operation ${number} was presented ${nowMs - (grant?.untilMs ?? 0)} ms after its caller's authorisation had ended`,
      );
    const presentation = {
      operation,
      capability: known.read,
      presenter: gateway,
      sentMs: nowMs,
      issuedMs: known.issuedMs,
      host,
      path,
      epoch: undefined,
    };
    operation.presented.push(presentation);
    return presentation;
  }

  /** An operation has its effect, or reads, in a guest. */
  acted(number: number, process: SimProcess): void {
    const operation = this.#admitted(number, process);
    if (operation === undefined) return;
    operation.reached.push(process.uid);
    if (operation.isEffect && operation.reached.length > 1)
      this.violate(
        "R-28: never a second run",
        `operation ${number} ran in processes ${operation.reached.join(" and ")}`,
      );
  }

  /** A stream is let in to what a process began before. */
  attached(number: number, process: SimProcess): void {
    const operation = this.#admitted(number, process);
    if (operation !== undefined && !operation.reached.includes(process.uid))
      this.violate(
        "1: no effect across executions",
        `operation ${number} hears process ${process.uid}, which it never reached`,
      );
  }

  /** What must hold of everything that reaches a guest. */
  #admitted(number: number, process: SimProcess): TrueOperation | undefined {
    const operation = this.operations.get(number);
    const presentation = operation?.presented.findLast(
      ({ host, epoch }) => host === process.host && epoch !== undefined,
    );
    if (operation === undefined || presentation === undefined) {
      this.violate(
        "1: no effect across executions",
        `operation ${number} reached process ${process.uid} without a presentation`,
      );
      return undefined;
    }
    this.#belongs(presentation, process);
    this.#mayAct(presentation, process);
    this.#streams.set(number, { process, freezes: this.#freezes.get(process.uid)?.count ?? 0 });
    return operation;
  }

  #mayAct({ operation, capability, issuedMs, sentMs, presenter }: Presentation, process: SimProcess): void {
    const { number } = operation;
    const { nowMs } = this.#loop;
    if (!operation.isEntitled)
      this.violate(
        "4: repair admits nobody",
        `operation ${number} of a caller without access reached ${process.sandboxId}`,
      );
    if (nowMs - issuedMs > capabilityWorstMs + onTheWayMs)
      this.violate("R-9: time", `operation ${number} acted on a capability ${nowMs - issuedMs} ms old`);
    if (sentMs > operation.credentialEndsMs + authorisationMs)
      this.violate("R-25: authorisation ends", `operation ${number} acted after its credential's end`);
    if (capability.presenter !== presenter)
      this.violate("R-7: presenter", `operation ${number} came from ${presenter} with another's capability`);
    const revokedMs = this.#revoked.get(`${process.host} ${capability.kid}`);
    if (revokedMs !== undefined && nowMs > revokedMs + onTheWayMs)
      this.violate(
        "R-10: keys",
        `operation ${number} acted on a capability of a key that ${process.host} knew to be revoked`,
      );
  }

  /** Bytes of a stream leave the guest. */
  streamed(number: number, process: SimProcess): void {
    const stream = this.#streams.get(number);
    if (stream === undefined || stream.process !== process)
      this.violate(
        "3: no byte after the epoch",
        `operation ${number} hears process ${process.uid}, which it never reached`,
      );
    else if ((this.#freezes.get(process.uid)?.count ?? 0) !== stream.freezes)
      this.violate(
        "3: no byte after the epoch",
        `operation ${number} still hears process ${process.uid} after a pause`,
      );
  }

  /** Bytes of a presented operation leave the worker, either way, under the record that it has now. */
  forwarded(presentation: Presentation, record: RuntimeRecord | undefined): void {
    const { epoch, host, operation } = presentation;
    if (epoch === undefined || record?.epoch === epoch) return;
    const endedMs = this.#epochEnds.get(`${host} ${operation.sandboxId} ${epoch}`);
    if (endedMs === undefined || this.#loop.nowMs > endedMs + epochEndMs)
      this.violate(
        "3: no byte after the epoch",
        `${host} forwarded bytes of operation ${operation.number} after epoch ${epoch}`,
      );
  }

  /** A caller has an answer, in which this process spoke. */
  answered(operation: TrueOperation, uid: number): void {
    if (!operation.reached.includes(uid))
      this.violate(
        "1: no effect across executions",
        `operation ${operation.number} was answered by process ${uid}, which it never reached`,
      );
    const sandbox = this.#sandbox(operation.sandboxId);
    if (operation.isEffect && !sandbox.lost.has(uid)) sandbox.acknowledged.add(operation.number);
  }

  /** a receiver has made this bundle durable: what it leaves out is revoked there from now on. */
  bundleTaken(host: string, token: string): void {
    const { keys, iat } = readBundle(token);
    const { nowMs } = this.#loop;
    const known = this.#kids.get(host) ?? new Set();
    for (const kid of known) {
      const name = `${host} ${kid}`;
      if (!keys.includes(kid) && !this.#revoked.has(name)) this.#revoked.set(name, nowMs);
    }
    this.#kids.set(host, new Set([...known, ...keys]));
    if (epochMs + nowMs - iat * 1000 > slowKeysMs) this.onSlowKeys();
  }

  runningOf(sandboxId: SandboxId): ReadonlySet<SimProcess> {
    return this.#sandbox(sandboxId).running;
  }

  forget(number: number): void {
    this.operations.delete(number);
    this.#streams.delete(number);
  }

  #claimed({ sandboxId, execution }: SandboxRecord): void {
    const { generation, placement, activation } = execution.identity;
    this.executionsBegun += 1;
    this.#executions.set(activation.id, {
      sandboxId,
      generation: generation.toString(),
      workerId: placement.workerId,
      podUid: placement.podUid,
    });
  }

  /** Statement 1: the capability names exactly the execution that this process is, and the sandbox that was asked for. */
  #belongs({ operation, capability }: Presentation, process: SimProcess): void {
    const truth = this.#executions.get(process.activation);
    const isOwn =
      truth !== undefined &&
      truth.sandboxId === process.sandboxId &&
      operation.sandboxId === process.sandboxId &&
      capability.sandboxId === process.sandboxId &&
      capability.generation === truth.generation &&
      capability.workerId === truth.workerId &&
      capability.podUid === truth.podUid &&
      capability.activationId === process.activation;
    if (isOwn) return;
    this.violate(
      "1: no effect across executions",
      `operation ${operation.number} for ${operation.sandboxId}, authorised for generation ${capability.generation} of ${capability.sandboxId} on ${capability.workerId}, reached generation ${truth?.generation} of ${process.sandboxId} on ${truth?.workerId}`,
    );
  }

  #keepsWrites(sandboxId: SandboxId, { acknowledged }: TrueSandbox, files: string, what: string): void {
    const kept = new Set(numbersOf(files));
    for (const number of acknowledged) {
      if (!kept.has(number))
        this.violate("7: acknowledged writes survive", `${sandboxId}: write ${number} is not in the ${what}`);
    }
  }

  #sandbox(sandboxId: SandboxId): TrueSandbox {
    const known = this.#sandboxes.get(sandboxId);
    if (known !== undefined) return known;
    const made: TrueSandbox = {
      running: new Set(),
      committed: undefined,
      snapshots: new Map(),
      acknowledged: new Set(),
      processes: [],
      lost: new Set(),
      state: "creating",
    };
    this.#sandboxes.set(sandboxId, made);
    return made;
  }
}

function numbersOf(files: string): number[] {
  return files === "" ? [] : files.trim().split(" ").map(Number);
}
