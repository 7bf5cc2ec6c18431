// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type Digest, isSpaceError, manifestVersion, parseDigest } from "@space/model";
import { signCertificate } from "./certificate.ts";
import { type ChainExport, chainExportToText, parseChainExport, verifyChainExport } from "./chain-export.ts";
import { type ChainHead, signChainHead } from "./chain-head.ts";
import { certificateDigest, manifestDigest } from "./digest.ts";
import { newSigningKey, type SigningKey } from "./keys.ts";
import { countersignManifest, signManifest } from "./manifest.ts";
import {
  bundle,
  certificate,
  identity,
  nowSeconds,
  otherSandboxId,
  sandboxId,
  signPayload,
  tenantKeyId,
} from "./signed.fixture.ts";

const root = newSigningKey();
/** Signed the first generation and was removed; signed the second and was revoked; signs now. */
const [first, second, current] = [newSigningKey(), newSigningKey(), newSigningKey()];
const bundles = [
  bundle(root, 1, [first]),
  bundle(root, 2, [first, second]),
  bundle(root, 4, [second, current]),
  bundle(root, 5, [current]),
];

interface Made {
  readonly certificates: readonly string[];
  readonly manifests: readonly string[];
  readonly head: ChainHead;
}

/** Two generations, each with a snapshot, signed by keys that count no more. */
function make(sandbox = sandboxId): Made {
  const executions = [newSigningKey(), newSigningKey()] as const;
  const one = signCertificate(
    first,
    certificate({ key: executions[0], identity: identity(1, { sandbox }), previous: null }),
  );
  const oldest = snapshot(executions[0], first, {
    of: identity(1, { sandbox }),
    certificate: one,
    previous: null,
  });
  const two = signCertificate(
    second,
    certificate({
      key: executions[1],
      identity: identity(2, { sandbox }),
      previous: certificateDigest(one),
      restoredFrom: oldest.digest,
    }),
  );
  const newest = snapshot(executions[1], second, {
    of: identity(2, { sandbox }),
    certificate: two,
    previous: oldest.digest,
  });
  const head = { sandboxId: sandbox, certificate: certificateDigest(two), manifest: newest.digest };
  return {
    certificates: [two, one],
    manifests: [newest.token, oldest.token],
    head: { ...head, issuedAtSeconds: nowSeconds },
  };
}

function snapshot(
  execution: SigningKey,
  by: SigningKey,
  what: { of: ReturnType<typeof identity>; certificate: string; previous: Digest | null },
): { readonly token: string; readonly digest: Digest } {
  const signed = signManifest(execution, {
    version: manifestVersion,
    identity: what.of,
    certificate: certificateDigest(what.certificate),
    previousManifest: what.previous,
    chain: parseDigest("c".repeat(64)),
    keyId: tenantKeyId,
    substrate: "namespace",
    memory: "none",
    filesystem: [],
    createdAtSeconds: nowSeconds,
  });
  return { token: countersignManifest(by, signed), digest: manifestDigest(signed) };
}

const made = make();

function exported(change: Partial<ChainExport> = {}): ChainExport {
  const { certificates, manifests, head } = made;
  return { sandboxId, head: signChainHead(current, head), bundles, certificates, manifests, ...change };
}

const headed = (change: Partial<ChainHead>, key = current): Partial<ChainExport> => ({
  head: signChainHead(key, { ...made.head, ...change }),
});

function refuses(chain: ChainExport, link: string, problem: string): void {
  assert.throws(
    () => verifyChainExport(chain, root.publicKey),
    (error) => {
      assert.ok(isSpaceError(error, "chain/refused"), String(error));
      assert.deepEqual(error.details, { link, problem });
      return true;
    },
  );
}

it("R-5, R-10: a chain verifies with the root's public key alone, also where the keys that signed it were removed", () => {
  const verified = verifyChainExport(parseChainExport(chainExportToText(exported())), root.publicKey);
  assert.deepEqual(
    verified.links.map(({ certificate: { identity: of } }) => of.generation),
    [2n, 1n],
  );
  assert.equal(verified.bundleVersion, 5);
  assert.deepEqual(verified.headSigner, { kid: current.kid, isCurrent: true });
  assert.deepEqual(verified.certificateSigners, [
    { kid: second.kid, isCurrent: false },
    { kid: first.kid, isCurrent: false },
  ]);
  assert.deepEqual(
    verified.manifestOrder.map(({ signer }) => signer.kid),
    [second.kid, first.kid],
  );
});

it("R-5: a sandbox that was never paused has a chain without manifests", () => {
  const certificates = made.certificates.slice(1);
  const head = { certificate: certificateDigest(certificates[0] ?? ""), manifest: null };
  verifyChainExport(exported({ certificates, manifests: [], ...headed(head) }), root.publicKey);
});

it("R-5: another root's chain is refused", () => {
  assert.throws(() => verifyChainExport(exported(), newSigningKey().publicKey), {
    details: { link: "bundle 1 of 4", problem: "key" },
  });
  refuses(exported({ bundles: [...bundles, bundle(newSigningKey(), 9, [first])] }), "bundle 5 of 5", "key");
  refuses(exported({ bundles: [...bundles, "x"] }), "bundle 5 of 5", "form");
  refuses(exported({ bundles: [...bundles, bundle(root, 5, [first])] }), "bundles", "repeated version");
});

it("R-10: the head counts only under a key of the newest bundle", () => {
  refuses(exported(headed({}, second)), "head", "key");
  refuses(exported(headed({}, first)), "head", "key");
  refuses(exported({ bundles: bundles.slice(0, 2) }), "head", "key");
  refuses(exported({ bundles: [] }), "head", "key");
  refuses(exported({ head: `${exported().head.slice(0, -86)}${"A".repeat(86)}` }), "head", "signature");
  refuses(exported({ head: made.certificates[0] ?? "" }), "head", "form");
});

