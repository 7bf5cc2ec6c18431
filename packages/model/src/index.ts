// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export {
  type Access,
  type ControlScope,
  controlScopes,
  type NeededAccess,
  type PortProtocol,
  portProtocols,
} from "./access.ts";
export { applyFeedEntry } from "./apply-feed-entry.ts";
export { type Brand, unreachable } from "./brand.ts";
export {
  type Caller,
  type CapabilityClaims,
  capabilityLifetimeSeconds,
  capabilityLimitBytes,
  expiryToleranceSeconds,
  issueSkewSeconds,
} from "./capability.ts";
export type {
  ExecutionCertificate,
  ExecutionOrigin,
  OriginGrant,
  ParentOrigin,
  Retirement,
} from "./certificate.ts";
export {
  type ErrorCode,
  type ErrorDetails,
  type ErrorKind,
  isErrorCode,
  isSpaceError,
  SpaceError,
} from "./errors.ts";
export { evidenceToText, parseEvidence } from "./evidence.ts";
export { firstGeneration, type Generation, nextGeneration, parseGeneration } from "./generation.ts";
export {
  type HandOverFailure,
  type HandOverGrant,
  type HandOverProblem,
  longestHandOverSeconds,
} from "./hand-over.ts";
export {
  type Activation,
  compareIdentity,
  type ExecutionIdentity,
  freezeIdentity,
  type IdentityComparison,
  type IdentityJson,
  identityToJson,
  members,
  type Placement,
  parseIdentity,
  parsePodUid,
  parseSubstrateName,
  placementOn,
  type SubstrateName,
  sameRoute,
} from "./identity.ts";
export {
  type ActivationId,
  type AdmissionId,
  type CapabilityId,
  type Digest,
  newActivationId,
  newAdmissionId,
  newCapabilityId,
  newSandboxId,
  newSnapshotId,
  newTenantId,
  newTenantKeyId,
  newWorkerId,
  parseActivationId,
  parseAdmissionId,
  parseCapabilityId,
  parseDigest,
  parseSandboxId,
  parseSnapshotId,
  parseTenantId,
  parseTenantKeyId,
  parseWorkerId,
  type SandboxId,
  type SnapshotId,
  type TenantId,
  type TenantKeyId,
  type WorkerId,
} from "./ids.ts";
export type { Json } from "./json.ts";
export {
  defaultLeaseSeconds,
  fencedLimitMs,
  type LeaseAnswer,
  type LeaseGrant,
  type LeaseRequest,
  leaseMarginMs,
  leaseNonceBytes,
  longestLeaseSeconds,
  shortestLeaseSeconds,
} from "./lease.ts";
export { enteredFrom, mayEnter, type SandboxState } from "./lifecycle.ts";
export { isObjectKey, requireKeyPrefix, requireObjectKey } from "./object-key.ts";
export type { ActivationPhase, ActivationRecord, ActivationStore } from "./ports/activation-store.ts";
export type { AuditCheckpoint, AuditSink, AuditWitness, CheckpointSigner } from "./ports/audit.ts";
export type { AuditEvent, AuditEventName, AuditFields } from "./ports/audit-events.ts";
export {
  type AuditFieldClasses,
  auditFieldClass,
  auditFieldClasses,
  type FieldClass,
  redactAuditFields,
} from "./ports/audit-field-classes.ts";
export type {
  BridgeRefusal,
  ChangeReason,
  InstallReason,
  KeyChangeReason,
  RetirementReason,
  SandboxChangeKind,
  StopReason,
} from "./ports/audit-reasons.ts";
export { refusalFacts } from "./ports/audit-refusal.ts";
export {
  type BridgeEvent,
  type BridgeEventFields,
  type BridgeReport,
  bridgeReportLimit,
  type SeenReport,
  type ToldBridgeEventName,
} from "./ports/bridge-events.ts";
export type { ByteStore, StoredBytes } from "./ports/byte-store.ts";
export type { BootClock, Clock } from "./ports/clock.ts";
export type { EnrolmentStore, SuccessionStore } from "./ports/enrolment-store.ts";
export {
  type AdoptRequest,
  type CarriedPiece,
  carriedLimitBytes,
  carriedPieceBytes,
  type HostControl,
  type RekeyRequest,
} from "./ports/host-control.ts";
export type {
  ApiKeyRecord,
  InstallationStore,
  TenantRecord,
} from "./ports/installation-store.ts";
export type {
  KeptSnapshot,
  KeptSnapshotStore,
  ListKeptSnapshots,
  SandboxOrigin,
} from "./ports/kept-snapshots.ts";
export type { KeyBundleStore } from "./ports/key-bundle-store.ts";
export type { KeyWrapping } from "./ports/key-wrapping.ts";
export type { Random } from "./ports/random.ts";
export type {
  FeedEntry,
  FeedItem,
  ReceiverFeed,
  ReceiverRecord,
  ReceiverStore,
} from "./ports/receiver-feed.ts";
export type {
  CallerCredential,
  ResolveAnswer,
  ResolveRequest,
  RouteSource,
  WantedAccess,
} from "./ports/route-source.ts";
export type { RuntimeRecordStore } from "./ports/runtime-record-store.ts";
export type {
  ApiCaller,
  ConnectedSandbox,
  ConnectSandbox,
  CreateSandbox,
  ListSandboxes,
  MovedSandbox,
  MoveSandbox,
  SandboxMover,
  SandboxService,
  SandboxView,
} from "./ports/sandbox-service.ts";
export type {
  BeginOutcome,
  ChainLinks,
  ChainToken,
  ChangeOutcome,
  ChangeRequest,
  Claim,
  CommittedManifest,
  ExecutionRecord,
  NewSandbox,
  PendingQuery,
  PendingSideEffect,
  PublishedCertificate,
  SandboxChange,
  SandboxRecord,
  SandboxStore,
  SideEffect,
  SnapshotHead,
  StoredChain,
  StoredManifest,
  StoredSnapshot,
} from "./ports/sandbox-store.ts";
export type {
  PrivateKeyVault,
  RootKey,
  SigningKeyChange,
  SigningKeyStep,
  SigningKeyStore,
  StoredKeyBundle,
} from "./ports/signing-key-store.ts";
export type {
  ForkedSandbox,
  ForkSandbox,
  ListSnapshots,
  SnapshotService,
  SnapshotView,
} from "./ports/snapshot-service.ts";
export type {
  ArchiveStore,
  ChunkPeers,
  ChunkSink,
  ChunkSource,
  Collected,
  KeyScope,
  ObjectStore,
  SnapshotCollector,
  SnapshotReferences,
  SnapshotStore,
  TenantSnapshots,
} from "./ports/snapshot-store.ts";
export type {
  EndpointEvidence,
  ExecutionExit,
  ExecutionLimits,
  ProcessEvidence,
  RunningExecution,
  StartRequest,
  Substrate,
  SubstrateAbilities,
} from "./ports/substrate.ts";
export type { Rewrapped, TenantKeyring } from "./ports/tenant-keyring.ts";
export type {
  ActivateAnswer,
  ActivateRequest,
  KeyBundleReceiver,
  RecordReceiver,
  SnapshotAnswer,
  SnapshotLinks,
  WorkerControl,
  WorkerDirectory,
  WorkerHandle,
  WorkerHello,
  WorkerInventory,
  WorkerPresence,
  WorkerReport,
  WorkerWelcome,
} from "./ports/worker-control.ts";
export type { RuntimeRecord } from "./record.ts";
export type { Route, RouteEntry, WorkerEndpoint } from "./route.ts";
export type { SealedChainProblem } from "./sealed-chain-problem.ts";
export type { SealedSegment } from "./sealed-segment.ts";
export { Secret } from "./secret.ts";
export type { SigningKeyRecord, SigningKeyState } from "./signing-key.ts";
export {
  type Chunk,
  type MemoryKept,
  manifestVersion,
  type SnapshotManifest,
  snapshotChunkLimit,
} from "./snapshot.ts";
export { newSuccessionToken, parseStoreSuccession, type StoreSuccession } from "./store-succession.ts";
export type { TenantKey } from "./tenant-key.ts";
export type { DenyReason, IdentityVerdict, RefreshReason } from "./verdict.ts";
