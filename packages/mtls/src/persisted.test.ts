// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

import { isSpaceError } from "@space/model";

import { createAuthority } from "./authority.ts";
import { loadOrCreateEdge, loadOrCreateMesh, loadOrCreatePeer } from "./persisted.ts";

const nowMs = Date.UTC(2026, 10, 30);
const dayMs = 86_400_000;
const unfit = (error: unknown): boolean => isSpaceError(error, "host/unfit");

async function temporary(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "mtls-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

describe("the mesh's authority on disk", () => {
  it("is the same one after a restart", async () => {
    await using directory = await temporary();
    const request = { directory: join(directory.path, "deep", "tls"), nowMs };
    const made = await loadOrCreateMesh(request);
    const loaded = await loadOrCreateMesh(request);
    assert.equal(loaded.certificate, made.certificate);
    assert.equal(loaded.key.reveal(), made.key.reveal());
    assert.equal(loaded.commonName, made.commonName);
  });

  it("is readable by its owner only, and leaves no temporary file", async () => {
    await using directory = await temporary();
    await loadOrCreateMesh({ directory: directory.path, nowMs });
    assert.deepEqual(await readdir(directory.path), ["mesh-authority.pem"]);
    assert.equal((await stat(join(directory.path, "mesh-authority.pem"))).mode & 0o777, 0o600);
  });

  it("is refused when others may read it", async () => {
    await using directory = await temporary();
    await loadOrCreateMesh({ directory: directory.path, nowMs });
    await chmod(join(directory.path, "mesh-authority.pem"), 0o640);
    await assert.rejects(loadOrCreateMesh({ directory: directory.path, nowMs }), unfit);
  });

  it("is refused, not replaced, when it is damaged, swapped or runs out", async () => {
    await using directory = await temporary();
    const path = join(directory.path, "mesh-authority.pem");
    const made = await loadOrCreateMesh({ directory: directory.path, nowMs });
    const other = createAuthority({ commonName: "x", nowMs });
    await assert.rejects(loadOrCreateMesh({ directory: directory.path, nowMs: nowMs + 3600 * dayMs }), unfit);
    for (const text of ["", made.certificate, made.key.reveal(), made.certificate + other.key.reveal()]) {
      await writeFile(path, text);
      await assert.rejects(loadOrCreateMesh({ directory: directory.path, nowMs }), unfit);
      assert.equal(await readFile(path, "utf8"), text);
    }
  });
});

describe("a component's identity on disk", () => {
  it("is kept, and made again when it runs out or another authority signed it", async () => {
    await using directory = await temporary();
    const authority = await loadOrCreateMesh({ directory: directory.path, nowMs });
    const request = { directory: directory.path, nowMs, authority, name: "wrk_aaaaaaaaaaaaaaaa" };
    const made = await loadOrCreatePeer(request);
    assert.equal((await loadOrCreatePeer(request)).thumbprint, made.thumbprint);
    const later = await loadOrCreatePeer({ ...request, nowMs: nowMs + 350 * dayMs });
    assert.notEqual(later.thumbprint, made.thumbprint);
    const stranger = createAuthority({ commonName: authority.commonName, nowMs });
    const moved = await loadOrCreatePeer({ ...request, authority: stranger });
    assert.notEqual(moved.thumbprint, later.thumbprint);
    assert.equal(
      new X509Certificate(moved.certificate).checkPrivateKey(createPrivateKey(moved.key.reveal())),
      true,
    );
    assert.equal((await stat(join(directory.path, "wrk_aaaaaaaaaaaaaaaa.pem"))).mode & 0o777, 0o600);
  });
});

describe("the public edge on disk", () => {
  const names = ["space.test", "*.space.test", "127.0.0.1"];

  it("is kept, with the authority's certificate alone in a file for callers", async () => {
    await using directory = await temporary();
    const made = await loadOrCreateEdge({ directory: directory.path, nowMs, names });
    const loaded = await loadOrCreateEdge({ directory: directory.path, nowMs, names });
    assert.equal(loaded.identity.thumbprint, made.identity.thumbprint);
    assert.equal(loaded.authority.certificate, made.authority.certificate);
    assert.equal(await readFile(made.authorityPath, "utf8"), made.authority.certificate);
    assert.equal((await stat(made.authorityPath)).mode & 0o777, 0o644);
    assert.equal((await stat(join(directory.path, "edge-authority.pem"))).mode & 0o777, 0o600);
  });

  it("keeps its authority when only the server's certificate runs out", async () => {
    await using directory = await temporary();
    const made = await loadOrCreateEdge({ directory: directory.path, nowMs, names });
    const later = await loadOrCreateEdge({ directory: directory.path, nowMs: nowMs + 350 * dayMs, names });
    assert.equal(later.authority.certificate, made.authority.certificate);
    assert.notEqual(later.identity.thumbprint, made.identity.thumbprint);
  });

  it("is made again for other names, for its authority can vouch for no others", async () => {
    await using directory = await temporary();
    const made = await loadOrCreateEdge({ directory: directory.path, nowMs, names });
    const moved = await loadOrCreateEdge({ directory: directory.path, nowMs, names: ["other.test"] });
    assert.notEqual(moved.authority.certificate, made.authority.certificate);
    assert.equal(new X509Certificate(moved.identity.certificate).checkHost("other.test"), "other.test");
  });
});
