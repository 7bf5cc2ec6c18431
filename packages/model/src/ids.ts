// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Brand } from "./brand.ts";
import { SpaceError } from "./errors.ts";
import type { Random } from "./ports/random.ts";

/** The stable id of a user's logical environment: `i` and 20 of `[a-z0-9]`, a DNS label. */
export type SandboxId = Brand<string, "SandboxId">;
/** One enrolled worker store: `wrk_` and 16 of `[a-z2-7]`. */
export type WorkerId = Brand<string, "WorkerId">;
/** 128 random bits naming one runtime process: `act_` and 26 of `[a-z2-7]`. */
export type ActivationId = Brand<string, "ActivationId">;
/** `cap_` and 26 of `[a-z2-7]`. */
export type CapabilityId = Brand<string, "CapabilityId">;
/** `ten_` and 16 of `[a-z2-7]`. */
export type TenantId = Brand<string, "TenantId">;
/** One version of a tenant's key for its snapshots: `tky_` and 26 of `[a-z2-7]`. */
export type TenantKeyId = Brand<string, "TenantKeyId">;
/** one admission of one request: `adm_` and 26 of `[a-z2-7]`. */
export type AdmissionId = Brand<string, "AdmissionId">;
/** A snapshot that is kept apart from its sandbox: `s` and 19 of `[a-z0-9]`, the form of E2B's template ids. */
export type SnapshotId = Brand<string, "SnapshotId">;
/** Lower-case hexadecimal SHA-256. */
export type Digest = Brand<string, "Digest">;

const patterns = {
  sandboxId: /^i[a-z0-9]{20}$/,
  workerId: /^wrk_[a-z2-7]{16}$/,
  activationId: /^act_[a-z2-7]{26}$/,
  capabilityId: /^cap_[a-z2-7]{26}$/,
  tenantId: /^ten_[a-z2-7]{16}$/,
  tenantKeyId: /^tky_[a-z2-7]{26}$/,
  admissionId: /^adm_[a-z2-7]{26}$/,
  snapshotId: /^s[a-z0-9]{19}$/,
  digest: /^[0-9a-f]{64}$/,
} as const;

function parse<T extends string>(name: keyof typeof patterns, text: unknown): T {
  if (typeof text === "string" && patterns[name].test(text)) return text as T; // cast: the pattern is the definition
  throw new SpaceError("input/invalid", { field: name, problem: "is not of its form" });
}

export const parseSandboxId = (text: unknown): SandboxId => parse("sandboxId", text);
export const parseWorkerId = (text: unknown): WorkerId => parse("workerId", text);
export const parseActivationId = (text: unknown): ActivationId => parse("activationId", text);
export const parseCapabilityId = (text: unknown): CapabilityId => parse("capabilityId", text);
export const parseTenantId = (text: unknown): TenantId => parse("tenantId", text);
export const parseTenantKeyId = (text: unknown): TenantKeyId => parse("tenantKeyId", text);
export const parseAdmissionId = (text: unknown): AdmissionId => parse("admissionId", text);
export const parseSnapshotId = (text: unknown): SnapshotId => parse("snapshotId", text);
export const parseDigest = (text: unknown): Digest => parse("digest", text);

const base32 = "abcdefghijklmnopqrstuvwxyz234567";
const base36 = "abcdefghijklmnopqrstuvwxyz0123456789";

/** `length` characters of the 32-letter alphabet, 5 random bits each. */
function random32(random: Random, length: number): string {
  let text = "";
  for (const byte of random.bytes(length)) text += base32.charAt(byte & 31);
  return text;
}

/** `length` characters of `[a-z0-9]`, without bias (bytes above the last whole multiple are drawn again). */
function random36(random: Random, length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of random.bytes(length))
      if (byte < 252 && text.length < length) text += base36.charAt(byte % 36);
  }
  return text;
}

export const newSandboxId = (random: Random): SandboxId => parseSandboxId(`i${random36(random, 20)}`);
export const newSnapshotId = (random: Random): SnapshotId => parseSnapshotId(`s${random36(random, 19)}`);
export const newWorkerId = (random: Random): WorkerId => parseWorkerId(`wrk_${random32(random, 16)}`);
export const newActivationId = (random: Random): ActivationId =>
  parseActivationId(`act_${random32(random, 26)}`);
export const newCapabilityId = (random: Random): CapabilityId =>
  parseCapabilityId(`cap_${random32(random, 26)}`);
export const newTenantId = (random: Random): TenantId => parseTenantId(`ten_${random32(random, 16)}`);
export const newTenantKeyId = (random: Random): TenantKeyId =>
  parseTenantKeyId(`tky_${random32(random, 26)}`);
export const newAdmissionId = (random: Random): AdmissionId =>
  parseAdmissionId(`adm_${random32(random, 26)}`);
