// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { memoryControlStore } from "../src/memory-control-store.ts";
import { MemoryControlTables } from "../src/memory-control-tables.ts";
import { VirtualClock } from "../src/virtual-clock.ts";
import { enrolmentStoreContract } from "./enrolment-store.ts";
import { installationStoreContract } from "./installation-store.ts";
import { receiverStoreContract } from "./receiver-store.ts";
import { type OpenedStore, sandboxStoreContract } from "./sandbox-store.ts";
import { sandboxStoreKeptContract } from "./sandbox-store-kept.ts";
import { sandboxStoreMoveContract } from "./sandbox-store-moves.ts";
import { sandboxStoreQueryContract } from "./sandbox-store-queries.ts";
import { sandboxStoreSealedContract } from "./sandbox-store-sealed.ts";
import { signingKeyStoreContract } from "./signing-key-store.ts";

function openOn(tables: MemoryControlTables, clock: VirtualClock): OpenedStore {
  return {
    ...memoryControlStore(tables, clock),
    clock,
    reopen: async () => openOn(tables, clock),
    dispose: async () => undefined,
  };
}

const open = async (): Promise<OpenedStore> => openOn(new MemoryControlTables(), new VirtualClock(1_000_000));

sandboxStoreContract("memory", open);
sandboxStoreMoveContract("memory", open);
sandboxStoreQueryContract("memory", open);
sandboxStoreSealedContract("memory", open);
sandboxStoreKeptContract("memory", open);
installationStoreContract("memory", open);
signingKeyStoreContract("memory", open);
receiverStoreContract("memory", open);
enrolmentStoreContract("memory", open);