it("R-10: a link whose key no bundle holds is refused by its place", () => {
  refuses(exported({ bundles: bundles.slice(2) }), "certificate 2 of 2", "key");
  refuses(exported({ bundles: [bundles[0] ?? "", bundles[3] ?? ""] }), "certificate 1 of 2", "key");
});

it("R-5: a chain whose newest certificate or snapshot was left out does not reach its head", () => {
  refuses(
    exported({ certificates: made.certificates.slice(1), manifests: [] }),
    "certificate 1 of 1",
    "is not the head",
  );
  refuses(exported({ certificates: made.certificates.slice(1) }), "manifest 1 of 2", "key");
  refuses(exported({ manifests: made.manifests.slice(1) }), "manifest 1 of 1", "is not the head");
  refuses(exported({ manifests: [] }), "certificate 1 of 2", "restored from none of these");
  const certificates = made.certificates.slice(1);
  const head = { certificate: certificateDigest(certificates[0] ?? "") };
  refuses(exported({ certificates, manifests: [], ...headed(head) }), "head", "its manifest is missing");
});

it("R-5: a chain that was cut at its beginning, reordered, doubled or altered is refused by the link", () => {
  const [two = "", one = ""] = made.certificates;
  const [newest = "", oldest = ""] = made.manifests;
  refuses(exported({ certificates: [two] }), "certificate 1 of 1", "beginning is missing");
  refuses(exported({ certificates: [one, two] }), "certificate 1 of 2", "previous is another");
  refuses(exported({ certificates: [two, two, one] }), "certificate 1 of 3", "previous is another");
  refuses(exported({ manifests: [oldest, newest] }), "manifest 1 of 2", "is not the head");
  refuses(exported({ manifests: [newest, newest, oldest] }), "manifest 2 of 3", "repeated manifest");
  refuses(exported({ manifests: [newest] }), "manifest 1 of 1", "previous is missing");
  const at = one.indexOf(".") + 20;
  const altered = `${one.slice(0, at)}${one[at] === "A" ? "B" : "A"}${one.slice(at + 1)}`;
  refuses(exported({ certificates: [two, altered] }), "certificate 2 of 2", "signature");
});

it("R-5: another sandbox's links, head or name are refused", () => {
  const other = make(otherSandboxId);
  refuses(exported({ sandboxId: otherSandboxId }), "head", "other sandbox");
  refuses(exported(headed({ sandboxId: otherSandboxId })), "head", "other sandbox");
  const { certificates, manifests } = other;
  refuses(exported({ certificates, manifests }), "certificate 1 of 2", "other sandbox");
  const [two = ""] = made.certificates;
  refuses(
    exported({ certificates: [two, certificates[1] ?? ""] }),
    "certificate 1 of 2",
    "previous is another",
  );
  refuses(
    exported({ manifests: [made.manifests[0] ?? "", manifests[1] ?? ""] }),
    "manifest 2 of 2",
    "key", // of an execution that is not in this chain
  );
});

it("R-5: manifests beside the line that ends at the head are refused", () => {
  const execution = newSigningKey();
  const one = signCertificate(first, certificate({ key: execution, identity: identity(1), previous: null }));
  const of = { of: identity(1), certificate: one, previous: null };
  const [a, b] = [snapshot(execution, first, of), snapshot(execution, first, { ...of, of: identity(1) })];
  assert.equal(a.digest, b.digest, "equal statements are one manifest");
  const side = snapshot(execution, first, { ...of, previous: a.digest });
  const head = { certificate: certificateDigest(one), manifest: a.digest };
  const chain = exported({ certificates: [one], manifests: [a.token, side.token], ...headed(head) });
  refuses(chain, "manifest 1 of 2", "previous is another");
});

it("R-5: what is no export is refused as a whole, and nothing else is thrown", () => {
  const text = chainExportToText(exported());
  const change = (edit: (value: Record<string, unknown>) => void): string => {
    const value = JSON.parse(text) as Record<string, unknown>; // cast: our own text
    edit(value);
    return JSON.stringify(value);
  };
  for (const bad of [
    "",
    "null",
    "[]",
    text.slice(0, -3),
    change((value) => (value["format"] = "space-identity-chain/2")),
    change((value) => (value["more"] = 1)),
    change((value) => delete value["head"]),
    change((value) => (value["head"] = null)),
    change((value) => (value["sandboxId"] = "x")),
    change((value) => (value["certificates"] = "x")),
    change((value) => (value["manifests"] = [1])),
  ]) {
    assert.throws(() => parseChainExport(bad), { code: "chain/refused" }, bad.slice(0, 40));
  }
});

it("R-5: a head of another form is refused", () => {
  const whole = { sandboxId, certificate: "a".repeat(64), manifest: null, iat: nowSeconds };
  const signed = (payload: object): string =>
    signPayload(current, JSON.stringify(payload), "space-chain-head+jwt");
  for (const payload of [
    { ...whole, sandboxId: "x" },
    { ...whole, certificate: null },
    { ...whole, manifest: "x" },
    { ...whole, iat: -1 },
    { ...whole, more: 1 },
    {},
  ]) {
    refuses(exported({ head: signed(payload) }), "head", "form");
  }
  refuses(exported({ head: signed(whole) }), "certificate 1 of 2", "is not the head");
  assert.throws(
    () => signChainHead(current, { ...made.head, certificate: "x" as Digest }), // cast: to be refused
    { code: "input/invalid" },
  );
});
