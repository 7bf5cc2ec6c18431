// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AuditLog } from "@space/audit-log";
import { newSigningKey, signAuditCheckpoint } from "@space/capability";
import { type AuditFields, newCapabilityId, parseSandboxId, parseTenantId } from "@space/model";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { median, percentile, rounded } from "./statistics.ts";

export interface AuditCost {
  readonly records: number;
  /** What `record` takes from whoever issues a capability, microseconds. */
  readonly lowUs: number;
  readonly medianUs: number;
  /** CPU time for everything: the record, the chain, the writing, the syncs and the checkpoints, microseconds a record. */
  readonly wholeCpuUs: number;
  /** Events that found no room; any makes the run worthless. */
  readonly dropped: number;
}

const batch = 500;

/** What the audit of one issued capability costs, on a log of its own on this disk. */
export async function measureAuditCost(quick: boolean): Promise<AuditCost> {
  const folder = mkdtempSync(join(tmpdir(), "space-audit-cost-"));
  const log = AuditLog.open(
    { directory: join(folder, "log"), process: "control-plane" },
    { clock: systemClock, random: systemRandom },
  );
  const key = newSigningKey();
  log.signWith((checkpoint) => ({
    token: signAuditCheckpoint(key, checkpoint),
    witness: { kind: "bundle", proof: "none: nobody verifies this log" },
  }));
  const fields = issued();
  const samples: number[] = [];
  const run = async (batches: number): Promise<void> => {
    for (let round = 0; round < batches; round += 1) {
      const beganMs = performance.now();
      for (let turn = 0; turn < batch; turn += 1) log.record("capability/issued", fields);
      samples.push(((performance.now() - beganMs) * 1000) / batch);
      await log.settled();
    }
  };
  try {
    await run(4); // compiles before it counts
    samples.length = 0;
    const before = process.cpuUsage();
    await run(quick ? 20 : 200);
    const used = process.cpuUsage(before);
    const records = samples.length * batch;
    return {
      records,
      lowUs: rounded(percentile(samples, 5)),
      medianUs: rounded(median(samples)),
      wholeCpuUs: rounded((used.user + used.system) / records),
      dropped: log.dropped,
    };
  } finally {
    await log.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function issued(): AuditFields["capability/issued"] {
  return {
    capabilityId: newCapabilityId(systemRandom),
    sandboxId: parseSandboxId(`i${"b".repeat(20)}`),
    generation: "1",
    tenantId: parseTenantId(`ten_${"a".repeat(16)}`),
    principal: "access-token",
    presenter: "p".repeat(43),
    reason: "files:read files:write process:run process:attach pty watch metrics",
  };
}
