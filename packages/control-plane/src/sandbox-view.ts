// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  ConnectedSandbox,
  MemoryKept,
  SandboxRecord,
  SandboxView,
  SnapshotHead,
  WorkerId,
} from "@space/model";
import type { AccessTokens } from "./access-tokens.ts";

const mebibyte = 1024 * 1024;

/** A sandbox as its owner sees it. */
export function viewOf(record: SandboxRecord): SandboxView {
  const { snapshot, limits } = record;
  return {
    sandboxId: record.sandboxId,
    template: record.template,
    alias: record.template,
    metadata: record.metadata,
    state: record.state === "pausing" && record.goesOn ? "running" : record.state,
    startedAtMs: record.startedAtMs,
    endAtMs: record.endAtMs,
    cpus: limits.cpus,
    memoryMb: Math.floor(limits.memoryBytes / mebibyte),
    diskMb: Math.floor(limits.diskBytes / mebibyte),
    onTimeout: record.onTimeout,
    autoResume: record.autoResume,
    autoRecover: record.autoRecover,
    lostReason: record.state === "lost" ? record.reason : null,
    recoveredFrom: record.state === "lost" ? null : record.lostGeneration,
    generation: record.generation,
    workerId: placeOf(record),
    // What is kept now: the manifest's word alone may be about frozen processes that are gone.
    snapshot:
      snapshot === null
        ? null
        : {
            digest: snapshot.digest,
            memory: memoryKept(snapshot),
            sizeBytes: snapshot.sizeBytes,
          },
  };
}

function memoryKept({ memory, frozenOn }: SnapshotHead): MemoryKept {
  if (memory === "in-snapshot") return memory;
  return frozenOn === null ? "none" : "frozen-on-worker";
}

/** With what only who created or connected it may know. */
export function connectedView(
  record: SandboxRecord,
  tokens: AccessTokens,
  resumed: boolean,
): ConnectedSandbox {
  return {
    ...viewOf(record),
    accessToken: tokens.of(record.sandboxId),
    trafficAccessToken: null,
    resumed,
  };
}

/** The worker that holds something of it. */
function placeOf({ execution, snapshot }: SandboxRecord): WorkerId | null {
  return execution.state === "ended" ? (snapshot?.frozenOn ?? null) : execution.identity.placement.workerId;
}
