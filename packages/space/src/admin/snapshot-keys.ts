// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditSink,
  type Rewrapped,
  SpaceError,
  type TenantId,
  type TenantKeyId,
  type TenantKeyring,
} from "@space/model";
import type { KeyEncryptionFile } from "../data/key-encryption-file.ts";

/** Which keys there are. Nothing in it is secret. */
export interface SnapshotKeysView {
  /** Of key-encryption keys, the newest first. */
  readonly wrappingKeys: readonly string[];
  readonly tenants: readonly {
    readonly tenantId: TenantId;
    /** The newest first: it seals the next snapshot. */
    readonly keys: readonly TenantKeyId[];
  }[];
}

interface SnapshotKeyPorts {
  readonly tenantKeys: TenantKeyring;
  readonly wrapping: KeyEncryptionFile;
  readonly audit: AuditSink;
}

/** The keys that snapshots are sealed with, at an operator's word. */
export class SnapshotKeys {
  readonly #ports: SnapshotKeyPorts;

  constructor(ports: SnapshotKeyPorts) {
    this.#ports = ports;
  }

  async view(): Promise<SnapshotKeysView> {
    const { tenantKeys, wrapping } = this.#ports;
    const tenants: SnapshotKeysView["tenants"][number][] = [];
    for (const tenantId of await tenantKeys.tenants())
      tenants.push({ tenantId, keys: await tenantKeys.versions(tenantId) });
    return { wrappingKeys: wrapping.ids, tenants };
  }

  /** A new key of this tenant seals its snapshots from now on. Throws `input/invalid` for a tenant that has none yet. */
  async rotateTenant(tenantId: TenantId): Promise<TenantKeyId> {
    const { tenantKeys, audit } = this.#ports;
    if ((await tenantKeys.versions(tenantId)).length === 0)
      throw new SpaceError("input/invalid", {
        field: "tenant",
        problem: "has no key yet: nothing was paused",
      });
    const { keyId } = await tenantKeys.rotate(tenantId);
    audit.record("tenant-key/rotated", { tenantId, keyId });
    return keyId;
  }

  /**
   * A new key-encryption key; all tenants' keys are wrapped under it; then those before are forgotten. Interrupted, it
   * may be repeated, and nothing is lost: what is not wrapped anew yet still opens.
   */
  async rewrap(): Promise<Rewrapped> {
    const { tenantKeys, wrapping, audit } = this.#ports;
    const wrappingKey = wrapping.rotate();
    const done = await tenantKeys.rewrap();
    wrapping.forgetBefore(wrappingKey); // not a newer one, which somebody else may be wrapping under now
    audit.record("key-encryption/rotated", { wrappingKey, ...done });
    return done;
  }
}
