// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { parseUsers } from "./guest-users.ts";

it("reads users with their groups, the primary one first", () => {
  const { users, userNames, groupNames } = parseUsers(
    "root:x:0:0:root:/root:/bin/bash\n# comment\nuser:x:1000:1000:,,,:/home/user:/bin/bash\n",
    "root:x:0:\nuser:x:1000:user\nsudo:x:27:user,other\n",
  );
  assert.deepEqual(users.get("user"), {
    name: "user",
    uid: 1000,
    gid: 1000,
    home: "/home/user",
    groups: [1000, 27],
  });
  assert.deepEqual(users.get("root")?.groups, [0]);
  assert.equal(userNames.get(1000), "user");
  assert.equal(groupNames.get(27), "sudo");
});

it("skips lines that are not of their form, and never takes a second entry for the first", () => {
  const passwd = [
    "toor:x:-1:0::/:",
    "huge:x:4294967295:0::/:",
    "text:x:a:b::/:",
    ":x:5:5::/:",
    "short",
    "user:x:7:7::relative:/bin/sh",
    "user:x:0:0::/root:/bin/sh",
  ].join("\n");
  const { users } = parseUsers(passwd, "broken\nuser:x:nine:user\n");
  assert.deepEqual([...users.keys()], ["user"]);
  assert.deepEqual(users.get("user"), { name: "user", uid: 7, gid: 7, home: "/", groups: [7] });
});

it("reads no more than its limits", () => {
  const many = Array.from({ length: 20_000 }, (_, id) => `u${id}:x:${id}:1::/:`).join("\n");
  assert.equal(parseUsers(many, "").users.size, 10_000);
  const groups = Array.from({ length: 5_000 }, (_, id) => `g${id}:x:${id}:u1`).join("\n");
  assert.equal(parseUsers("u1:x:1:1::/:", groups).users.get("u1")?.groups.length, 1024);
});
