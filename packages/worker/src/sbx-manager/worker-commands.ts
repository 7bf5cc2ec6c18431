// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { verifyRetirement } from "@space/capability";
import type { KeyBundleReceiver, SandboxId, WorkerControl } from "@space/model";
import { activate } from "./activate.ts";
import { install, readCertificate } from "./install.ts";
import type { WorkerParts } from "./parts.ts";
import { abortPause, snapshot } from "./pause.ts";
import { discard, retire } from "./retire.ts";

/** How many retirements may pass before the oldest tombstones are forgotten. */
const pruneEvery = 256;

/** The control plane's commands, one after the other for each sandbox. Signatures are checked before a command waits. */
export function workerCommands(parts: WorkerParts): WorkerControl & KeyBundleReceiver {
  let retirements = 0;
  const inTurn = <T>(sandboxId: SandboxId, action: () => Promise<T>): Promise<T> =>
    parts.queue.run(sandboxId, action);
  return {
    activate: async (request) => inTurn(request.identity.sandboxId, () => activate(parts, request)),
    install: async (token) => {
      const certificate = readCertificate(parts, token);
      await inTurn(certificate.identity.sandboxId, () => install(parts, token, certificate));
    },
    snapshot: async (identity, previousManifest) =>
      inTurn(identity.sandboxId, () => snapshot(parts, identity, previousManifest)),
    abortPause: async (identity) => inTurn(identity.sandboxId, () => abortPause(parts, identity)),
    retire: async (token, keepFrozen) => {
      const { identity } = verifyRetirement(token, parts.keys.ring);
      await inTurn(identity.sandboxId, () => retire(parts, identity, keepFrozen));
      retirements += 1;
      if (retirements % pruneEvery === 0) parts.records.prune(parts.limits.retiredRecords);
    },
    discard: async (sandboxId) => inTurn(sandboxId, () => discard(parts, sandboxId)),
    replaceKeys: async (bundle) => {
      if (parts.keys.replace(bundle)) parts.audit.record("keys/replaced", { version: parts.keys.version });
    },
  };
}
