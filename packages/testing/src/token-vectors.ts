// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHmac } from "node:crypto";
import { certificateDigest, countersignManifest, publicKeyText, type SigningKey } from "@space/capability";
import { headerText, signParts } from "./fixed-keys.ts";
import { handOverVectors, originVectors } from "./grant-vectors.ts";
import { claimsJson, identityJson, issuedAt, portAccess } from "./vector-identities.ts";
import {
  execution,
  root,
  type StatementKind,
  seal,
  signer,
  stranger,
  successor,
  type TokenVector,
  text,
  typeOf,
} from "./vector-keys.ts";

const entry = ({ kid, publicKey }: SigningKey): object => ({ kid, publicKey: publicKeyText(publicKey) });
const bundlePayload = { version: 3, iat: issuedAt, keys: [entry(signer), entry(successor)] };
/** The bundle that every other vector is verified with. */
export const bundle: string = seal("bundle", root, bundlePayload);

const controlToken = seal("capability", signer, claimsJson());
const [header = "", payload = "", signature = ""] = controlToken.split(".");

function capability(name: string, rule: string, token: string, expect: TokenVector["expect"]): TokenVector {
  return { name, rule, kind: "capability", token, expect };
}

const capabilityOf = (change: Readonly<Record<string, unknown>>): string =>
  seal("capability", signer, claimsJson(change));

function validCapabilities(): readonly TokenVector[] {
  const reversed = Object.fromEntries(Object.entries(claimsJson()).reverse());
  const pod = {
    ...identityJson(),
    placement: { workerId: `wrk_${"w".repeat(16)}`, substrate: "kubernetes", podUid: "4f2a-1" },
  };
  return [
    capability("control", "R-7", controlToken, "verified"),
    capability("service port", "R-17", capabilityOf({ access: portAccess }), "verified"),
    capability(
      "signed by another key of the bundle",
      "R-10",
      seal("capability", successor, claimsJson()),
      "verified",
    ),
    capability("claims in another order", "R-6", seal("capability", signer, reversed), "verified"),
    capability("a pod", "R-2", capabilityOf({ sbx: pod }), "verified"),
    capability(
      "a lifetime of 121 s: well signed, refused by its time",
      "R-9",
      capabilityOf({ exp: issuedAt + 121 }),
      "verified",
    ),
  ];
}

function illFormedTokens(): readonly TokenVector[] {
  const form = (name: string, token: string): TokenVector => capability(name, "R-6", token, "form");
  const withHeader = (name: string, members: object): TokenVector =>
    form(name, signParts(signer, text(members), text(claimsJson())));
  const { kid } = signer;
  const typ = typeOf.capability;
  const raw = text(claimsJson());
  const signRaw = (changed: string | Buffer): string => signParts(signer, headerText(signer, typ), changed);
  return [
    form("empty", ""),
    form("two parts", `${header}.${payload}`),
    form("four parts", `${controlToken}.${signature}`),
    form("more than 4096 bytes", capabilityOf({ iss: "x".repeat(3000) })),
    form("padding", `${controlToken}==`),
    form("white space", `${header}.${payload} .${signature}`),
    form("standard base64 alphabet", `${header}.${payload}.${signature.slice(0, -2)}+${signature.slice(-1)}`),
    form("bits left over in the last character", `${header}.${payload}.${signature.slice(0, -1)}B`),
    form("short signature", controlToken.slice(0, -4)),
    form("not ASCII", `${header}.${payload}\u00e9.${signature}`),
    withHeader("alg none", { alg: "none", typ, kid }),
    withHeader("alg HS256", { alg: "HS256", typ, kid }),
    form("HS256 with the public key as its secret", hmacWithPublicKey()),
    withHeader("alg Ed25519", { alg: "Ed25519", typ, kid }),
    withHeader("no typ", { alg: "EdDSA", kid }),
    withHeader("typ of a certificate", { alg: "EdDSA", typ: typeOf.certificate, kid }),
    withHeader("no kid", { alg: "EdDSA", typ }),
    withHeader("header with a key", {
      alg: "EdDSA",
      typ,
      kid,
      jwk: { kty: "OKP", crv: "Ed25519", x: publicKeyText(signer.publicKey) },
    }),
    withHeader("header with crit", { alg: "EdDSA", typ, kid, crit: ["exp"] }),
    withHeader("header in another order", { typ, alg: "EdDSA", kid }),
    form("duplicate claim", signRaw(raw.replace("{", '{"iss":"other",'))),
    form("duplicate claim, escaped", signRaw(raw.replace("{", '{"\\u0069ss":"other",'))),
    form("duplicate member deep inside", signRaw(raw.replace('"attempt":1', '"attempt":2,"attempt":1'))),
    form("white space in the payload", signRaw(JSON.stringify(claimsJson(), null, 1))),
    form("number with a fraction of zero", signRaw(raw.replace(String(issuedAt), `${issuedAt}.0`))),
    form("not UTF-8", signRaw(Buffer.from(raw.replace("key_1", "key_\u00ff"), "latin1"))),
    form("byte order mark", signRaw(`\ufeff${raw}`)),
    form("not JSON", signRaw(raw.slice(0, -1))),
    form("an array", signRaw(`[${raw}]`)),
  ];
}

