// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError, members } from "@space/model";
import { openToken, sealToken, type TokenKind } from "./jws.ts";
import { newSigningKey } from "./keys.ts";
import { headerText, signTexts } from "./signed.fixture.ts";

const key = newSigningKey();
const find = (kid: string): typeof key.publicKey | undefined => (kid === key.kid ? key.publicKey : undefined);
const kind: TokenKind<unknown> = {
  typ: "space-test+jwt",
  limitBytes: 400,
  read: (payload) => members(payload, "test", ["a"])["a"],
};
const header = headerText(key, kind.typ);
const { token } = sealToken(kind, key, { a: 1 });
const [headerPart = "", payloadPart = "", signaturePart = ""] = token.split(".");

const opens = (text: string): unknown => openToken(kind, text, find);
const form = { kind: "refused", reason: "form" };
/** Nobody's key is asked for when the form is wrong. */
const opensWithoutKeys = (text: string): unknown =>
  openToken(kind, text, () => {
    throw new Error("a key was touched");
  });

it("R-6: opens what it sealed, with the key that signed", () => {
  assert.deepEqual(opens(token), { kind: "opened", value: 1, kid: key.kid });
  assert.deepEqual(opens(signTexts(key, header, '{"a":1}')), { kind: "opened", value: 1, kid: key.kid });
});

it("R-6: the size limit comes first", () => {
  const payload = JSON.stringify({ a: "x".repeat(100) });
  const long = signTexts(key, header, payload);
  const limited = { ...kind, limitBytes: long.length };
  assert.equal(openToken(limited, long, find).kind, "opened");
  assert.deepEqual(openToken({ ...limited, limitBytes: long.length - 1 }, long, find), form);
  assert.throws(
    () => sealToken({ ...kind, limitBytes: 100 }, key, { a: 1 }),
    (error) => isSpaceError(error, "input/too-large"),
  );
});

for (const [what, text] of Object.entries({
  nothing: "",
  "one part": headerPart,
  "two parts": `${headerPart}.${payloadPart}`,
  "four parts": `${token}.`,
  "a JSON serialisation": JSON.stringify({
    protected: headerPart,
    payload: payloadPart,
    signature: signaturePart,
  }),
  "an empty header": `.${payloadPart}.${signaturePart}`,
  "no signature": `${headerPart}.${payloadPart}.`,
  "a short signature": token.slice(0, -2),
  "a long signature": `${token}AA`,
  "a signature with padding": `${token}==`,
  "bits left over in the signature": `${token.slice(0, -1)}${token.endsWith("A") ? "B" : String.fromCharCode(token.charCodeAt(token.length - 1) + 1)}`,
  "white space around it": ` ${token}`,
  "white space inside": `${headerPart}. ${payloadPart}.${signaturePart}`,
  "a line end": `${token}\n`,
  "standard base64": `${headerPart}.${payloadPart.slice(0, -1)}+.${signaturePart}`,
  "letters beyond ASCII": `${headerPart}.${payloadPart}\u0100.${signaturePart}`,
  "a null character": `${headerPart}\0.${payloadPart}.${signaturePart}`,
})) {
  it(`R-6: refuses ${what} before a key is touched`, () => {
    assert.deepEqual(opensWithoutKeys(text), form);
  });
}

