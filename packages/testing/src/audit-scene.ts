// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { ControlLimits } from "@space/control-plane";
import type { AuditEventName, SandboxId } from "@space/model";
import { Fleet, turns } from "./fleet-rig.ts";
import { settle } from "./virtual-clock.ts";

const second = 1000;

/** What becomes of sandboxes, executions, keys, statements and peers. Verdicts and requests have their own tables. */
const listed = (name: AuditEventName): boolean =>
  /^(sandbox|execution|certificate|chain-head|manifest|retirement|capability|signing-key|keys|api-key|tenant|command)\//.test(
    name,
  ) || ["worker/enrolled", "worker/superseded", "worker/refused", "lease/given-up"].includes(name);

/** A control plane with two real workers, and what they record. */
export class AuditScene {
  readonly fleet: Fleet;
  #marks: readonly [number, number, number] = [0, 0, 0];
  sandboxId: SandboxId | undefined;

  constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  get rig(): Fleet["rig"] {
    return this.fleet.rig;
  }

  get id(): SandboxId {
    assert.ok(this.sandboxId !== undefined);
    return this.sandboxId;
  }

  async create(more: Parameters<Fleet["rig"]["create"]>[0] = {}): Promise<void> {
    const made = await this.rig.create({ workerId: this.fleet.a.workerId, timeoutMs: 3_600_000, ...more });
    this.sandboxId = made.sandboxId;
  }

  /** Time goes on everywhere, in steps in which leases are renewed. */
  async pass(seconds: number): Promise<void> {
    const { rig, a, b } = this.fleet;
    for (let passed = 0; passed < seconds; passed += 10) {
      for (const { clock } of [rig, a, b]) await clock.advance(10 * second);
      await settle(turns);
    }
  }

  mark(): void {
    const { rig, a, b } = this.fleet;
    this.#marks = [rig.audit.events.length, a.audit.events.length, b.audit.events.length];
  }

  /** What was recorded since the mark: the control plane's, then each worker's, as `name: facts`. */
  said(kinds: RegExp | undefined): readonly string[] {
    const { rig, a, b } = this.fleet;
    return [[rig, "c"] as const, [a, "a"] as const, [b, "b"] as const].flatMap(([{ audit }, who], at) =>
      audit.events
        .slice(this.#marks[at])
        .filter(({ name }) => (kinds === undefined ? listed(name) : kinds.test(name)))
        .map(({ name, fields }) => `${who} ${name} ${factsOf(fields)}`.trim()),
    );
  }
}

/** The change and its reason, without ids. */
function factsOf(fields: object): string {
  const shown = ["command", "change", "state", "reason", "code", "problem", "version", "wasValid"];
  const facts = shown.flatMap((name) => (name in fields ? [String(Reflect.get(fields, name))] : []));
  return facts.filter((fact) => fact !== "").join(", ");
}

/** One thing that happens, and the events that it is, each once, in any order. */
export interface AuditRow {
  readonly what: string;
  /** Events that are looked at; absent: those of what becomes of sandboxes, executions, keys, statements and peers. */
  readonly kinds?: RegExp;
  readonly limits?: Partial<ControlLimits>;
  /** What is there before; not looked at. */
  readonly given?: (scene: AuditScene) => Promise<unknown>;
  readonly done: (scene: AuditScene) => Promise<unknown>;
  readonly said: readonly string[];
}

/** Does it, and finds exactly its events of the listed kinds. */
export async function checkAudited(
  context: TestContext,
  { kinds, limits, given, done, said }: AuditRow,
): Promise<void> {
  const scene = new AuditScene(await Fleet.open(context, limits));
  await given?.(scene);
  await settle(turns);
  scene.mark();
  await done(scene);
  await settle(turns);
  assert.deepEqual(scene.said(kinds).toSorted(), said.toSorted());
}
