// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import { UsageError } from "../failure.ts";
import { findDoor } from "../sandbox/api-door.ts";
import { oneSandbox, pairs, seconds } from "../sandbox/sandbox-arguments.ts";
import { sandbox } from "./sandbox.ts";
import { parseExec } from "./sandbox-exec.ts";

const id = "iaaaaaaaaaaaaaaaaaaaa";
const usual = "/nonexistent/data";

describe("./space sandbox", () => {
  it("leaves what stands behind -- to the command, whatever it looks like", () => {
    const asked = parseExec(["--user", "root", id, "--env", "A=b=c", "--", "ls", "--json", "--", "-l"]);
    assert.deepEqual(asked.argv, ["ls", "--json", "--", "-l"]);
    assert.deepEqual(
      [asked.sandboxId, asked.user, asked.variables, asked.cwd],
      [id, "root", { A: "b=c" }, undefined],
    );
  });

  it("refuses an exec without a command, without --, and with two sandboxes", () => {
    for (const args of [
      [id],
      [id, "ls"],
      [id, "--"],
      ["--", "ls"],
      [id, id, "--", "ls"],
      [id, "--no", "--", "ls"],
    ])
      assert.throws(() => parseExec(args), UsageError, args.join(" "));
  });

  it("refuses what is no sandbox, no pair and no number of seconds", () => {
    assert.throws(
      () => oneSandbox(["../keys"]),
      (error) => isSpaceError(error, "input/invalid"),
    );
    for (const text of ["novalue", "=x"]) assert.throws(() => pairs("--env", [text]), UsageError);
    for (const text of ["-1", "1.5", "", "1s"]) assert.throws(() => seconds(text), UsageError);
    assert.deepEqual(
      pairs("--env", ["A=", "__proto__=x"]),
      Object.fromEntries([
        ["A", ""],
        ["__proto__", "x"],
      ]),
    );
  });

  it("goes by the variables of E2B's SDKs, and says so when one is missing", async () => {
    const environment = { E2B_API_URL: "http://127.0.0.1:1/", E2B_API_KEY: "key" };
    const sandboxUrl = "http://127.0.0.1:1";
    assert.deepEqual(await findDoor(environment, { data: undefined, usual }), {
      apiUrl: "http://127.0.0.1:1",
      sandboxUrl,
      apiKey: "key",
    });
    const half = { E2B_API_URL: "http://127.0.0.1:1" };
    await assert.rejects(findDoor(half, { data: undefined, usual }), UsageError);
    await assert.rejects(
      findDoor({ ...environment, E2B_API_URL: "file:///x" }, { data: undefined, usual }),
      UsageError,
    );
  });

  it("says that nothing runs where nothing runs, also when a folder is named beside the variables", async () => {
    const environment = { E2B_API_URL: "http://127.0.0.1:1/", E2B_API_KEY: "key" };
    await assert.rejects(findDoor({}, { data: undefined, usual }), UsageError);
    await assert.rejects(findDoor(environment, { data: usual, usual }), UsageError);
  });

  it("names what it can do when it is asked for something else", async () => {
    const host = { write: () => undefined, writeError: () => undefined, environment: {} };
    for (const args of [[], ["burn"], ["toString"]])
      await assert.rejects(
        sandbox(args, host),
        /ls\|create\|exec\|pause\|resume\|move\|fork\|kill\|inspect\|logs/,
      );
  });
});
