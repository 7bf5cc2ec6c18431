// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
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
  parseDigest,
  parseGeneration,
  parseSandboxId,
  parseTenantId,
  parseWorkerId,
  type TenantKey,
} from "@space/model";
import { placeOf, snapshotStore } from "@space/snapshot";
import { keyEncryptionPath, openSnapshotStorage } from "../data/snapshot-storage.ts";
import { explain } from "../failure.ts";
import { systemRandom } from "../host/system-random.ts";
import { chain } from "./chain.ts";

const root = newSigningKey();
const signer = newSigningKey();
const keys = [{ kid: signer.kid, publicKey: publicKeyText(signer.publicKey) }];
const bundle = signKeyBundle(root, { version: 1, issuedAtSeconds: 1_800_000_000, keys });
const sandboxId = parseSandboxId(`i${"s".repeat(20)}`);

const tenantId = parseTenantId(`ten_${"t".repeat(16)}`);

let data = "";
let key: TenantKey;
/** Each snapshot's digest, the oldest first, and the objects of its chain. */
let snapshots: Digest[] = [];
let sealed: Digest[] = [];

/** What an installation leaves of a sandbox that was paused three times: its objects, and the root's public key. */
beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), "space-chain-"));
  [snapshots, sealed] = [[], []];
  mkdirSync(join(data, "control"));
  writeFileSync(join(data, "control/root.pub"), `${publicKeyText(root.publicKey)}\n`);
  const { store, tenantKeys } = await openSnapshotStorage(folders());
  await tenantKeys.current(parseTenantId(`ten_${"o".repeat(16)}`));
  await tenantKeys.rotate(tenantId);
  key = await tenantKeys.current(tenantId);
  await tenantKeys.rotate(tenantId); // the snapshots are not sealed with the newest
  const { objects } = snapshotStore({ store, random: systemRandom }).open(key);
  let previous: Digest | null = null;
  let pending: SealedLink[] = [];
  for (const generation of ["1", "2", "3"]) {
    const execution = newSigningKey();
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
      publicKey: publicKeyText(execution.publicKey),
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
    const signed = signManifest(execution, {
      version: manifestVersion,
      identity,
      certificate: previous,
      previousManifest: snapshots.at(-1) ?? null,
      chain: object,
      keyId: key.keyId,
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

const folders = () => ({ control: join(data, "control"), objects: join(data, "objects") });
const fileOf = (digest: string): string => join(data, "objects", placeOf(key, parseDigest(digest)));

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
  it("R-5: shows a snapshot's history from the store, the key-encryption keys and the root's public key alone", async () => {
    const newest = snapshots[2] ?? "";
    const text = await run("--snapshot", newest);
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
    const [whole, another] = [readFileSync(fileOf(first)), readFileSync(fileOf(second))];
    writeFileSync(fileOf(first), another);
    assert.match(await failure("--snapshot", newest), /does not hold: object [0-9a-f]{12}: damaged/);
    rmSync(fileOf(first));
    assert.match(await failure("--snapshot", newest), /does not hold: object [0-9a-f]{12}: missing/);
    writeFileSync(fileOf(first), whole);
    assert.equal(await failure("--snapshot", newest), "none");
    rmSync(fileOf(newest));
    assert.match(await failure("--snapshot", newest), /snapshot\/missing/);
  });

  it("R-5: nothing can be read without the key-encryption keys; with a copy of both anywhere else everything can", async () => {
    const newest = snapshots[2] ?? "";
    const [copy, keys] = [join(data, "copy"), join(data, "copied-keys")];
    renameSync(join(data, "objects"), copy);
    renameSync(keyEncryptionPath(join(data, "control")), keys);
    rmSync(join(data, "control/snapshots.json"));
    const copies = ["--objects", copy, "--keys", keys];
    assert.match(await run("--snapshot", newest, ...copies), /of generation 3/);
    assert.match(
      await failure("--snapshot", newest, "--objects", copy),
      /put the file of key-encryption keys back/,
    );
    chmodSync(keys, 0o644);
    assert.match(await failure("--snapshot", newest, ...copies), /is open to others/);
    chmodSync(keys, 0o600);
    writeFileSync(
      keys,
      readFileSync(keys, "utf8").replace(/^./, (digit) => (digit === "0" ? "1" : "0")),
    );
    assert.match(await failure("--snapshot", newest, ...copies), /key-wrapping\/unknown/);
  });

  it("R-5: an object that is no manifest is no snapshot", async () => {
    assert.match(await failure("--snapshot", sealed[0] ?? ""), /snapshot\/refused .*form/);
  });

  it("takes nothing that could be somebody else's digest", async () => {
    for (const beginning of ["", "abc", "x".repeat(64), "a".repeat(12), "../../../../etc", "0".repeat(65)])
      assert.match(await failure("--snapshot", beginning), /takes the whole digest/, beginning);
    assert.match(await failure("--snapshot", "0".repeat(64)), /snapshot\/missing/);
    assert.match(
      await failure("--snapshot", snapshots[0] ?? "", "--objects", join(data, "none")),
      /store\/failed/,
    );
  });
});
