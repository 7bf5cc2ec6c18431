// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export {
  type Authority,
  type AuthorityRequest,
  authorityDays,
  certifyPeer,
  createAuthority,
  type IssueRequest,
  issueClient,
  issuePeer,
  issueServer,
  leafDays,
  leafDaysLimit,
  newTlsKey,
  type TlsIdentity,
} from "./authority.ts";
export { type DialRequest, dialPeer } from "./dial.ts";
export { peerName, peerThumbprint } from "./peer.ts";
export {
  type Edge,
  type EdgeRequest,
  loadOrCreateEdge,
  loadOrCreateMesh,
  loadOrCreatePeer,
  type MeshRequest,
  type PeerRequest,
  renewBeforeMs,
} from "./persisted.ts";
export { thumbprint } from "./thumbprint.ts";
export { clientOptions, edgeOptions, handshakeLimitMs, serverOptions } from "./tls-options.ts";
