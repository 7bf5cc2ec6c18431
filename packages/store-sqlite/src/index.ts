// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { type ControlStore, openControlStore } from "./control-store.ts";
export { openExclusive } from "./exclusive-database.ts";
export { SqliteWorkerStore } from "./runtime-record-store.ts";
