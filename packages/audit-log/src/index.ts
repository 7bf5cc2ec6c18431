// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { AuditLog, type AuditLogOptions, type AuditLogPorts } from "./audit-log.ts";
export { type AuditRecord, lineDigest, parseRecord } from "./audit-record.ts";
export { findingsLimit, type LogProblem, type LogProblemKind } from "./findings.ts";
export { type AuditLogLimits, defaultAuditLogLimits } from "./limits.ts";
export { lastCheckpointName } from "./log-writer.ts";
export { DirectoryLogFiles, type LogFiles, type SegmentFile } from "./segment-files.ts";
export { type Line, listSegments, readLines, type Segment } from "./segments.ts";
export { type LogReport, type VerifyLogOptions, verifyLog } from "./verify-log.ts";
export { type AuditTrust, type MeshCertificate, meshCheckpointSigner } from "./witness.ts";
