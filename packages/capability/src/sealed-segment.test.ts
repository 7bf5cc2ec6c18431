// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { SealedChainProblem } from "@space/model";
import { manifestDigest } from "./digest.ts";
import { newSigningKey } from "./keys.ts";
import { readVouchedManifest } from "./manifest.ts";
import { absent, Sealing } from "./sealed.fixture.ts";
import { parseSealedObject, sealedObjectToBytes } from "./sealed-segment.ts";
import { sandboxId, signPayload } from "./signed.fixture.ts";

const refuses = (opening: Promise<unknown>, problem: SealedChainProblem, link: string): Promise<void> =>
  assert.rejects(opening, { code: "snapshot/chain-refused", details: { problem, link } });

it("R-5: a manifest of another version is refused as that", () => {
  const key = newSigningKey();
  const signed = signPayload(key, '{"version":1,"sbx":{}}', "space-manifest+jws");
  assert.throws(() => readVouchedManifest(signed, manifestDigest(signed)), {
    code: "snapshot/version",
    details: { version: 1 },
  });
  for (const [payload, typ] of [
    ['{"version":"4"}', "space-manifest+jws"],
    ['"x"', "space-manifest+jws"],
    ['{"version":1}', "space-chain-head+jwt"],
  ] as const) {
    const other = signPayload(key, payload, typ);
    assert.throws(() => readVouchedManifest(other, manifestDigest(other)), { details: { problem: "form" } });
  }
  assert.throws(() => readVouchedManifest(signed, absent), { details: { problem: "digest" } });
});

it("R-5: what is no object of a chain is refused as a whole, and nothing else is thrown", async () => {
  const sealing = new Sealing().certify(1);
  sealing.seal();
  const [bytes = Buffer.alloc(0)] = sealing.objects.values();
  const text = Buffer.from(bytes).toString();
  const change = (edit: (value: Record<string, unknown>) => void): string => {
    const value = JSON.parse(text) as Record<string, unknown>; // cast: our own text
    edit(value);
    return JSON.stringify(value);
  };
  for (const bad of [
    "",
    "null",
    "[]",
    ` ${text}`,
    text.replace("{", '{"format":"x",'),
    change((value) => (value["format"] = "space-sealed-chain/2")),
    change((value) => (value["more"] = 1)),
    change((value) => delete value["previous"]),
    change((value) => (value["previous"] = "x")),
    change((value) => (value["sandboxId"] = "x")),
    change((value) => (value["bundles"] = [1])),
    change((value) => (value["links"] = [])),
    change((value) => (value["links"] = [{ manifest: "x" }])),
    change((value) => (value["links"] = [{ manifest: "x", certificate: "x" }])),
    change((value) => (value["links"] = [{ manifest: 1 }, { certificate: "x" }])),
    change((value) => (value["links"] = [{ certificate: 1 }])),
    change((value) => (value["links"] = [{}])),
    change((value) => (value["links"] = [1])),
  ]) {
    assert.throws(() => parseSealedObject(Buffer.from(bad)), { code: "input/invalid" }, bad.slice(0, 60));
    const digest = sealing.put(Buffer.from(bad));
    await refuses(sealing.open(digest), "damaged", `object ${digest.slice(0, 12)}`);
  }
  assert.throws(() => parseSealedObject(Buffer.alloc(8 * 1024 * 1024 + 1)), { code: "input/invalid" });
  const links = [{ certificate: "x".repeat(8 * 1024 * 1024) }];
  assert.throws(() => sealedObjectToBytes({ sandboxId, previous: null, bundles: [], links }), {
    code: "input/too-large",
  });
});
