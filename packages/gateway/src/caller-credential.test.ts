// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallerCredential } from "@space/model";
import { controlCredential, type ShownCredential } from "./caller-credential.ts";

function shown(method: string, path: string, token?: string): ShownCredential {
  const outcome = controlCredential(method, path, token);
  return outcome.kind === "shown" ? outcome.shown : assert.fail(outcome.kind);
}

function signature(credential: CallerCredential): Extract<CallerCredential, { kind: "file-signature" }> {
  return credential.kind === "file-signature" ? credential : assert.fail(credential.kind);
}

test("a token is the credential", () => {
  const { credential } = shown("POST", "/process.Process/Start", "tok");
  assert.equal(credential.kind === "access-token" && credential.token.reveal(), "tok");
});

test("absent credentials are refused first, but for GET /health (incident 25)", () => {
  for (const [method, path] of [
    ["POST", "/process.Process/Start"],
    ["GET", "/metrics"],
    ["GET", "/files"],
    ["GET", "/files?path=a"],
    ["GET", "/files?path=a&signature="],
    ["POST", "/health"],
    ["GET", "/healthy"],
    ["POST", "/files/compose?signature=x"],
  ] as const)
    assert.equal(controlCredential(method, path, undefined).kind, "missing", path);
  assert.equal(shown("GET", "/health").credential.kind, "none");
  assert.equal(shown("GET", "/health", "wrong").credential.kind, "none");
});

test("a signed file URL is read whole", () => {
  const url = "/files?path=a%20b&username=user&signature=v1_x%2By&signature_expiration=99";
  const credential = signature(shown("GET", url).credential);
  assert.deepEqual(
    { ...credential, signature: credential.signature.reveal() },
    {
      kind: "file-signature",
      operation: "read",
      path: "a b",
      username: "user",
      signature: "v1_x+y",
      expiresAtSeconds: 99,
    },
  );
  assert.equal(signature(shown("POST", "/files?signature=s").credential).operation, "write");
  assert.equal(signature(shown("POST", "/files?signature=s").credential).expiresAtSeconds, undefined);
});

test("the header wins over a signature", () => {
  assert.equal(shown("GET", "/files?path=a&signature=s", "tok").credential.kind, "access-token");
});

test("a signed parameter given twice, or a strange expiry, is refused", () => {
  for (const query of ["path=a&path=b", "username=a&username=b", "signature=t", "signature_expiration=1e3"]) {
    const outcome = controlCredential("GET", `/files?signature=s&${query}`, undefined);
    assert.equal(outcome.kind, "bad", query);
  }
});

test("R-23: different credentials never share a cache text", () => {
  const texts = [
    shown("GET", "/health"),
    shown("GET", "/files", "n"),
    shown("GET", "/files", 'f["read","a","","s",null]'),
    shown("GET", "/files?path=a&signature=s"),
    shown("POST", "/files?path=a&signature=s"),
    shown("GET", "/files?path=b&signature=s"),
    shown("GET", "/files?path=a&username=u&signature=s"),
    shown("GET", "/files?path=a&signature=s&signature_expiration=1"),
  ].map(({ cacheText }) => cacheText);
  assert.equal(new Set(texts).size, texts.length);
});
