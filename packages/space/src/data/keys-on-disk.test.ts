// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { exportSigningKey, importSigningKey, newSigningKey, publicKeyText } from "@space/capability";
import { Secret } from "@space/model";
import { BundleFile } from "./bundle-file.ts";
import type { DataDirectory } from "./data-directory.ts";
import { openInstallationKeys } from "./installation-keys.ts";
import { PrivateKeyFolder } from "./private-key-folder.ts";
import { RootKeyFile } from "./root-key-file.ts";

function directory(context: TestContext): DataDirectory {
  const root = mkdtempSync(join(tmpdir(), "keys-"));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  const control = join(root, "control");
  mkdirSync(control);
  const folder = { root, run: root };
  return {
    root,
    control,
    tls: root,
    objects: root,
    run: root,
    userIdBlock: 0,
    worker: () => folder,
    release() {},
  };
}

const mode = (path: string): number => statSync(path).mode & 0o777;
const publicKeyOf = (pem: Secret<string>): string => publicKeyText(importSigningKey(pem.reveal()).publicKey);

test("R-10: the root key is made once, apart, readable by its owner and written by nobody", async (context) => {
  const where = directory(context);
  const key = RootKeyFile.open(where);
  const path = join(where.root, "root-key/root.pem");
  assert.deepEqual([mode(path), mode(join(where.root, "root-key"))], [0o400, 0o700]);
  assert.equal(await key.use(publicKeyOf), key.publicKey);
  assert.equal(RootKeyFile.open(where).publicKey, key.publicKey);
  assert.equal(existsSync(join(where.control, "root.pem")), false);
});

test("R-10: with the root key elsewhere everything else opens, and no second one is made", async (context) => {
  const where = directory(context);
  const { publicKey } = RootKeyFile.open(where);
  const path = join(where.root, "root-key/root.pem");
  const elsewhere = join(where.root, "medium.pem");
  renameSync(path, elsewhere);
  const key = RootKeyFile.open(where);
  assert.deepEqual([key.publicKey, key.isHere, existsSync(path)], [publicKey, false, false]);
  await assert.rejects(key.use(publicKeyOf), { code: "root-key/absent" });
  assert.equal(await key.lent(elsewhere, () => key.use(publicKeyOf)), publicKey);
  await assert.rejects(key.use(publicKeyOf), { code: "root-key/absent" }, "lent for one command");
});

test("R-10: another root's key, and one that others may read, are refused", async (context) => {
  const where = directory(context);
  const key = RootKeyFile.open(where);
  const other = join(where.root, "other.pem");
  writeFileSync(other, exportSigningKey(newSigningKey()), { mode: 0o400 });
  await assert.rejects(
    key.lent(other, () => key.use(publicKeyOf)),
    { code: "host/unfit" },
  );
  chmodSync(join(where.root, "root-key/root.pem"), 0o440);
  await assert.rejects(key.use(publicKeyOf), { code: "host/unfit" });
});

test("a damaged public half is refused and not made again", (context) => {
  const where = directory(context);
  RootKeyFile.open(where);
  writeFileSync(join(where.control, "root.pub"), "x");
  assert.throws(() => RootKeyFile.open(where), { code: "host/unfit" });
});

test("the keys of the older layout: the root is kept and moved apart, what signed is forgotten", async (context) => {
  const where = directory(context);
  const root = newSigningKey();
  writeFileSync(join(where.control, "root.pem"), exportSigningKey(root), { mode: 0o600 });
  writeFileSync(join(where.control, "signing.pem"), exportSigningKey(newSigningKey()), { mode: 0o600 });
  const { rootKey } = openInstallationKeys(where);
  assert.equal(rootKey.publicKey, publicKeyText(root.publicKey));
  assert.equal(mode(join(where.root, "root-key/root.pem")), 0o400);
  for (const gone of ["root.pem", "signing.pem"]) assert.equal(existsSync(join(where.control, gone)), false);
});

test("R-10: private halves are files of their owner, and of a destroyed one nothing is left", async (context) => {
  const where = directory(context);
  const vault = new PrivateKeyFolder(join(where.control, "signing-keys"));
  const key = newSigningKey();
  assert.equal(await vault.read(key.kid), undefined);
  await vault.write(key.kid, new Secret(exportSigningKey(key)));
  const path = join(where.control, "signing-keys", `${key.kid}.pem`);
  assert.deepEqual([mode(path), mode(join(where.control, "signing-keys"))], [0o600, 0o700]);
  assert.equal((await vault.read(key.kid))?.reveal(), exportSigningKey(key));
  chmodSync(path, 0o644);
  await assert.rejects(vault.read(key.kid), { code: "host/unfit" });
  await vault.destroy(key.kid);
  await vault.destroy(key.kid);
  assert.equal(existsSync(path), false);
  await assert.rejects(vault.read("../../etc/passwd"), { code: "signing-key/unknown" });
});

test("R-10: a bundle's file only goes forward, also over a restart, and a damaged one is refused", (context) => {
  const { root } = directory(context);
  const path = join(root, "bundle");
  const file = new BundleFile(path);
  assert.equal(file.readBundle(), undefined);
  assert.equal(file.writeBundle(3, "a.b.c"), true);
  assert.equal(file.writeBundle(3, "x.y.z"), false);
  assert.equal(file.writeBundle(2, "x.y.z"), false);
  assert.deepEqual(new BundleFile(path).readBundle(), { version: 3, token: "a.b.c" });
  assert.equal(readFileSync(path, "utf8"), "3 a.b.c\n");
  writeFileSync(path, "3 a.b");
  assert.throws(() => new BundleFile(path), { code: "store/failed" });
});
