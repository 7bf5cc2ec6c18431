// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditSink,
  type RecordReceiver,
  refusalFacts,
  type SandboxId,
  type WorkerControl,
} from "@space/model";

export type WorkerCommands = WorkerControl & RecordReceiver;

/**
 * The commands, with one event for each that was not carried out. What was carried out has its own events. A command
 * without a line here does not compile; a key bundle's refusal is told where it is taken.
 */
export function auditedCommands(audit: AuditSink, commands: WorkerCommands): WorkerCommands {
  const told = async <T>(command: string, sandboxId: SandboxId | null, run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      audit.record("command/refused", { command, sandboxId, ...refusalFacts(error) });
      throw error;
    }
  };
  return {
    activate: (request) => told("activate", request.identity.sandboxId, () => commands.activate(request)),
    install: (certificate) => told("install", null, () => commands.install(certificate)),
    snapshot: (identity, follows, key) =>
      told("snapshot", identity.sandboxId, () => commands.snapshot(identity, follows, key)),
    abortPause: (identity) => told("abort-pause", identity.sandboxId, () => commands.abortPause(identity)),
    retire: (retirement, keepFrozen) => told("retire", null, () => commands.retire(retirement, keepFrozen)),
    discard: (sandboxId, manifest) => told("discard", sandboxId, () => commands.discard(sandboxId, manifest)),
    inventory: () => told("inventory", null, () => commands.inventory()),
    takeLease: (grant) => told("take-lease", null, () => commands.takeLease(grant)),
    replaceKeys: (bundle) => commands.replaceKeys(bundle),
  };
}
