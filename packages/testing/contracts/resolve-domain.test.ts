// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createSecureServer } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";

import { createE2bApi } from "@space/e2b-api";
import { type ApiCaller, type Clock, parseTenantId } from "@space/model";
import { edgeOptions, loadOrCreateEdge } from "@space/mtls";

import { FakeSandboxService } from "../src/fake-sandbox-service.ts";

const preload = join(import.meta.dirname, "../../space/preload/resolve-domain.cjs");

/** Runs a module's text in a Node of its own, in this folder, and returns what it printed. */
async function runModule(text: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const args = ["--require", preload, "--input-type=module", "--eval", text];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: import.meta.dirname,
    env: environment,
    timeout: 30_000,
  });
  return stdout.trim();
}

const lookUps = `
  import dns, { lookup } from "node:dns";
  import { lookup as promised } from "node:dns/promises";
  import { promisify } from "node:util";
  const name = process.env.NAME;
  const called = (...args) => new Promise((resolve) => lookup(name, ...args, (...answer) => resolve(answer)));
  const failed = (error) => error.code;
  console.log(JSON.stringify([
    await called(),
    await called(4),
    await called({ all: true }),
    await promised(name).catch(failed),
    await promised(name, { all: true }).catch(failed),
    await promisify(dns.lookup)(name).catch(failed),
  ]));`;

/** Puts a system resolver that knows everything below the preload, which is loaded a second time on top of it. */
const behindFakeSystem = `
  import dns from "node:dns";
  import { createRequire } from "node:module";
  dns.promises.lookup = async () => ({ address: "system" });
  const require = createRequire(process.cwd() + "/");
  const [preload] = Object.keys(require.cache);
  delete require.cache[preload];
  require(preload);
  const find = async (name, options) => (await dns.promises.lookup(name, options)).address;
  const found = await Promise.all(process.env.NAMES.split(" ").map((name) => find(name)));
  console.log(found.join() + "; family 6: " + (await find("x.space.invalid", { family: 6 })));`;

describe("the preload for machines without wildcard DNS", () => {
  const found = { address: "127.0.0.1", family: 4 };
  const everyForm = [[null, "127.0.0.1", 4], [null, "127.0.0.1", 4], [null, [found]], found, [found], found];

  it("finds the domain and every name below it on this machine, in every form of the question", async () => {
    for (const name of [
      "space.invalid",
      "API.space.invalid",
      "49983-i0.space.invalid",
      "a.b.space.invalid.",
    ]) {
      const environment = { E2B_DOMAIN: "Space.Invalid:8443", NAME: name };
      assert.deepEqual(JSON.parse(await runModule(lookUps, environment)), everyForm, name);
    }
  });

  it("leaves every other name to the system", async () => {
    const names = ["evilspace.invalid", "space.invalid.other.invalid", "invalid", "space.invalid"];
    const printed = await runModule(behindFakeSystem, {
      E2B_DOMAIN: "space.invalid",
      NAMES: names.join(" "),
    });
    assert.equal(printed, "system,system,system,127.0.0.1; family 6: system");
  });

  it("does nothing without a domain", async () => {
    const printed = await runModule(behindFakeSystem, { NAMES: "space.invalid localhost" });
    assert.equal(printed, "system,system; family 6: system");
  });

  it("lets the unmodified SDK work in domain mode, over TLS and HTTP/2, with E2B_DOMAIN alone", async () => {
    const directory = await mkdtemp(join(tmpdir(), "edge-"));
    const edge = await loadOrCreateEdge({
      directory,
      nowMs: Date.now(),
      names: ["space.invalid", "*.space.invalid"],
    });
    const versions: string[] = [];
    const server = createSecureServer({ ...edgeOptions(edge.identity), allowHTTP1: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    assert(typeof address === "object" && address !== null);
    const domain = `space.invalid:${address.port}`;
    const apiKey = `e2b_${randomBytes(20).toString("hex")}`;
    const caller: ApiCaller = { tenantId: parseTenantId("ten_aaaaaaaaaaaaaaaa"), keyId: "a" };
    const clock: Clock = { wallMs: () => 0, monotonicMs: () => 0, after: () => () => undefined };
    const service = new FakeSandboxService({ clock, keys: new Map([[apiKey, caller]]) });
    const api = createE2bApi({ service, domain, envdVersion: "0.6.13", clock });
    server.on("request", (request, response) => {
      versions.push(request.httpVersion);
      api(request, response);
    });
    try {
      for (const sdk of ["e2b", "e2b-2-45"]) {
        const text = `
          import { Sandbox } from "${sdk}";
          const sandbox = await Sandbox.create("base", { metadata: { a: "b" } });
          const [listed] = await Sandbox.list({ query: { metadata: { a: "b" } } }).nextItems();
          console.log(listed.sandboxId === sandbox.sandboxId, await sandbox.pause(), sandbox.getHost(80) === "80-" + sandbox.sandboxId + ".${domain}");
          console.log(await sandbox.kill(), await sandbox.kill());
          process.exit(0);`;
        const environment = {
          E2B_DOMAIN: domain,
          E2B_API_KEY: apiKey,
          NODE_EXTRA_CA_CERTS: edge.authorityPath,
        };
        assert.equal(await runModule(text, environment), "true true true\ntrue false", sdk);
      }
      assert(versions.includes("2.0"), `HTTP versions seen: ${versions.join()}`);
    } finally {
      server.close();
      await rm(directory, { recursive: true });
    }
  });
});
