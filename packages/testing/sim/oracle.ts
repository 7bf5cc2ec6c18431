// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { RuntimeRecord, SandboxId, SandboxRecord } from "@space/model";
import { isEligible } from "./eligible.ts";
import type { EventLoop } from "./event-loop.ts";
import { GatewayOracle } from "./oracle-gateways.ts";
import { LifecycleOracle } from "./oracle-lifecycle.ts";
import { ReceiverOracle } from "./oracle-receivers.ts";
import type { SimProcess } from "./sim-machine.ts";
import type { Statement, Violation } from "./statements.ts";
import type { Presentation, TrueExecution, TrueOperation, TrueSandbox } from "./truth.ts";

/** capability life at the worst clocks, and what is on its way. */
const capabilityWorstMs = 150_000;
const onTheWayMs = 5_000;
/** by how much a gateway's clock may run slow in the minute that an authorisation lasts at most. */
const clockMarginMs = 2_000;
/** How long an operation that is over may still have something on its way. */
const knownForMs = 400_000;
/** Most violations that one world keeps. */
const violationLimit = 20;

/**
 * Knows what is true in a world and holds what happens against the seven statements. It uses nothing of the product's
 * judgement: identities are compared member by member with what was claimed, times are true times.
 */
export class Oracle {
  readonly violations: Violation[] = [];
  readonly operations = new Map<number, TrueOperation>();
  readonly gateways: GatewayOracle;
  readonly receivers: ReceiverOracle;
  readonly lifecycle: LifecycleOracle;
  readonly #loop: EventLoop;
  readonly #executions = new Map<string, TrueExecution>();
  readonly #sandboxes = new Map<SandboxId, TrueSandbox>();
  /** Epochs of runtime processes: how often each was frozen, and when last. */
  readonly #freezes = new Map<number, { count: number; atMs: number }>();
  readonly #streams = new Map<number, { readonly process: SimProcess; readonly freezes: number }>();
  /** Operations that are over, the oldest first. */
  #over: { readonly number: number; readonly atMs: number }[] = [];
  /** How many of them are forgotten already. */
  #forgotten = 0;
  executionsBegun = 0;
  /** What is on a worker's disk. */
  recordOf: (host: string, sandboxId: SandboxId) => RuntimeRecord | undefined = () => undefined;
  onViolation: (violation: Violation) => void = () => undefined;

  constructor(loop: EventLoop) {
    this.#loop = loop;
    const violate = (statement: Statement, problem: string): void => this.violate(statement, problem);
    this.gateways = new GatewayOracle(loop, violate);
    this.receivers = new ReceiverOracle(loop, violate);
    this.lifecycle = new LifecycleOracle(violate);
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
    this.lifecycle.rowChanged(before, after);
    const sandbox = this.#sandbox(sandboxId);
    sandbox.state = state;
    if (state !== "running") sandbox.runningSinceMs = undefined;
    else sandbox.runningSinceMs ??= this.#loop.nowMs;
    if (before === undefined || after.generation !== before.generation) this.#claimed(after);
    sandbox.current = execution.identity.activation.id;
    if (state === "running" && before?.state !== "pausing") this.#published(after);
    const wasDead = before?.state === "killing" || before?.state === "killed";
    if (wasDead && state !== "killing" && state !== "killed")
      this.violate("6: a delete wins", `${sandboxId} went from ${before.state} to ${state}`);
    if (before?.state === "pausing" && (state === "paused" || state === "resuming")) {
      const files = sandbox.snapshots.get(before.execution.identity.activation.id);
      if (files === undefined)
        this.violate("5: newest intact snapshot", `${sandboxId}: a commit without a snapshot`);
      else sandbox.committed = files;
      this.#keepsWrites(sandboxId, sandbox, files ?? "", "committed snapshot");
    }
    if (state === "killed" || state === "failed") this.receivers.retirementOrdered(execution.identity);
    // What ran is gone and says so: writes since the snapshot are lost, and were reported as lost.
    if (state !== "lost") return;
    sandbox.acknowledged = new Set(numbersOf(sandbox.committed ?? ""));
    for (const { uid } of sandbox.processes) sandbox.lost.add(uid);
  }

