// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { constants } from "node:os";
import { it } from "node:test";
import { SpaceError } from "@space/model";
import { GuestConnectionError, GuestError } from "@space/spaced-guest";
import { EnvdError, fileError, translate } from "./envd-error.ts";

it("gives each errno the code and status that clients act on", () => {
  const cases: [keyof typeof constants.errno, string, number][] = [
    ["ENOENT", "not_found", 404],
    ["EEXIST", "already_exists", 409],
    ["ENOTDIR", "invalid_argument", 400],
    ["EISDIR", "invalid_argument", 400],
    ["EINVAL", "invalid_argument", 400],
    ["ELOOP", "failed_precondition", 400],
    ["EACCES", "permission_denied", 403],
    ["EPERM", "permission_denied", 403],
    ["ENOSPC", "resource_exhausted", 507],
    ["EDQUOT", "resource_exhausted", 507],
    ["EIO", "internal", 500],
  ];
  for (const [name, code, status] of cases) {
    const error = fileError(new GuestError(constants.errno[name], "open"), "/p");
    assert.deepEqual([error.code, error.status], [code, status], name);
    assert.match(error.message, /^path '\/p' /);
  }
});

it("tells a guest that is gone from one that refuses, and shows nothing of a bug", () => {
  assert.equal(translate(new GuestConnectionError("closed")), "lost");
  assert.equal(translate(new GuestConnectionError("unverified")), "lost");
  assert.equal(translate(new SpaceError("endpoint/mismatch", { problem: "pid" })), "lost");
  const busy = translate(new GuestConnectionError("exhausted"));
  assert.equal(busy instanceof EnvdError && busy.code, "resource_exhausted");
  const bug = translate(new TypeError("secret"));
  assert.equal(bug instanceof EnvdError && bug.message, "internal error");
});
