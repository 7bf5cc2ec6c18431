// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { openControlStore } from "@space/store-sqlite";
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

function openIn(directory: string, clock: VirtualClock): OpenedStore {
  const store = openControlStore(directory, clock);
  return {
    sandboxes: store.sandboxes,
    installation: store.installation,
    signingKeys: store.signingKeys,
    receivers: store.receiverStore,
    enrolments: store.enrolments,
    clock,
    reopen: async () => {
      store.close();
      const again = openIn(directory, clock);
      return again;
    },
    dispose: async () => {
      store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const open = async (): Promise<OpenedStore> =>
  openIn(mkdtempSync(join(tmpdir(), "control-store-")), new VirtualClock(1_000_000));

sandboxStoreContract("sqlite", open);
sandboxStoreMoveContract("sqlite", open);
sandboxStoreQueryContract("sqlite", open);
sandboxStoreSealedContract("sqlite", open);
sandboxStoreKeptContract("sqlite", open);
installationStoreContract("sqlite", open);
signingKeyStoreContract("sqlite", open);
receiverStoreContract("sqlite", open);
enrolmentStoreContract("sqlite", open);

test("sqlite: a second process on the same directory is refused with the pid of the first", (context) => {
  const directory = mkdtempSync(join(tmpdir(), "control-store-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const store = openControlStore(directory, new VirtualClock());
  const held = (error: unknown): boolean =>
    isSpaceError(error, "data/in-use") && error.details.pid === process.pid;
  assert.throws(() => openControlStore(directory, new VirtualClock()), held);
  const program = `
    import { openControlStore } from "@space/store-sqlite";
    try { openControlStore(process.argv[1], { wallMs: () => 0, monotonicMs: () => 0, after: () => () => {} }); }
    catch (error) { console.log(error.code, error.details.pid); }`;
  const opened = (): string =>
    spawnSync(process.execPath, ["--input-type=module", "-e", program, directory], {
      cwd: import.meta.dirname,
      encoding: "utf8",
    }).stdout;
  assert.equal(opened(), `data/in-use ${process.pid}\n`);
  store.close();
  assert.equal(opened(), "", "given up, it can be taken");
});
