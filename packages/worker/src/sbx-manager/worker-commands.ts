// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { verifyRetirement } from "@space/capability";
import { applyFeedEntry, type ReceiverFeed, type RecordReceiver, type SandboxId } from "@space/model";
import { activate } from "./activate.ts";
import { auditedCommands, type WorkerCommands } from "./audited-commands.ts";
import { install, readCertificate } from "./install.ts";
import { inventoryOf } from "./inventory.ts";
import type { WorkerParts } from "./parts.ts";
import { abortPause, snapshot } from "./pause.ts";
import { discard, retire } from "./retire.ts";
import { takeKeys } from "./take-keys.ts";

/** How many retirements may pass before the oldest tombstones are forgotten. */
const pruneEvery = 256;

/**
 * The control plane's commands, one after the other for each sandbox. Signatures are checked before a command waits.
 * without a lease nothing is started, and nothing goes on; what ends something is done all the same.
 */
export function workerCommands(parts: WorkerParts): WorkerCommands {
  let retirements = 0;
  const inTurn = <T>(sandboxId: SandboxId, action: () => Promise<T>): Promise<T> =>
    parts.queue.run(sandboxId, action);
  const inTurnLeased = <T>(sandboxId: SandboxId, action: () => Promise<T>): Promise<T> =>
    inTurn(sandboxId, async () => {
      parts.lease.require();
      return action();
    });
  return auditedCommands(parts.audit, {
    activate: async (request) => inTurnLeased(request.identity.sandboxId, () => activate(parts, request)),
    install: async (token) => {
      const certificate = readCertificate(parts, token);
      await inTurn(certificate.identity.sandboxId, () => install(parts, token, certificate));
    },
    snapshot: async (identity, follows, key) =>
      inTurnLeased(identity.sandboxId, () => snapshot(parts, identity, { follows, key })),
    abortPause: async (identity) => inTurnLeased(identity.sandboxId, () => abortPause(parts, identity)),
    retire: async (token, keepFrozen) => {
      const { identity } = verifyRetirement(token, parts.keys.ring);
      await inTurn(identity.sandboxId, () => retire(parts, identity, keepFrozen));
      retirements += 1;
      if (retirements % pruneEvery === 0) parts.records.prune(parts.limits.retiredRecords);
    },
    discard: async (sandboxId, manifest) => inTurn(sandboxId, () => discard(parts, sandboxId, manifest)),
    inventory: async () => inventoryOf(parts),
    takeLease: (grant) => parts.lease.take(grant),
    replaceKeys: async (bundle) => {
      takeKeys(parts, bundle);
    },
  });
}

/** What the feed says is done, and what was done is not forgotten: the position is durable before it is acknowledged. */
export function workerFeed(parts: WorkerParts, commands: RecordReceiver): ReceiverFeed {
  return {
    async tell({ position, entry }) {
      if (position !== null) parts.records.noteFeedPosition(position);
      await applyFeedEntry(commands, entry);
      if (position !== null) parts.records.syncFeedPosition();
    },
  };
}
