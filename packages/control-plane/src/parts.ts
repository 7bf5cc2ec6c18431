// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  AuditSink,
  BootClock,
  Claim,
  EnrolmentStore,
  InstallationStore,
  PrivateKeyVault,
  Random,
  ReceiverStore,
  RootKey,
  SandboxId,
  SandboxStore,
  SigningKeyStore,
  SnapshotCollector,
  SnapshotReferences,
  SnapshotStore,
  TenantKeyring,
} from "@space/model";
import type { AccessTokens } from "./access-tokens.ts";
import type { AuditedSandboxes } from "./audited-sandboxes.ts";
import type { ConnectedReceivers } from "./bundle-receivers.ts";
import type { ConnectedWorkers } from "./connected-workers.ts";
import { codeOf } from "./failures.ts";
import type { KeyRotation } from "./key-rotation.ts";
import type { Leases } from "./leases.ts";
import type { ControlLimits } from "./limits.ts";
import type { Placements } from "./placements.ts";
import type { ReceiverFeeds } from "./receiver-feeds.ts";
import type { Signer } from "./signer.ts";
import type { SigningKeys } from "./signing-keys.ts";
import type { Transitions } from "./transitions.ts";

/** What the control plane needs from outside. */
export interface ControlPlanePorts {
  readonly sandboxes: SandboxStore;
  /** Where snapshots are; the control plane writes their sealed chains. */
  readonly snapshots: SnapshotStore;
  /** Nobody else holds these. */
  readonly tenantKeys: TenantKeyring;
  /** Asks these references, and removes from the store what they do not name. */
  readonly collector: (references: SnapshotReferences) => SnapshotCollector;
  readonly installation: InstallationStore;
  readonly enrolments: EnrolmentStore;
  readonly signingKeys: SigningKeyStore;
  readonly privateKeys: PrivateKeyVault;
  /** kept apart, and asked only where a bundle is to be signed. */
  readonly rootKey: RootKey;
  readonly receiverStore: ReceiverStore;
  readonly clock: BootClock;
  readonly random: Random;
  readonly audit: AuditSink;
}

/** What its use-cases share. */
export interface ControlParts extends Omit<ControlPlanePorts, "sandboxes"> {
  readonly sandboxes: AuditedSandboxes;
  /** This process, as the owner of claims: a run of this replica. */
  readonly owner: string;
  /** names this replica among those of one store, the same after each restart. */
  readonly replica: string;
  /** Whether what is moved is handed over from worker to worker, where both are here. */
  readonly directMoves: boolean;
  readonly limits: ControlLimits;
  readonly keys: SigningKeys;
  readonly signer: Signer;
  readonly receivers: ConnectedReceivers;
  readonly rotation: KeyRotation;
  readonly tokens: AccessTokens;
  readonly workers: ConnectedWorkers;
  readonly placements: Placements;
  readonly transitions: Transitions;
  readonly feeds: ReceiverFeeds;
  readonly leases: Leases;
}

/** A claim of this process from now on. */
export function newClaim({ owner, limits, clock }: Pick<ControlParts, "owner" | "limits" | "clock">): Claim {
  return { owner, untilMs: clock.wallMs() + limits.claimMs };
}

/** A claim that is over as it is written: whichever replica looks next may drive this on, the last in its row. */
export function claimGivenUp({ owner, clock }: Pick<ControlParts, "owner" | "clock">): Claim {
  return { owner, untilMs: clock.wallMs() };
}

/** Whether nobody else may drive this any more: its time is over, or its owner was this very replica before it restarted. */
export function isForfeit(
  { replica, clock }: Pick<ControlParts, "replica" | "clock">,
  claim: Claim,
): boolean {
  return claim.owner.startsWith(`${replica}/`) || claim.untilMs <= clock.wallMs();
}

/** A sandbox whose transition could not be ended: the recovery looks after it soon. */
export function leave(
  { audit, transitions }: Pick<ControlParts, "audit" | "transitions">,
  sandboxId: SandboxId,
  task: string,
  error: unknown,
): void {
  transitions.leave(sandboxId);
  audit.record("upkeep/failed", { task, sandboxId, code: codeOf(error) });
}
