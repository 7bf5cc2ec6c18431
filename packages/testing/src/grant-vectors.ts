// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { publicKeyText } from "@space/capability";
import { claimsJson, identityJson, issuedAt } from "./vector-identities.ts";
import { execution, seal, signer, stranger, type TokenVector } from "./vector-keys.ts";

/** what says that a sandbox begins with another one's snapshot. */
export function originVectors(): readonly TokenVector[] {
  const parent = "a".repeat(64);
  const origin = { kind: "fork", parentManifest: parent };
  const forked = {
    sbx: identityJson({ generation: "1" }),
    publicKey: publicKeyText(execution.publicKey),
    previous: null,
    restoredFrom: parent,
    origin,
    iat: issuedAt,
  };
  const { sandboxId } = identityJson();
  const grant = { sandboxId, tenantId: `ten_${"t".repeat(16)}`, origin, iat: issuedAt };
  const certificate = (
    name: string,
    change: Readonly<Record<string, unknown>>,
    expect: TokenVector["expect"],
  ): TokenVector => ({
    name,
    rule: "R-5",
    kind: "certificate",
    token: seal("certificate", signer, { ...forked, ...change }),
    expect,
  });
  const granted = (
    name: string,
    change: Readonly<Record<string, unknown>>,
    expect: TokenVector["expect"],
    key = signer,
  ): TokenVector => ({
    name,
    rule: "R-5",
    kind: "origin",
    token: seal("origin", key, { ...grant, ...change }),
    expect,
  });
  const late = { sbx: identityJson({ generation: "2" }), previous: parent };
  return [
    certificate("of a fork", {}, "verified"),
    certificate("of a template's", { origin: { kind: "template", parentManifest: parent } }, "verified"),
    certificate("generation 1 restored without an origin", { origin: { kind: "self" } }, "form"),
    certificate(
      "generation 1 restored from another than its origin",
      { restoredFrom: "b".repeat(64) },
      "form",
    ),
    certificate("an origin that was not restored from", { restoredFrom: null }, "form"),
    certificate("an origin that names nothing", { origin: { kind: "fork" } }, "form"),
    certificate("an origin after generation 1", late, "form"),
    granted("of a fork", {}, "verified"),
    granted("of no parent", { origin: { kind: "self" } }, "form"),
    granted("of no tenant", { tenantId: undefined }, "form"),
    granted("of no sandbox", { sandboxId: "" }, "form"),
    granted("signed by the execution", {}, "key", execution),
    { ...certificate("", {}, "form"), name: "a certificate instead", kind: "origin" },
  ];
}

/** What lets one worker read a snapshot's chunks at another. */
export function handOverVectors(): readonly TokenVector[] {
  const payload = {
    sbx: identityJson(),
    manifest: "a".repeat(64),
    target: `wrk_${"t".repeat(16)}`,
    iat: issuedAt,
    exp: issuedAt + 120,
  };
  const vector = (
    name: string,
    rule: string,
    change: Readonly<Record<string, unknown>>,
    expect: TokenVector["expect"],
    key = signer,
  ): TokenVector => ({
    name,
    rule,
    kind: "handOver",
    token: seal("handOver", key, { ...payload, ...change }),
    expect,
  });
  return [
    vector("of a move", "R-6", {}, "verified"),
    vector("of a life of 121 s", "R-9", { exp: issuedAt + 121 }, "form"),
    vector("over before it begins", "R-9", { exp: issuedAt }, "form"),
    vector("for no worker", "R-7", { target: "gateway" }, "form"),
    vector("for the giver itself", "R-7", { target: identityJson().placement.workerId }, "form"),
    vector("of no manifest", "R-6", { manifest: undefined }, "form"),
    vector("of no execution", "R-6", { sbx: undefined }, "form"),
    vector("with one member more", "R-6", { nbf: issuedAt }, "form"),
    vector("signed by the execution", "R-10", {}, "key", execution),
    vector("signed by a stranger", "R-10", {}, "key", stranger),
    {
      ...vector("", "R-6", {}, "form"),
      name: "a capability instead",
      token: seal("capability", signer, claimsJson()),
    },
  ];
}
