// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { actingAs, HostRig } from "../src/host-rig.ts";

it("serves the file system service: stat, list, make, move, remove", async () => {
  const rig = await HostRig.adopted();
  const fs = (method: string, message: unknown, headers = {}) =>
    rig.rpc(`filesystem.Filesystem/${method}`, message, headers);
  rig.guest.files.write("/home/user/d/f", "12345", { uid: 1000, gid: 1000 });
  const file = { name: "f", path: "/home/user/d/f", permissions: "-rw-r--r--", owner: "user", group: "user" };
  const times = { modifiedTime: "2026-01-02T03:04:05.000006Z" };
  const whole = { ...file, type: "FILE_TYPE_FILE", size: "5", mode: 0o644, ...times };
  assert.deepEqual((await fs("Stat", { path: "d/f" })).json(), { entry: whole });

  const made = await fs("MakeDir", { path: "x/y" });
  assert.deepEqual(made.json(), {
    entry: {
      name: "y",
      path: "/home/user/x/y",
      permissions: "drwxr-xr-x",
      owner: "user",
      group: "user",
      type: "FILE_TYPE_DIRECTORY",
      mode: 0o755,
      ...times,
    },
  });
  const errors: [string, unknown, number, string, RegExp][] = [
    ["MakeDir", { path: "x/y" }, 409, "already_exists", /directory already exists/],
    ["MakeDir", { path: "d/f" }, 400, "invalid_argument", /not a directory/],
    ["Stat", { path: "none" }, 404, "not_found", /does not exist/],
    ["ListDir", { path: "d/f" }, 400, "invalid_argument", /is not a directory/],
    ["Move", { source: "none", destination: "b" }, 404, "not_found", /none/],
  ];
  for (const [method, message, status, code, text] of errors) {
    const answer = await fs(method, message);
    const body = answer.json() as { code: string; message: string };
    assert.deepEqual([answer.status, body.code], [status, code], method);
    assert.match(body.message, text);
  }
  const unknown = await fs("Stat", { path: "/" }, actingAs("ghost"));
  assert.deepEqual(
    [unknown.status, unknown.json()],
    [401, { code: "unauthenticated", message: "invalid username: 'ghost'" }],
  );

  assert.deepEqual((await fs("Move", { source: "d/f", destination: "new/g" })).json(), {
    entry: { ...whole, name: "g", path: "/home/user/new/g" },
  });
  assert.deepEqual((await fs("Remove", { path: "new" })).json(), {});
  assert.deepEqual((await fs("Remove", { path: "new" })).json(), {});
  rig.close();
});

it("lists depth first under the requested path, links as entries", async () => {
  const rig = await HostRig.adopted();
  const { files } = rig.guest;
  files.write("/data/b/c", "x");
  files.write("/data/a", "y");
  files.symlink("/data/link", "/data/b");
  files.symlink("/view", "/data");
  files.symlink("/data/z", "/loop");
  files.symlink("/loop", "/data/z");
  const list = async (message: unknown) => {
    const { entries } = (await rig.rpc("filesystem.Filesystem/ListDir", message)).json() as {
      entries?: { path: string; type?: string; symlinkTarget?: string; permissions: string }[];
    };
    return entries ?? [];
  };
  assert.deepEqual(
    (await list({ path: "/view" })).map(({ path }) => path),
    ["/view/a", "/view/b", "/view/link", "/view/z"],
  );
  const deep = await list({ path: "/view", depth: 2 });
  assert.deepEqual(
    deep.map(({ path }) => path),
    ["/view/a", "/view/b", "/view/b/c", "/view/link", "/view/z"],
  );
  const link = deep[3];
  assert.equal(link?.type, "FILE_TYPE_DIRECTORY");
  assert.equal(link?.symlinkTarget, "/data/b");
  assert.equal(link?.permissions, "Lrwxrwxrwx");
  assert.equal(deep[4]?.type, undefined);
  const loop = await rig.rpc("filesystem.Filesystem/ListDir", { path: "/loop" });
  assert.equal((loop.json() as { code: string }).code, "failed_precondition");
  rig.close();
});
