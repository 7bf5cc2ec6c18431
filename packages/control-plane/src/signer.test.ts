// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { AuditEventName } from "@space/model";
import { Signer } from "./signer.ts";

/** What the log says of each kind of statement. A kind that is missing here fails the test below. */
const recordedAs: Readonly<Record<Exclude<keyof Signer, "auditCheckpoint">, AuditEventName>> = {
  certificate: "certificate/issued",
  chainHead: "chain-head/issued",
  originGrant: "origin/issued",
  retirement: "retirement/issued",
  lease: "lease/granted",
  handOver: "hand-over/issued",
  countersign: "manifest/countersigned",
  capability: "capability/issued",
};

it("whatever the control plane signs is recorded, each kind as its own event", () => {
  const methods = Object.getOwnPropertyNames(Signer.prototype).filter((name) => name !== "constructor");
  assert.deepEqual(methods.toSorted(), Object.keys(recordedAs).toSorted());
  for (const [method, event] of Object.entries(recordedAs)) {
    const text = String(Reflect.get(Signer.prototype, method));
    assert.ok(text.includes(`audit.record("${event}"`), `${method} records ${event}`);
  }
});
