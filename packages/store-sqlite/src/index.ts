// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { openExclusive } from "./exclusive-database.ts";
export { SqliteWorkerStore } from "./runtime-record-store.ts";
