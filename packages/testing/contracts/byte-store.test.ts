// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DirectoryByteStore } from "@space/object-store";
import { MemoryByteStore } from "@space/snapshot";
import { byteStoreContract } from "./byte-store.ts";

byteStoreContract("memory", async () => {
  const store = new MemoryByteStore(() => Date.now());
  return { store, again: async () => store, dispose: async () => undefined };
});

byteStoreContract("directory", async () => {
  const root = mkdtempSync(join(tmpdir(), "bytes-"));
  const open = (): Promise<DirectoryByteStore> => DirectoryByteStore.open(root);
  return { store: await open(), again: open, dispose: async () => rmSync(root, { recursive: true }) };
});
