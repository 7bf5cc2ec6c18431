// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// For tests: a log in a folder of its own, signed as the control plane signs, on a clock that a test moves.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  newSigningKey,
  publicKeyText,
  type SigningKey,
  signAuditCheckpoint,
  signKeyBundle,
} from "@space/capability";
import type { CheckpointSigner, Clock } from "@space/model";
import { AuditLog } from "./audit-log.ts";
import type { AuditLogLimits } from "./limits.ts";
import type { LogFiles } from "./segment-files.ts";
import { listSegments } from "./segments.ts";
import { type LogReport, type VerifyLogOptions, verifyLog } from "./verify-log.ts";

export const root: SigningKey = newSigningKey();
export const signing: SigningKey = newSigningKey();

export function signerOf(key: SigningKey, by: SigningKey = root): CheckpointSigner {
  const keys = [{ kid: key.kid, publicKey: publicKeyText(key.publicKey) }];
  const proof = signKeyBundle(by, { version: 1, issuedAtSeconds: 1_800_000_000, keys });
  return (checkpoint) => ({
    token: signAuditCheckpoint(key, checkpoint),
    witness: { kind: "bundle", proof },
  });
}

export class LogFolder implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), "space-audit-"));
  nowMs = 1_800_000_000_000;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  readonly clock: Clock = {
    wallMs: () => this.nowMs,
    monotonicMs: () => this.nowMs,
    after: (delayMs, callback) => {
      const timer = { atMs: this.nowMs + delayMs, callback };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      };
    },
  };

  /** Opens the log. Without a signer it signs nothing. */
  open(
    limits: Partial<AuditLogLimits> = {},
    signer: CheckpointSigner | null = signerOf(signing),
    files?: LogFiles,
  ): AuditLog {
    const random = { bytes: (length: number) => new Uint8Array(length).fill(7) };
    const log = AuditLog.open(
      { directory: this.path, process: "control-plane", limits },
      { clock: this.clock, random, ...(files && { files }) },
    );
    if (signer !== null) log.signWith(signer);
    return log;
  }

  pass(durationMs: number): void {
    this.nowMs += durationMs;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.nowMs);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.nowMs);
    for (const { callback } of due) callback();
  }

  /** Whose log it is, and whose word counts. */
  get about(): VerifyLogOptions {
    const trust = { rootKey: root.publicKey, meshAuthority: undefined };
    return { directory: this.path, process: "control-plane", trust };
  }

  verify(kept?: string): LogReport {
    return verifyLog({
      ...this.about,
      ...(kept !== undefined && { kept: [kept] }),
    });
  }

  /** Every line of the log, by segment. */
  lines(index = 0): string[] {
    return readFileSync(this.segment(index), "utf8").trimEnd().split("\n");
  }

  segment(index: number): string {
    const segment = listSegments(this.path)[index];
    if (segment === undefined) throw new TypeError(`there is no segment ${index}`);
    return segment.path;
  }

  rewrite(change: (lines: string[]) => readonly string[], index = 0): void {
    writeFileSync(this.segment(index), `${change(this.lines(index)).join("\n")}\n`);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Records as many events, each with its own number, and closes. */
export async function writeMany(log: AuditLog, count: number): Promise<void> {
  for (let version = 1; version <= count; version += 1) {
    log.record("keys/replaced", { version });
    if (version % 10 === 0) await log.settled();
  }
  await log.close();
}