/** What a verifier takes that lets the header choose the algorithm. */
function hmacWithPublicKey(): string {
  const forged = Buffer.from(text({ alg: "HS256", typ: typeOf.capability, kid: signer.kid })).toString(
    "base64url",
  );
  const secret = Buffer.from(publicKeyText(signer.publicKey), "base64url");
  const mac = createHmac("sha256", secret).update(`${forged}.${payload}`).digest("base64url");
  return `${forged}.${payload}.${mac}`;
}

function illFormedClaims(): readonly TokenVector[] {
  const changes: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    "unknown claim": { nbf: issuedAt },
    "missing claim": { jti: undefined },
    "empty issuer": { iss: "" },
    "iat as a text": { iat: String(issuedAt) },
    "exp with a fraction": { exp: issuedAt + 0.5 },
    "generation as a number": { sbx: { ...identityJson(), generation: 7 } },
    "generation 0": { sbx: identityJson({ generation: "0" }) },
    "generation with a leading zero": { sbx: identityJson({ generation: "07" }) },
    "attempt 0": { sbx: identityJson({ attempt: 0 }) },
    "an address in the identity": { sbx: { ...identityJson(), address: "10.0.0.1" } },
    "unknown substrate": {
      sbx: { ...identityJson(), placement: { workerId: `wrk_${"w".repeat(16)}`, substrate: "docker" } },
    },
    "no scope": { access: { purpose: "control", scopes: [] } },
    "unknown scope": { access: { purpose: "control", scopes: ["files:all"] } },
    "scope twice": { access: { purpose: "control", scopes: ["pty", "pty"] } },
    "both purposes": { access: { ...portAccess, scopes: ["pty"] } },
    "port 0": { access: { ...portAccess, port: 0 } },
    "port 65536": { access: { ...portAccess, port: 65_536 } },
    "unknown protocol": { access: { ...portAccess, protocol: "smtp" } },
    "principal beyond ASCII": { caller: { tenantId: `ten_${"e".repeat(16)}`, principal: "\u00e9" } },
    "thumbprint of 31 bytes": { cnf: { "x5t#S256": Buffer.alloc(31).toString("base64url") } },
    "another confirmation": { cnf: { jkt: "x" } },
  };
  return Object.entries(changes).map(([name, change]) =>
    capability(name, "R-7", capabilityOf(change), "form"),
  );
}

function forgedCapabilities(): readonly TokenVector[] {
  const changed = Buffer.from(text(claimsJson({ exp: issuedAt + 119 }))).toString("base64url");
  const byStranger = signParts(stranger, headerText(signer, typeOf.capability), text(claimsJson()));
  return [
    capability("unknown key", "R-10", seal("capability", stranger, claimsJson()), "key"),
    capability("signed by the root", "R-10", seal("capability", root, claimsJson()), "key"),
    capability("signed by another key under this kid", "R-6", byStranger, "signature"),
    capability("changed claims", "R-6", `${header}.${changed}.${signature}`, "signature"),
    capability("signature of zeros", "R-6", `${header}.${payload}.${"A".repeat(86)}`, "signature"),
    capability(
      "S above the group's order",
      "R-6",
      `${header}.${payload}.${malleable(signature)}`,
      "signature",
    ),
  ];
}

/** The same signature with S + L: a verifier that does not bound S takes it for valid. */
function malleable(original: string): string {
  const order = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
  const bytes = Buffer.from(original, "base64url");
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
  const encoded = Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse();
  return Buffer.concat([bytes.subarray(0, 32), encoded]).toString("base64url");
}

