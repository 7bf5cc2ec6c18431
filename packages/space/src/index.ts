// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { withControlApart } from "./drill/control-apart.ts";
export { type CutOptions, type CutReport, drillCut } from "./drill/cut.ts";
export { type DiskReport, drillDisk } from "./drill/disk.ts";
export { withSystem } from "./drill/drill-system.ts";
export { drillKeys, type KeysOptions, type KeysReport } from "./drill/keys.ts";
export { drillLease, type LeaseDrillOptions, type LeaseDrillReport } from "./drill/lease.ts";
export { drillMoves, type MovesOptions, type MovesReport } from "./drill/moves.ts";
export { drillOutage, type OutageOptions, type OutageReport } from "./drill/outage.ts";
export { partitionInOwnNetwork } from "./drill/own-network.ts";
export type { PartitionOptions, PartitionReport } from "./drill/partition.ts";
export { drillTerminal, type TerminalOptions, type TerminalReport } from "./drill/terminal.ts";
export { type EmbeddedOptions, type EmbeddedSystem, startEmbedded } from "./embedded/embedded-system.ts";
