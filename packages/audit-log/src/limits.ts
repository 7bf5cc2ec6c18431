// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export interface AuditLogLimits {
  /** Bytes that wait for the disk. What comes on top is dropped, counted, and the count recorded. */
  readonly waitingBytes: number;
  /** A segment that has as many is followed by the next. */
  readonly segmentBytes: number;
  /** All segments together; the oldest are removed, and their removal recorded. */
  readonly totalBytes: number;
  /** What was written is synced after this, many records at once. */
  readonly syncMs: number;
  /** A checkpoint is signed after as many records, or after this time when there was one. */
  readonly checkpointRecords: number;
  readonly checkpointMs: number;
}

export const defaultAuditLogLimits: AuditLogLimits = {
  waitingBytes: 4 * 1024 * 1024,
  segmentBytes: 16 * 1024 * 1024,
  totalBytes: 1024 * 1024 * 1024,
  syncMs: 50,
  checkpointRecords: 1_000,
  checkpointMs: 60_000,
};
