// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import {
  type ApiCaller,
  type Digest,
  newTenantId,
  parseDigest,
  Secret,
  SpaceError,
  type TenantId,
} from "@space/model";
import type { ControlParts } from "./parts.ts";

/** What every version of E2B's clients accepts. */
const form = /^e2b_[0-9a-f]{40}$/;
const defaultTenant = "default";

type Parts = Pick<ControlParts, "installation" | "random" | "clock" | "audit" | "limits">;

/** A key that was made just now: its text is nowhere else and cannot be shown again. */
export interface NewApiKey {
  readonly keyId: string;
  readonly text: Secret<string>;
}

/** Only the hash is looked up, so the time that it takes says nothing about a key. Throws `key/missing` or `key/unknown`. */
export async function authenticate(
  { installation, audit }: Parts,
  shown: Secret<string> | undefined,
): Promise<ApiCaller> {
  const text = shown?.reveal();
  if (text === undefined || text === "") {
    audit.record("api-key/refused", { problem: "missing" });
    throw new SpaceError("key/missing", {});
  }
  const key = form.test(text) ? await installation.findApiKey(hashOf(text)) : undefined;
  if (key === undefined) {
    audit.record("api-key/refused", { problem: "unknown" });
    throw new SpaceError("key/unknown", {});
  }
  return { tenantId: key.tenantId, keyId: key.keyId };
}

/** Who may administer is the composition's business: this is not reachable from outside. */
export class Administration {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Throws `input/invalid` when the name is taken. */
  async createTenant(name: string): Promise<TenantId> {
    const { installation, random, clock, audit, limits } = this.#parts;
    const tenantId = newTenantId(random);
    const tenant = {
      tenantId,
      name,
      sandboxLimit: limits.tenantSandboxes,
      createdAtMs: clock.wallMs(),
    };
    if (!(await installation.addTenant(tenant)))
      throw new SpaceError("input/invalid", { field: "name", problem: "is taken" });
    audit.record("tenant/created", { tenantId });
    return tenantId;
  }

  /** The tenant of an installation that was just made. */
  async ensureDefaultTenant(): Promise<TenantId> {
    const known = await this.#parts.installation.findTenant(defaultTenant);
    return known?.tenantId ?? this.createTenant(defaultTenant);
  }

  /** 160 random bits: nobody finds them by trying, so a plain hash keeps them as well as a slow one. */
  async createApiKey(tenantId: TenantId): Promise<NewApiKey> {
    const { installation, random, clock, audit } = this.#parts;
    const text = `e2b_${Buffer.from(random.bytes(20)).toString("hex")}`;
    const keyId = `key_${Buffer.from(random.bytes(8)).toString("hex")}`;
    await installation.addApiKey({ keyId, tenantId, hash: hashOf(text), createdAtMs: clock.wallMs() });
    audit.record("api-key/created", { keyId, tenantId });
    return { keyId, text: new Secret(text) };
  }

  /** From the next request on. Whether it was valid until now. */
  async revokeApiKey(keyId: string): Promise<boolean> {
    const { installation, clock, audit } = this.#parts;
    const wasValid = await installation.revokeApiKey(keyId, clock.wallMs());
    audit.record("api-key/revoked", { keyId, wasValid });
    return wasValid;
  }
}

function hashOf(text: string): Digest {
  return parseDigest(createHash("sha256").update(text).digest("hex"));
}
