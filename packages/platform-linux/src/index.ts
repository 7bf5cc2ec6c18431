// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { ControlGroups } from "./control-groups.ts";
export { ensureDebianPackages, type HostPackage } from "./debian-packages.ts";
export {
  type DebianPrefix,
  type PrefixPackage,
  type UnpackedPackage,
  unpackDebianPackages,
} from "./debian-prefix.ts";
export {
  checkEndpoint,
  type EndpointReader,
  type EndpointVerdict,
  HeldProcess,
  kernelReader,
  type RecordedEndpoint,
  requireEndpoint,
} from "./endpoint-check.ts";
export {
  evidenceMismatch,
  hostBootId,
  processEvidence,
  processStartTime,
  signalProcess,
  stillRuns,
} from "./process-evidence.ts";
export { bootTimeMs, bootTimeNanoseconds, type PeerCredentials, socketCredentials } from "./system-calls.ts";
export { holdsSocket, listeningInode, pathInode, peerCredentials, peerProcess } from "./unix-peer.ts";
