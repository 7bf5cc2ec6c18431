// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord } from "@space/model";
import type { MemoryControlTables } from "../src/memory-control-tables.ts";
import type { Oracle } from "./oracle.ts";
import type { WorkerNode } from "./worker-node.ts";

/** With every fault over and time enough, what is stored, what is installed and what runs agree. */
export function checkSettled({
  oracle,
  tables,
  workers,
}: {
  readonly oracle: Oracle;
  readonly tables: MemoryControlTables;
  readonly workers: readonly WorkerNode[];
}): void {
  const wrong = (problem: string): void => oracle.violate("settles: every state becomes true", problem);
  const wanted = new Map<number, SandboxRecord>();
  for (const record of tables.all()) {
    const { sandboxId, state, claim, execution, snapshot } = record;
    if (claim !== null) wrong(`${sandboxId} is still ${state}`);
    const processes = workers.flatMap(({ machine }) =>
      [...machine.processes.values()].filter((process) => process.sandboxId === sandboxId),
    );
    const running = processes.filter((process) => process.state === "running");
    for (const { uid } of processes) wanted.set(uid, record);
    if (state === "running") {
      const [one] = running;
      const { id } = execution.identity.activation;
      const { workerId } = execution.identity.placement;
      const worker = workers.find((node) => node.workerId === workerId);
      const installed = worker?.disk.contents.records.get(sandboxId);
      if (installed?.state !== "installed" || installed.identity.activation.id !== id)
        wrong(`${sandboxId} is running, but its worker has not installed it`);
      if (processes.length !== 1 || one?.activation !== id)
        wrong(
          `${sandboxId} is running as generation ${execution.identity.generation}, but processes are [${processes.map(({ uid, activation, state: now }) => `${uid} ${activation} ${now}`).join(", ")}]`,
        );
      continue;
    }
    if (running.length > 0) wrong(`${sandboxId} is ${state}, but process ${running[0]?.uid} runs`);
    const frozenOn = snapshot?.frozenOn ?? null;
    const mayBeFrozen = state === "paused" && frozenOn !== null ? 1 : 0;
    if (processes.length > mayBeFrozen)
      wrong(`${sandboxId} is ${state}, but ${processes.length} of its processes are left`);
  }
  for (const { machine, host } of workers) {
    for (const { uid, sandboxId } of machine.processes.values())
      if (!wanted.has(uid))
        wrong(`${host}: process ${uid} of ${sandboxId} belongs to nothing that is stored`);
  }
}
