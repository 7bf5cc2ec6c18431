// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newTenantId } from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";
import { digestOf, type OpenedStore } from "./sandbox-store.ts";

const random = new SeededRandom("installation store");

export function installationStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: installation`, () => {
    test("a tenant's name is taken once", async (context) => {
      const store = await open();
      context.after(() => store.dispose());
      const tenant = { tenantId: newTenantId(random), name: "acme", sandboxLimit: 5, createdAtMs: 1 };
      assert.equal(await store.installation.addTenant(tenant), true);
      assert.equal(await store.installation.addTenant({ ...tenant, tenantId: newTenantId(random) }), false);
      const reopened = await store.reopen();
      context.after(() => reopened.dispose());
      assert.deepEqual(await reopened.installation.findTenant("acme"), tenant);
      assert.equal(await reopened.installation.findTenant("other"), undefined);
    });

    test("a key is found by its hash until it is revoked", async (context) => {
      const store = await open();
      context.after(() => store.dispose());
      const tenantId = newTenantId(random);
      await store.installation.addTenant({ tenantId, name: "t", sandboxLimit: 5, createdAtMs: 1 });
      const key = { keyId: "key_1", tenantId, hash: digestOf("k"), createdAtMs: 2 };
      await store.installation.addApiKey(key);
      assert.deepEqual(await store.installation.findApiKey(key.hash), key);
      assert.equal(await store.installation.findApiKey(digestOf("other")), undefined);
      assert.equal(await store.installation.revokeApiKey("key_1", 3), true);
      assert.equal(await store.installation.revokeApiKey("key_1", 4), false);
      assert.equal(await store.installation.findApiKey(key.hash), undefined);
    });

    test("base is everyone's template, and an unknown one is nobody's", async (context) => {
      const store = await open();
      context.after(() => store.dispose());
      assert.equal(await store.installation.findTemplate(newTenantId(random), "base"), "base");
      assert.equal(await store.installation.findTemplate(newTenantId(random), "other"), undefined);
    });
  });
}