function bundles(): readonly TokenVector[] {
  const vector = (
    name: string,
    token: string,
    expect: TokenVector["expect"],
    minVersion = 1,
  ): TokenVector => ({
    name,
    rule: "R-10",
    kind: "bundle",
    token,
    expect,
    minVersion,
  });
  const of = (change: object): string => seal("bundle", root, { ...bundlePayload, ...change });
  const smallOrder = Buffer.alloc(32).toString("base64url");
  return [
    vector("of this version", bundle, "verified", 3),
    vector("rolled back", bundle, "older version", 4),
    vector("signed by a signer", seal("bundle", signer, bundlePayload), "key"),
    vector("changed", `${bundle.slice(0, -86)}${"A".repeat(86)}`, "signature"),
    vector("version 0", of({ version: 0 }), "form"),
    vector("key id of another key", of({ keys: [{ ...entry(signer), kid: successor.kid }] }), "form"),
    vector("key of small order", of({ keys: [{ kid: signer.kid, publicKey: smallOrder }] }), "form"),
    vector("key twice", of({ keys: [entry(signer), entry(signer)] }), "repeated key"),
  ];
}

function otherStatements(): readonly TokenVector[] {
  const certificatePayload = {
    sbx: identityJson({ generation: "1" }),
    publicKey: publicKeyText(execution.publicKey),
    previous: null,
    restoredFrom: null,
    origin: { kind: "self" },
    iat: issuedAt,
  };
  const certificate = seal("certificate", signer, certificatePayload);
  const digest = certificateDigest(certificate);
  const manifestPayload = {
    version: 3,
    sbx: identityJson({ generation: "1" }),
    certificate: digest,
    previousManifest: null,
    chain: "1".repeat(64),
    keyId: `tky_${"k".repeat(26)}`,
    substrate: "namespace",
    memory: "none",
    filesystem: [{ digest: "0".repeat(64), sizeBytes: 1024 }],
    iat: issuedAt + 60,
  };
  const manifest = seal("manifest", execution, manifestPayload);
  const vector = (
    kind: StatementKind,
    name: string,
    rule: string,
    token: string,
    expect: TokenVector["expect"],
  ): TokenVector => ({ name, rule, kind, token, expect });
  const retirementPayload = { sbx: identityJson(), iat: issuedAt };
  return [
    vector("certificate", "of generation 1", "R-5", certificate, "verified"),
    vector("certificate", "a capability instead", "R-6", controlToken, "form"),
    vector(
      "certificate",
      "generation 1 with a previous one",
      "R-5",
      seal("certificate", signer, { ...certificatePayload, previous: digest }),
      "form",
    ),
    vector(
      "certificate",
      "execution key of small order",
      "R-5",
      seal("certificate", signer, {
        ...certificatePayload,
        publicKey: Buffer.alloc(32).toString("base64url"),
      }),
      "form",
    ),
    vector(
      "certificate",
      "signed by a stranger",
      "R-12",
      seal("certificate", stranger, certificatePayload),
      "key",
    ),
    vector(
      "retirement",
      "of one execution",
      "R-12",
      seal("retirement", signer, retirementPayload),
      "verified",
    ),
    vector("retirement", "a certificate instead", "R-6", certificate, "form"),
    vector(
      "retirement",
      "signed by a stranger",
      "R-12",
      seal("retirement", stranger, retirementPayload),
      "key",
    ),
    vector("manifest", "signed by the execution", "R-5", manifest, "verified"),
    vector(
      "manifest",
      "signed by the control plane",
      "R-5",
      seal("manifest", signer, manifestPayload),
      "key",
    ),
    vector(
      "manifest",
      "of another substrate than the execution's",
      "R-5",
      seal("manifest", execution, { ...manifestPayload, substrate: "qemu" }),
      "form",
    ),
    vector("countersigned", "by the control plane", "R-5", countersignManifest(signer, manifest), "verified"),
    vector("countersigned", "by the execution", "R-5", countersignManifest(execution, manifest), "key"),
    vector("countersigned", "the manifest itself", "R-6", manifest, "form"),
  ];
}

/** Every token with what a verifier must say. */
export function tokenVectors(): readonly TokenVector[] {
  return [
    ...validCapabilities(),
    ...illFormedTokens(),
    ...illFormedClaims(),
    ...forgedCapabilities(),
    ...bundles(),
    ...otherStatements(),
    ...originVectors(),
    ...handOverVectors(),
  ];
}

/** A capability with these claims, signed by the installation's key. */
export { capabilityOf, execution, root, type StatementKind, signer, successor, type TokenVector, typeOf };
