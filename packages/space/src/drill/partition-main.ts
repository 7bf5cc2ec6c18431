// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of the drill that cuts a worker off: runs in a network namespace of its own, and writes its report.

import { withSystem } from "./drill-system.ts";
import { NetworkApart } from "./network-apart.ts";
import { drillPartition, type PartitionOptions } from "./partition.ts";

const [, , text = ""] = process.argv;
const options = JSON.parse(text) as PartitionOptions; // cast: our own command's word

// Whoever started this is gone: everything here ends in order.
process.stdin.on("end", () => process.kill(process.pid, "SIGTERM"));
process.stdin.resume();

const network = await NetworkApart.make();
try {
  const report = await withSystem(2, (system, data) => drillPartition({ system, network, data }, options), {
    limits: { leaseMs: options.leaseSeconds * 1000 },
    network: network.places,
  });
  process.stdout.write(JSON.stringify(report), () => process.exit(0));
} finally {
  network.close();
}
