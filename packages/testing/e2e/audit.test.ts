// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The audit log of real processes: what it holds, and what it must not.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseSandboxId, Secret } from "@space/model";
import { Sandbox } from "e2b";
import { startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { checkout, type Finished, runProgram, until } from "../src/space-process.ts";

const resourcesBefore = hostResources();
after(() => {
  if (skip === false) assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

const space = (...args: readonly string[]): Promise<Finished> => runProgram(join(checkout, "space"), args);

interface ToldRecord {
  readonly process: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

async function tail(data: string, ...more: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await space("audit", "tail", "--data", data, "-n", "100000", ...more);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** Every file below a folder, by path. */
function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
}

test("what happens is in the logs, across the processes, and no secret is", {
  skip,
  timeout: 180_000,
}, async () => {
  const data = mkdtempSync(join(tmpdir(), "space-audit-e2e-"));
  const rig = await startRig({ data });
  const variable = "variable-7c1f0c4f3b";
  const written = "written-5b8e21d90a";
  const sandbox = await Sandbox.create({ ...rig.client(), timeoutMs: 120_000, envs: { PRIVATE: variable } });
  await sandbox.files.write("/home/user/note", written);
  assert.equal((await sandbox.commands.run("echo $PRIVATE")).stdout, `${variable}\n`);
  const token = await rig.accessToken(sandbox.sandboxId);
  const answer = await rig.system.routes.resolve({
    sandboxId: parseSandboxId(sandbox.sandboxId),
    credential: { kind: "access-token", token: new Secret(token) },
    wanted: { purpose: "control", scope: "files:read" },
    presenter: rig.system.presenter,
  });
  assert.equal(answer.kind, "entry");
  const wrong = "wrong-key-0d9a77c1e2";
  await assert.rejects(Sandbox.list({ ...rig.client(), apiKey: `e2b_${wrong}` }).nextItems());
  await assert.rejects(fetch(`${rig.system.apiUrl}/files?path=/${wrong}`).then((got) => assert.ok(got.ok)));
  await sandbox.pause();
  await Sandbox.connect(sandbox.sandboxId, rig.client());
  await Sandbox.kill(sandbox.sandboxId, rig.client());
  const apiKey = rig.client().apiKey;
  const bridgeTells = async (): Promise<boolean> => (await tail(data)).includes("bridge/released");
  await until("the bridge has told what it released", bridgeTells);
  const records = (await tail(data, "--json"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as ToldRecord);
  await rig.end();

  const has = (event: string, fields: Readonly<Record<string, unknown>>): boolean =>
    records.some(
      (record) =>
        record.event === event &&
        Object.entries(fields).every(([name, value]) => record.fields[name] === value),
    );
  for (const [change, reason] of [
    ["begin", "asked"],
    ["publish", "done"],
    ["claim-pause", "asked"],
    ["commit-pause", "done"],
    ["claim-resume", "asked"],
    ["claim-kill", "asked"],
    ["finish-kill", "done"],
  ])
    assert.ok(has("sandbox/changed", { change, reason }), `sandbox/changed ${change} ${reason}`);
  for (const reason of ["create", "resume"]) assert.ok(has("certificate/issued", { reason }), reason);
  for (const name of ["control-plane", "gateway"])
    assert.ok(
      records.some(
        ({ event, fields }) => event === "mesh/certified" && String(fields["name"]).includes(name),
      ),
      `mesh/certified ${name}`,
    );
  for (const event of ["worker/enrolled", "bridge/connected", "bridge/adopted", "bridge/daemon-accepted"])
    assert.ok(has(event, {}), event);
  assert.ok(has("api-key/refused", { problem: "unknown" }));

  const secrets = {
    "the API key": apiKey,
    "the access token": token,
    "a variable's value": variable,
    "what was written": written,
    "a wrong key": wrong,
    "a capability": answer.entry.capability,
    "a capability's signature": answer.entry.capability.split(".")[2] ?? "",
    "the token secret": readFileSync(join(data, "control", "token-secret")).toString("base64url"),
    ...Object.fromEntries(
      filesBelow(join(data, "control", "signing-keys")).map((path) => [
        path,
        readFileSync(path, "utf8").split("\n")[1] ?? "",
      ]),
    ),
  };
  const logs = filesBelow(data).filter((path) => path.includes("/audit/") || path.endsWith(".log"));
  assert.ok(logs.some((path) => path.includes("/workers/") && path.includes("/audit/")));
  const shown = await tail(data, "--sensitive", "--json");
  for (const [what, secret] of Object.entries(secrets)) {
    assert.ok(secret.length >= 10, what);
    for (const path of logs)
      assert.equal(readFileSync(path).includes(secret), false, `${what} is in ${path.slice(data.length)}`);
    assert.equal(shown.includes(secret), false, `${what} is shown`);
  }
  assert.equal((await space("audit", "verify", "--data", data)).code, 0);
  rmSync(data, { recursive: true, force: true });
});
