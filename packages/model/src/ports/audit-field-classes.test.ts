// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type AuditFieldClasses, auditFieldClass, redactAuditFields } from "./audit-field-classes.ts";

it("a field without a class does not compile", () => {
  // @ts-expect-error: `problem` has no class
  const lacking: AuditFieldClasses["worker/refused"] = { workerId: "public" };
  // @ts-expect-error: the event has no such field
  const more: AuditFieldClasses["keys/replaced"] = { version: "public", token: "public" };
  assert.ok("workerId" in lacking && "token" in more);
});

it("whatever is in no table is secret", () => {
  assert.equal(auditFieldClass("capability/issued", "principal"), "sensitive");
  assert.equal(auditFieldClass("capability/issued", "capabilityId"), "public");
  for (const [event, field] of [
    ["capability/issued", "token"],
    ["capability/issued", "toString"],
    ["no/event", "version"],
    ["toString", "length"],
    ["__proto__", "constructor"],
  ] as const) {
    assert.equal(auditFieldClass(event, field), "secret", `${event} ${field}`);
  }
});

it("what is secret is never written, also where an object brought more than its type says", () => {
  const wide = { version: 3, token: "spc_very-secret" };
  assert.deepEqual(redactAuditFields("keys/replaced", wide), { version: 3, token: "[secret]" });
  assert.deepEqual(redactAuditFields("no/event", wide), { version: "[secret]", token: "[secret]" });
});
