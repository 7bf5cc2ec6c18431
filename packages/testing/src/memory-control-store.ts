// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  Clock,
  EnrolmentStore,
  InstallationStore,
  ReceiverStore,
  SandboxStore,
  SigningKeyStore,
} from "@space/model";
import type { MemoryControlTables } from "./memory-control-tables.ts";

/** When the calls of a store happen, and whether they do. */
export interface StoreTiming {
  /** Makes a write, and resolves once it is durable. */
  write<T>(action: () => T): Promise<T>;
  read<T>(action: () => T): Promise<T>;
}

/** Every call at once: for tests without a clock. */
export const atOnce: StoreTiming = {
  write: async (action) => action(),
  read: async (action) => action(),
};

/** {@link SandboxStore} and {@link InstallationStore} over tables in memory, which outlive it as a disk would. */
export function memoryControlStore(
  tables: MemoryControlTables,
  clock: Pick<Clock, "wallMs">,
  { write, read }: StoreTiming = atOnce,
): {
  readonly sandboxes: SandboxStore;
  readonly installation: InstallationStore;
  readonly signingKeys: SigningKeyStore;
  readonly receivers: ReceiverStore;
  readonly enrolments: EnrolmentStore;
} {
  const sandboxes: SandboxStore = {
    read: (sandboxId) => read(() => tables.read(sandboxId)),
    list: (tenantId, query) => read(() => tables.list(tenantId, query)),
    begin: (sandbox) => write(() => tables.begin(sandbox)),
    change: (request) => {
      const nowMs = clock.wallMs();
      return write(() => tables.change(request, nowMs));
    },
    due: (nowMs, limit) => read(() => tables.due(nowMs, limit)),
    abandoned: (nowMs, limit) => read(() => tables.abandoned(nowMs, limit)),
    recoverable: (nowMs, limit) => read(() => tables.recoverable(nowMs, limit)),
    onWorker: (workerId) => read(() => tables.onWorker(workerId)),
    live: () => read(() => tables.live()),
    load: () => read(() => tables.load()),
    manifest: (sandboxId, digest) => read(() => tables.manifest(sandboxId, digest)),
    chain: (sandboxId) => read(() => tables.chain(sandboxId)),
    links: (sandboxId, range) => read(() => tables.links(sandboxId, range)),
    segments: (sandboxId, limit) => read(() => tables.segments(sandboxId, limit)),
    snapshots: (tenantId, page) => read(() => tables.snapshots(tenantId, page)),
    pausing: (tenantId) => read(() => tables.pausing(tenantId)),
    keptSnapshot: (tenantId, snapshotId) => read(() => tables.kept.find(tenantId, snapshotId)),
    listKept: (tenantId, query) => read(() => tables.kept.list(tenantId, query)),
    releaseKept: (tenantId, snapshotId) => write(() => tables.kept.release(tenantId, snapshotId)),
    neededSnapshots: (tenantId, page) => read(() => tables.kept.needed(tenantId, page)),
    purgeKept: (nowMs, limit) => write(() => tables.kept.purge(nowMs, limit)),
    enqueue: (effects) => write(() => tables.enqueue(effects)),
    pending: (query) => read(() => tables.pending(query)),
    postpone: (id, notBeforeMs) => write(() => tables.postpone(id, notBeforeMs)),
    purge: (beforeMs, limit) => write(() => tables.purge(beforeMs, limit)),
  };
  const installation: InstallationStore = {
    addTenant: (tenant) => write(() => tables.addTenant(tenant)),
    findTenant: (name) => read(() => tables.findTenant(name)),
    addApiKey: (key) => write(() => tables.addApiKey(key)),
    findApiKey: (hash) => read(() => tables.findApiKey(hash)),
    revokeApiKey: (keyId) => write(() => tables.revokeApiKey(keyId)),
    findTemplate: (_tenantId, alias) => read(() => (alias === "base" ? alias : undefined)),
  };
  const signingKeys: SigningKeyStore = {
    all: () => read(() => tables.signingKeys.all()),
    bundles: () => read(() => tables.signingKeys.bundles()),
    change: (step) => write(() => tables.signingKeys.change(step)),
  };
  const receivers: ReceiverStore = {
    receivers: () => read(() => tables.receivers()),
    acknowledgeOrder: (workerId, position) => write(() => tables.acknowledgeOrder(workerId, position)),
    acknowledgeBundle: (workerId, version) => write(() => tables.acknowledgeBundle(workerId, version)),
    recordLease: (workerId, lease) => write(() => tables.recordLease(workerId, lease)),
  };
  const enrolments: EnrolmentStore = {
    succeed: (workerId, step) => write(() => tables.succeed(workerId, step)),
    enrolled: () => read(() => tables.enrolled()),
  };
  return { sandboxes, installation, signingKeys, receivers, enrolments };
}