for (const [what, text] of Object.entries({
  "no algorithm": '{"alg":"none","typ":"space-test+jwt","kid":"KID"}',
  "another algorithm": '{"alg":"HS256","typ":"space-test+jwt","kid":"KID"}',
  "RFC 9864's name of the algorithm": '{"alg":"Ed25519","typ":"space-test+jwt","kid":"KID"}',
  "the algorithm in lower case": '{"alg":"eddsa","typ":"space-test+jwt","kid":"KID"}',
  "another type": '{"alg":"EdDSA","typ":"space-cap+jwt","kid":"KID"}',
  "no type": '{"alg":"EdDSA","kid":"KID"}',
  "no key id": '{"alg":"EdDSA","typ":"space-test+jwt"}',
  "an unknown member": '{"alg":"EdDSA","typ":"space-test+jwt","kid":"KID","x":1}',
  "a critical extension": '{"alg":"EdDSA","typ":"space-test+jwt","kid":"KID","crit":["b64"],"b64":false}',
  "a key": '{"alg":"EdDSA","typ":"space-test+jwt","kid":"KID","jwk":{}}',
  "a member twice": '{"alg":"EdDSA","alg":"EdDSA","typ":"space-test+jwt","kid":"KID"}',
  "another order": '{"typ":"space-test+jwt","alg":"EdDSA","kid":"KID"}',
  "white space": '{"alg": "EdDSA","typ":"space-test+jwt","kid":"KID"}',
  "a key id of another form": '{"alg":"EdDSA","typ":"space-test+jwt","kid":"x"}',
  "a key id of other letters": `{"alg":"EdDSA","typ":"space-test+jwt","kid":"${".".repeat(43)}"}`,
  "no object": '"EdDSA"',
  nothing: "",
})) {
  it(`R-6: refuses a header with ${what} before a key is touched`, () => {
    assert.deepEqual(opensWithoutKeys(signTexts(key, text.replace("KID", key.kid), '{"a":1}')), form);
  });
}

it("R-6: refuses a key id that it does not know", () => {
  const other = newSigningKey();
  assert.deepEqual(opens(sealToken(kind, other, { a: 1 }).token), { kind: "refused", reason: "key" });
});

it("R-6: refuses a signature of another key, of other bytes, and of another kind of statement", () => {
  const signature = { kind: "refused", reason: "signature" };
  const forged = signTexts(newSigningKey(), header, '{"a":1}');
  const changed = `${headerPart}.${Buffer.from('{"a":2}').toString("base64url")}.${signaturePart}`;
  const otherKind = sealToken({ ...kind, typ: "space-othr+jwt" }, key, { a: 1 }).token.split(".");
  for (const text of [forged, changed, `${headerPart}.${otherKind[1]}.${otherKind[2]}`]) {
    assert.deepEqual(opens(text), signature);
  }
});

it("R-6: refuses a signature with S + L", () => {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const bytes = Buffer.from(signaturePart, "base64url");
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
  const malleable = Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse(),
  ]);
  assert.deepEqual(opens(`${headerPart}.${payloadPart}.${malleable.toString("base64url")}`), {
    kind: "refused",
    reason: "signature",
  });
});

it("R-6: refuses a well signed payload that is not of its form", () => {
  for (const payload of [
    "",
    "{}",
    '{"a":1,"b":2}',
    '{"a":1,"a":1}',
    '{"a": 1}',
    Buffer.from([0xff]),
    "[1]",
    "null",
  ]) {
    assert.deepEqual(opens(signTexts(key, header, payload)), form, String(payload));
  }
});

it("a bug in a reader stays a bug", () => {
  const bug = new RangeError("bug");
  const fail = (): never => {
    throw bug;
  };
  assert.throws(() => openToken({ ...kind, read: fail }, token, find), bug);
});

it("R-6: says at once what its reader will see, for every value that JSON has", () => {
  const whole: TokenKind<unknown> = { ...kind, read: (payload) => payload };
  for (const a of [
    null,
    true,
    -1.5,
    "",
    "é\u0000\ud83d\ude00",
    "\ud800",
    [1, { b: [] }],
    { __proto__: null, b: 1 },
  ]) {
    const sealed = sealToken(whole, key, { a });
    const opened = openToken(whole, sealed.token, find);
    assert.deepEqual(opened.kind === "opened" && JSON.stringify(opened.value), JSON.stringify(sealed.value));
  }
});

it("signs one header with each key, and for each kind its own", () => {
  const other = { ...kind, typ: "space-othr+jwt" };
  const twice = [
    sealToken(kind, key, { a: 1 }),
    sealToken(other, key, { a: 1 }),
    sealToken(kind, key, { a: 1 }),
  ];
  const types = twice.map((sealed) => Buffer.from(sealed.token.split(".")[0] ?? "", "base64url").toString());
  assert.deepEqual(types, [header, headerText(key, other.typ), header]);
});

it("signs nothing that a verifier would refuse by its form", () => {
  assert.throws(
    () => sealToken(kind, key, { b: 1 }),
    (error) => isSpaceError(error, "input/invalid"),
  );
});
