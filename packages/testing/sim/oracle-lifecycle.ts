// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { RuntimeRecord, SandboxId, SandboxRecord } from "@space/model";
import type { Statement } from "./statements.ts";

/** Which replica may drive what, and what a hand-over from one to another leaves as it was. */
export class LifecycleOracle {
  readonly #violate: (statement: Statement, problem: string) => void;
  readonly #states = new Map<SandboxId, SandboxRecord["state"]>();
  /** The replica whose write is being made. */
  writer = "";
  /** Told when a replica drives on what another one had claimed. */
  onHandOver: () => void = () => undefined;

  constructor(violate: (statement: Statement, problem: string) => void) {
    this.#violate = violate;
  }

  rowChanged(before: SandboxRecord | undefined, after: SandboxRecord): void {
    this.#states.set(after.sandboxId, after.state);
    if (before === undefined) return;
    this.#isByItsOwner(before, after);
    const old = before.execution.identity.activation.attempt;
    const now = after.execution.identity.activation.attempt;
    const isStart = before.state === "creating" || before.state === "resuming";
    const isTakenOver = before.state === after.state && before.claim?.owner !== after.claim?.owner;
    if (isTakenOver && replicaOf(before) !== replicaOf(after)) this.onHandOver();
    const isRight = after.generation !== before.generation || now === old + (isTakenOver && isStart ? 1 : 0);
    if (!isRight)
      this.#violate(
        "R-4: lifecycle and identity",
        `generation ${after.generation} of ${after.sandboxId} went from attempt ${old} to ${now}, from ${before.state} to ${after.state}`,
      );
  }

  /** nothing but the sandbox's own lifecycle ends the epoch of what is installed. */
  recordChanged(host: string, before: RuntimeRecord | undefined, after: RuntimeRecord): void {
    const { sandboxId, generation } = after.identity;
    const isCut =
      before?.state === "installed" &&
      after.state === "installed" &&
      before.identity.generation === generation &&
      before.epoch !== after.epoch;
    if (isCut && this.#states.get(sandboxId) === "running")
      this.#violate(
        "R-4: lifecycle and identity",
        `${host} ended the epoch of ${sandboxId}, which runs as generation ${generation}`,
      );
  }

  /** What ends a transition as its owner meant it is written by the owner, whoever was it before. */
  #isByItsOwner(before: SandboxRecord, after: SandboxRecord): void {
    const isCommitted = after.state === "paused" || after.state === "resuming"; // a move goes on at once
    const isDriven = after.state === "running" || (before.state === "pausing" && isCommitted);
    if (before.claim === null || !isDriven || replicaOf(before) === this.writer) return;
    this.#violate(
      "R-4: lifecycle and identity",
      `${this.writer} took ${before.sandboxId} from ${before.state} to ${after.state}, which ${before.claim.owner} drives`,
    );
  }
}

function replicaOf({ claim }: SandboxRecord): string | undefined {
  return claim?.owner.slice(0, claim.owner.indexOf("/"));
}
