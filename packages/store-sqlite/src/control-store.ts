// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type {
  Clock,
  EnrolmentStore,
  InstallationStore,
  ReceiverStore,
  SandboxStore,
  SigningKeyStore,
} from "@space/model";
import { Database } from "./database.ts";
import { controlPlaneSchema, migrate } from "./migrations.ts";
import { SqliteEnrolmentStore } from "./sqlite-enrolment-store.ts";
import { SqliteInstallationStore } from "./sqlite-installation-store.ts";
import { SqliteReceiverStore } from "./sqlite-receiver-store.ts";
import { SqliteSandboxStore } from "./sqlite-sandbox-store.ts";
import { SqliteSigningKeyStore } from "./sqlite-signing-key-store.ts";

export interface ControlStore {
  readonly sandboxes: SandboxStore;
  readonly installation: InstallationStore;
  readonly signingKeys: SigningKeyStore;
  readonly receiverStore: ReceiverStore;
  readonly enrolments: EnrolmentStore;
  /** Writes what is asked for already, and gives the file up. */
  close(): void;
}

/**
 * Opens or makes the control plane's database in a directory that only its owner may enter, and brings its schema up to
 * date. A second holder is refused with `data/in-use` and the first one's pid. Throws `store/failed`.
 */
export function openControlStore(directory: string, clock: Clock): ControlStore {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const database = Database.open(join(directory, "control.sqlite"));
  try {
    migrate(database, controlPlaneSchema());
  } catch (error) {
    database.close();
    throw error;
  }
  return {
    sandboxes: new SqliteSandboxStore(database, clock),
    installation: new SqliteInstallationStore(database),
    signingKeys: new SqliteSigningKeyStore(database),
    receiverStore: new SqliteReceiverStore(database),
    enrolments: new SqliteEnrolmentStore(database),
    close: () => database.close(),
  };
}
