// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  CapabilityVerifier,
  importPublicKey,
  KeyRing,
  parseChainExport,
  verifyCertificate,
  verifyChainExport,
  verifyChainHead,
  verifyCountersigned,
  verifyHandOverGrant,
  verifyManifest,
  verifyOriginGrant,
  verifyRetirement,
} from "@space/capability";
import { type ErrorCode, isSpaceError } from "@space/model";
import fc from "fast-check";
import { headerText, signParts } from "../src/fixed-keys.ts";
import { bundle, capabilityOf, execution, root, signer, tokenVectors, typeOf } from "../src/token-vectors.ts";
import { claimsJson } from "../src/vector-identities.ts";

const ring = KeyRing.fromBundle(bundle, root.publicKey);
const verifier = new CapabilityVerifier({ keys: ring, memoryLimit: 0 });

/** Everything that reads what others wrote, with the one code that it may throw. */
const readers: Readonly<Record<string, readonly [read: (text: string) => unknown, code: ErrorCode]>> = {
  capability: [(text) => verifier.verify(text), "internal/bug"],
  certificate: [(text) => verifyCertificate(text, ring), "certificate/refused"],
  origin: [(text) => verifyOriginGrant(text, ring), "chain/refused"],
  handOver: [(text) => verifyHandOverGrant(text, ring), "hand-over/refused"],
  retirement: [(text) => verifyRetirement(text, ring), "certificate/refused"],
  bundle: [(text) => KeyRing.fromBundle(text, root.publicKey), "bundle/refused"],
  manifest: [(text) => verifyManifest(text, execution.publicKey), "snapshot/refused"],
  countersigned: [(text) => verifyCountersigned(text, ring), "snapshot/refused"],
  "chain head": [(text) => verifyChainHead(text, ring), "chain/refused"],
  "chain export": [(text) => verifyChainExport(parseChainExport(text), root.publicKey), "chain/refused"],
  "public key": [importPublicKey, "input/invalid"],
};

/** Whether the reader took the text; fails when it threw anything but its own refusal. */
function takes(name: string, text: string): boolean {
  const [read, code] = readers[name] ?? assert.fail();
  try {
    const result = read(text);
    return name !== "capability" || (result as { kind: string }).kind === "verified";
  } catch (error) {
    assert.ok(isSpaceError(error, code), `${name} threw ${String(error)}`);
    return false;
  }
}

const readerNames = Object.keys(readers);
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(...Array.from('ABab01-_.={}"\n\u00e9')), maxLength: 300 }),
  fc
    .array(fc.base64String({ maxLength: 200 }), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join(".")),
);

it("R-6: no text makes a reader throw anything but its refusal, and none is taken", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...readerNames.filter((name) => name !== "public key")),
      anyText,
      (name, text) => {
        assert.equal(takes(name, text), false);
      },
    ),
    { numRuns: 2000 },
  );
});

it("R-6: any 32 bytes are a key or refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 30, maxLength: 34 }), (bytes) => {
      takes("public key", Buffer.from(bytes).toString("base64url"));
    }),
    { numRuns: 500 },
  );
});

const valid = tokenVectors().filter(({ expect }) => expect === "verified");

it("R-6: a token is taken only as the very text that was signed", () => {
  const change = fc.oneof(
    fc.record({
      at: fc.nat(),
      remove: fc.nat({ max: 3 }),
      insert: fc.string({ unit: "binary", maxLength: 3 }),
    }),
    fc.record({
      at: fc.nat(),
      remove: fc.constant(1),
      insert: fc.constantFrom(...Array.from("ABCDwxyz0189-_.")),
    }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...valid), change, ({ kind, token }, { at, remove, insert }) => {
      const from = at % (token.length + 1);
      const changed = token.slice(0, from) + insert + token.slice(from + remove);
      assert.equal(takes(kind, changed), changed === token);
    }),
    { numRuns: 2000 },
  );
});

it("R-6: a token of one kind is taken as no other", () => {
  for (const { kind, token } of valid) {
    for (const name of Object.keys(typeOf))
      assert.equal(takes(name, token), name === kind, `${kind} as ${name}`);
  }
});

it("R-6: a well signed payload of any JSON is refused by its form", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.entries(typeOf)),
      fc.json({ maxDepth: 6 }),
      ([name, typ], payload) => {
        for (const key of [signer, root, execution]) {
          assert.equal(takes(name, signParts(key, headerText(key, typ), payload)), false);
        }
      },
    ),
    { numRuns: 300 },
  );
});

it("R-6: a well signed payload of any bytes is refused by its form", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      assert.equal(
        takes("capability", signParts(signer, headerText(signer, typeOf.capability), Buffer.from(bytes))),
        false,
      );
    }),
    { numRuns: 300 },
  );
});

it("R-7: a claim of another form is refused, whatever it is", () => {
  const good = claimsJson();
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(good)), fc.jsonValue({ maxDepth: 3 }), (name, value) => {
      const isOfForm =
        (name === "iss" && typeof value === "string" && /^[\x20-\x7e]{1,128}$/.test(value)) ||
        ((name === "iat" || name === "exp") &&
          Number.isInteger(value) &&
          Number(value) >= 0 &&
          Number(value) <= 253_402_300_799);
      assert.equal(takes("capability", capabilityOf({ [name]: value })), isOfForm);
    }),
    { numRuns: 1000 },
  );
});

it("R-7: any members beside the claims are refused, at any depth", () => {
  const places = ["", "sbx", "access", "caller", "cnf"] as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...places),
      fc.string({ maxLength: 8 }),
      fc.jsonValue({ maxDepth: 1 }),
      (place, name, value) => {
        const claims = claimsJson();
        const inside = (place === "" ? claims : claims[place]) as object;
        fc.pre(!Object.hasOwn(inside, name));
        const widened = Object.fromEntries([...Object.entries(inside), [name, value]]);
        const payload = place === "" ? widened : { ...claims, [place]: widened };
        const token = signParts(signer, headerText(signer, typeOf.capability), JSON.stringify(payload));
        assert.equal(takes("capability", token), false);
      },
    ),
    { numRuns: 500 },
  );
});
