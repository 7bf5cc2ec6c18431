// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import {
  certificateDigest,
  countersignManifest,
  manifestDigest,
  newSigningKey,
  publicKeyText,
  type SealedLink,
  sealedObjectDigest,
  sealedObjectToBytes,
  signCertificate,
  signKeyBundle,
  signManifest,
} from "@space/capability";
import {
  type Digest,
  freezeIdentity,
  manifestVersion,
  parseActivationId,
  parseGeneration,
  parseSandboxId,
  parseWorkerId,
} from "@space/model";
import { DirectoryObjectStore } from "@space/object-store";
import { explain } from "../failure.ts";
import { chain } from "./chain.ts";

const root = newSigningKey();
const signer = newSigningKey();
const keys = [{ kid: signer.kid, publicKey: publicKeyText(signer.publicKey) }];
const bundle = signKeyBundle(root, { version: 1, issuedAtSeconds: 1_800_000_000, keys });
const sandboxId = parseSandboxId(`i${"s".repeat(20)}`);

let data = "";
/** Each snapshot's digest, the oldest first, and the objects of its chain. */
let snapshots: Digest[] = [];
let sealed: Digest[] = [];

/** What an installation leaves of a sandbox that was paused three times: its objects, and the root's public key. */
beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), "space-chain-"));
  [snapshots, sealed] = [[], []];
  mkdirSync(join(data, "control"));
  writeFileSync(join(data, "control/root.pub"), `${publicKeyText(root.publicKey)}\n`);
  const objects = await DirectoryObjectStore.open(join(data, "objects"));
  let previous: Digest | null = null;
  let pending: SealedLink[] = [];
  for (const generation of ["1", "2", "3"]) {
    const key = newSigningKey();
    const identity = freezeIdentity({
      sandboxId,
      generation: parseGeneration(generation),
      placement: { workerId: parseWorkerId(`wrk_${"w".repeat(16)}`), substrate: "namespace" },
      activation: {
        id: parseActivationId(`act_${generation === "1" ? "a".repeat(26) : "b".repeat(26)}`),
        attempt: 1,
      },
    });
    const certificate: string = signCertificate(signer, {
      identity,
      publicKey: publicKeyText(key.publicKey),
      previous,
      restoredFrom: snapshots.at(-1) ?? null,
      origin: { kind: "self" },
      issuedAtSeconds: 1_800_000_000,
    });
    previous = certificateDigest(certificate);
    const links = [...pending, { certificate }];
    const bytes = sealedObjectToBytes({
      sandboxId,
      previous: sealed.at(-1) ?? null,
      bundles: [bundle],
      links,
    });
    const object = sealedObjectDigest(bytes);
    await objects.put(object, bytes);
    sealed.push(object);
    const signed = signManifest(key, {
      version: manifestVersion,
      identity,
      certificate: previous,
      previousManifest: snapshots.at(-1) ?? null,
      chain: object,
      substrate: "namespace",
      memory: "none",
      filesystem: [],
      createdAtSeconds: 1_800_000_000,
    });
    pending = [{ manifest: countersignManifest(signer, signed) }];
    snapshots.push(manifestDigest(signed));
    await objects.put(manifestDigest(signed), Buffer.from(signed));
  }
});

afterEach(() => rmSync(data, { recursive: true, force: true }));

async function run(...args: readonly string[]): Promise<string> {
  let text = "";
  await chain(["verify", ...args, "--data", data], (said) => {
    text += said;
  });
  return text;
}

const failure = (...args: readonly string[]): Promise<string> => run(...args).then(() => "none", explain);

describe("chain verify --snapshot", () => {
  it("R-5: shows a snapshot's history from the objects and the root's public key alone, by the beginning of its digest", async () => {
    const newest = snapshots[2] ?? "";
    const text = await run("--snapshot", newest.slice(0, 12));
    assert.match(text, /snapshot [0-9a-f]{12} of generation 3/);
    assert.match(text, /3 certificates and 2 snapshots before it verify to the root, newest first/);
    assert.deepEqual(
      [...text.matchAll(/^ {2}(generation|snapshot) /gm)].map(([, what]) => what),
      ["generation", "snapshot", "generation", "snapshot", "generation"],
    );
    const { verified, snapshot, history } = JSON.parse(await run("--snapshot", newest, "--json"));
    assert.deepEqual([verified, snapshot, history.length], [true, newest, 5]);
    assert.deepEqual(history[1], { snapshot: snapshots[0], kid: signer.kid });
    const oldest = await run("--snapshot", snapshots[0] ?? "", "--objects", join(data, "objects"));
    assert.match(oldest, /1 certificates and 0 snapshots before it/);
  });

  it("R-5: changes nothing in the directory", async () => {
    const before = readdirSync(join(data, "objects"), { recursive: true, encoding: "utf8" });
    rmSync(join(data, "objects/incoming"), { recursive: true });
    await run("--snapshot", snapshots[2] ?? "");
    const after = readdirSync(join(data, "objects"), { recursive: true, encoding: "utf8" });
    assert.deepEqual(after.toSorted(), before.filter((name) => name !== "incoming").toSorted());
  });

  it("R-5: refuses what is missing, damaged, or of another root, and says what", async () => {
    const newest = snapshots[2] ?? "";
    const other = publicKeyText(newSigningKey().publicKey);
    assert.match(
      await failure("--snapshot", newest, `--root=${other}`),
      /does not hold: object 1 of 3, bundle: unknown key/,
    );
    const [first = "", second = ""] = sealed;
    const path = (digest: string): string => join(data, "objects", digest.slice(0, 2), digest);
    const [whole, another] = [readFileSync(path(first)), readFileSync(path(second))];
    writeFileSync(path(first), another);
    assert.match(await failure("--snapshot", newest), /does not hold: object [0-9a-f]{12}: damaged/);
    rmSync(path(first));
    assert.match(await failure("--snapshot", newest), /does not hold: object [0-9a-f]{12}: missing/);
    writeFileSync(path(first), whole);
    assert.equal(await failure("--snapshot", newest), "none");
    rmSync(path(newest));
    assert.match(await failure("--snapshot", newest), /snapshot\/missing/);
    assert.match(await failure("--snapshot", newest.slice(0, 12)), /no object begins with/);
  });

  it("R-5: an object that is no manifest is no snapshot", async () => {
    assert.match(await failure("--snapshot", sealed[0] ?? ""), /snapshot\/refused .*form/);
  });

  it("takes nothing that could be somebody else's digest", async () => {
    for (const beginning of ["", "abc", "x".repeat(64), "A".repeat(12), "../../../../etc", "0".repeat(65)])
      assert.match(await failure("--snapshot", beginning), /takes the digest/, beginning);
    assert.match(await failure("--snapshot", "0".repeat(12)), /no object begins/);
    assert.match(
      await failure("--snapshot", snapshots[0] ?? "", "--objects", join(data, "none")),
      /store\/failed/,
    );
  });
});