  started(process: SimProcess, fromSnapshot: boolean): void {
    const sandbox = this.#sandbox(process.sandboxId);
    sandbox.processes.push(process);
    const truth = this.#executions.get(process.activation);
    if (truth?.podUid !== process.podUid)
      this.violate(
        "R-2: placement",
        `${process.sandboxId}, placed in pod ${truth?.podUid}, was started in ${process.podUid}`,
      );
    // What an order of long ago starts is nobody's newest: it must only not act (statement 2).
    const mustBeRestored = fromSnapshot || sandbox.committed !== undefined;
    if (mustBeRestored && sandbox.current === process.activation) {
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
    if (process.state === "running" && !process.fenced) running.add(process);
    else running.delete(process);
    if (process.state === "frozen") {
      this.receivers.frozen(process, this.recordOf(process.host, process.sandboxId));
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
    if (operation?.forbidden !== undefined) {
      const { statement, what } = operation.forbidden;
      this.violate(
        statement,
        `a presentation that is wrong in one respect reached ${process.sandboxId}: ${what}`,
      );
      return undefined;
    }
    const presentation = operation?.presented.findLast(
      ({ host, isForwarded }) => host === process.host && isForwarded,
    );
    if (operation === undefined || presentation === undefined) {
      this.violate(
        "1: no effect across executions",
        `operation ${number} reached process ${process.uid} without a presentation`,
      );
      return undefined;
    }
    this.#belongs(presentation, process);
    this.#isNewest(number, process);
    this.receivers.used(process, presentation.epoch ?? 0n);
    this.#mayAct(presentation, process);
    this.#streams.set(number, { process, freezes: this.#freezes.get(process.uid)?.count ?? 0 });
    return operation;
  }

  #mayAct({ operation, capability, issuedMs, sentMs, presenter }: Presentation, process: SimProcess): void {
    const { number } = operation;
    const { nowMs } = this.#loop;
    if ((operation.denials ?? 0) > 0)
      this.violate("4: repair admits nobody", `operation ${number} was denied, and let in all the same`);
    if (!operation.isEntitled)
      this.violate(
        "4: repair admits nobody",
        `operation ${number} of a caller without access reached ${process.sandboxId}`,
      );
    if (nowMs - issuedMs > capabilityWorstMs + onTheWayMs)
      this.violate("R-9: time", `operation ${number} acted on a capability ${nowMs - issuedMs} ms old`);
    if (sentMs > operation.credentialEndsMs + clockMarginMs)
      this.violate("R-25: authorisation ends", `operation ${number} acted after its credential's end`);
    if (capability.presenter !== presenter)
      this.violate("R-7: presenter", `operation ${number} came from ${presenter} with another's capability`);
    const revokedMs = this.receivers.revokedMs(process.host, capability.kid);
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

  /** Whether it was to be served all the time since then: nobody had asked for its pause or its end, and it was not lost. */
  wasServedSince(sandboxId: SandboxId, sinceMs: number): boolean {
    const { runningSinceMs, running } = this.#sandbox(sandboxId);
    return runningSinceMs !== undefined && runningSinceMs <= sinceMs && running.size > 0;
  }

  /** whether its stream must go on. */
  isEligible({ sandboxId, reached }: TrueOperation): boolean {
    return isEligible(this.#sandbox(sandboxId), reached);
  }

  /** Its caller has heard the end of it. It is forgotten once nothing of it can be on its way any more. */
  isOver({ number }: TrueOperation): void {
    const { nowMs } = this.#loop;
    this.#over.push({ number, atMs: nowMs });
    for (let first = this.#over[this.#forgotten]; first !== undefined && nowMs - first.atMs >= knownForMs; ) {
      this.forget(first.number);
      this.#forgotten += 1;
      first = this.#over[this.#forgotten];
    }
    if (this.#forgotten * 2 <= this.#over.length) return;
    this.#over = this.#over.slice(this.#forgotten);
    this.#forgotten = 0;
  }

  forget(number: number): void {
    this.operations.delete(number);
    this.#streams.delete(number);
  }

  #published({ execution }: SandboxRecord): void {
    const truth = this.#executions.get(execution.identity.activation.id);
    if (truth === undefined || truth.isPublished) return;
    truth.isPublished = true;
    truth.attempt = execution.identity.activation.attempt;
    const installed = this.recordOf(truth.workerId, truth.sandboxId);
    if (installed === undefined || installed.identity.generation < execution.identity.generation)
      this.violate(
        "R-12: durable before acknowledged",
        `generation ${truth.generation} of ${truth.sandboxId} was published before its worker had installed it`,
      );
    this.#sandbox(truth.sandboxId).published = execution.identity.generation;
    this.receivers.acknowledged(
      truth.workerId,
      execution.identity,
      this.recordOf(truth.workerId, truth.sandboxId),
    );
  }

  #claimed({ sandboxId, execution }: SandboxRecord): void {
    const { generation, placement, activation } = execution.identity;
    this.executionsBegun += 1;
    this.#executions.set(activation.id, {
      sandboxId,
      generation: generation.toString(),
      workerId: placement.workerId,
      podUid: placement.podUid,
      isPublished: false,
      attempt: 0,
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
      capability.activationId === process.activation &&
      capability.attempt === truth.attempt;
    if (isOwn) return;
    this.violate(
      "1: no effect across executions",
      `operation ${operation.number} for ${operation.sandboxId}, authorised for generation ${capability.generation} of ${capability.sandboxId} on ${capability.workerId}, reached generation ${truth?.generation} of ${process.sandboxId} on ${truth?.workerId}`,
    );
  }

  /** Statement 2, towards callers: once a successor is published, nothing of the older incarnation is reached any more. */
  #isNewest(number: number, process: SimProcess): void {
    const generation = BigInt(this.#executions.get(process.activation)?.generation ?? 0);
    const { published } = this.#sandbox(process.sandboxId);
    if (generation < published)
      this.violate(
        "2: one incarnation acts",
        `operation ${number} reached generation ${generation} of ${process.sandboxId} on ${process.host}, where ${published} is published`,
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
      runningSinceMs: undefined,
      committed: undefined,
      snapshots: new Map(),
      acknowledged: new Set(),
      processes: [],
      current: undefined,
      published: 0n,
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
