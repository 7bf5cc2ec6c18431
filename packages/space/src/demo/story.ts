// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSandboxId, type RouteEntry, type SandboxId, Secret, type WorkerId } from "@space/model";
import { Sandbox } from "e2b";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import type { Narrator, StepResult } from "./narrator.ts";
import { type ProbeAnswer, presentToWorker } from "./worker-probe.ts";

const folder = "/home/user/job";
const chart = `${folder}/chart.svg`;

/** What the story carries from step to step. */
interface Cast {
  readonly system: EmbeddedSystem;
  readonly sandbox: Sandbox;
  readonly id: SandboxId;
  readonly token: Secret<string>;
}

/** Tells the whole story. Throws `StoryEnded` at the first step that is not as it should be. */
export async function tellStory(system: EmbeddedSystem, narrator: Narrator): Promise<void> {
  const cast = await createAndWork(system, narrator);
  const digest = sha256(await cast.sandbox.files.read(chart));
  const old = await entryFor(cast);
  await moveToTheOtherWorker(cast, narrator, old, digest);
  await presentTheOldCapability(cast, narrator, old);
  await presentWhatIsNotAllowed(cast, narrator);
  await narrator.step("The sandbox is killed", async () => {
    await cast.sandbox.kill();
    const left = system.guestsLeft();
    return { ok: left === 0, text: `guests left on the workers: ${left}` };
  });
}

async function createAndWork(system: EmbeddedSystem, narrator: Narrator): Promise<Cast> {
  let cast: Cast | undefined;
  await narrator.step("E2B's own SDK, unmodified, creates a sandbox", async () => {
    const sandbox = await Sandbox.create("base", { ...clientOptions(system), timeoutMs: 300_000 });
    const id = parseSandboxId(sandbox.sandboxId);
    cast = { system, sandbox, id, token: new Secret(await accessToken(system, id)) };
    return { ok: true, text: `sandbox ${id} runs`, ...(await placement(system, id)) };
  });
  if (cast === undefined) throw new TypeError("the first step sets the cast or ends the story");
  const { sandbox } = cast;
  await narrator.step("An agent's job gets a spreadsheet: four years of Seattle's weather", async () => {
    const table = readFileSync(dataSet("seattle-weather.csv"), "utf8");
    await sandbox.files.write([
      { path: `${folder}/weather.csv`, data: table },
      { path: `${folder}/analysis.py`, data: readFileSync(join(import.meta.dirname, "analysis.py"), "utf8") },
    ]);
    const entries = await sandbox.files.list(folder);
    return {
      ok: entries.length === 2,
      text: `${table.split("\n").length - 1} lines written, ${entries.length} files in ${folder}`,
    };
  });
  await narrator.step("Python analyses it inside the sandbox", async () => {
    const run = await sandbox.commands.run("python3 analysis.py", { cwd: folder });
    const picture = await sandbox.files.read(chart);
    const ok = run.exitCode === 0 && picture.startsWith("<svg") && run.stdout.includes("1461 days");
    return {
      ok,
      text: `exit ${run.exitCode}; chart.svg has ${picture.length} bytes`,
      detail: run.stdout.trim().split("\n"),
    };
  });
  return cast;
}

async function moveToTheOtherWorker(
  cast: Cast,
  narrator: Narrator,
  old: RouteEntry,
  digest: string,
): Promise<void> {
  const { system, sandbox, id } = cast;
  const from = old.route.identity.placement.workerId;
  await narrator.step("The sandbox is paused", async () => {
    await sandbox.pause();
    const view = await inspect(system, id);
    return {
      ok: view.state === "paused",
      text: `files in a signed snapshot; memory: ${view.space.snapshot?.memory ?? "none"}`,
      generation: view.space.generation,
    };
  });
  const to = system.workerIds.find((worker) => worker !== from);
  if (to === undefined) throw new TypeError("the demo runs two workers");
  await narrator.step("It is resumed on the other worker", async () => {
    await connectOn(system, id, to);
    const now = await placement(system, id);
    return {
      ok: now.worker === to && now.generation === "2",
      text: `from ${from} to ${to}: a new execution, with its files`,
      ...now,
    };
  });
  await narrator.step("The same client reads its chart; the gateway still has the old route", async () => {
    const before = system.counters();
    const found = sha256(await sandbox.files.read(chart));
    const after = system.counters();
    const repairs = after.repairs - before.repairs;
    const refreshed = after.refreshRoute - before.refreshRoute;
    return {
      ok: found === digest && repairs === 1 && refreshed === 1,
      text: `old worker: refresh-route (${refreshed}); route repaired (${repairs}); same bytes, sha256 ${found.slice(0, 16)}…`,
      verdict: "match",
      ...(await placement(system, id)),
    };
  });
}

async function presentTheOldCapability(cast: Cast, narrator: Narrator, old: RouteEntry): Promise<void> {
  const { system, id } = cast;
  const oldWorker = old.route.identity.placement.workerId;
  for (const worker of system.workerIds) {
    const which = worker === oldWorker ? "old" : "new";
    await narrator.step(
      `The capability signed for generation 1 is shown to the ${which} worker`,
      async () => {
        const answer = await probe(cast, worker, old.capability);
        return refused(
          answer,
          "refresh-route",
          worker,
          `unexpired and well signed, yet not for what runs ${which === "old" ? "there" : "here"} now`,
        );
      },
    );
  }
  await narrator.step(
    "A capability for the execution that runs is served, to show that the door does open",
    async () => {
      const entry = await entryFor(cast);
      const answer = await probe(cast, entry.route.identity.placement.workerId, entry.capability);
      return {
        ok: answer.verdict === "match" && answer.bodyBytes > 0,
        text: `${answer.bodyBytes} bytes of chart.svg`,
        verdict: answer.verdict,
        ...(await placement(system, id)),
      };
    },
  );
}

async function presentWhatIsNotAllowed(cast: Cast, narrator: Narrator): Promise<void> {
  const { system, id } = cast;
  const entry = await entryFor(cast);
  const worker = entry.route.identity.placement.workerId;
  await narrator.step("Another tenant asks for this sandbox by its id", async () => {
    const other = await system.createTenant("another tenant");
    const answer = await fetch(`${system.apiUrl}/sandboxes/${id}`, {
      headers: { "x-api-key": other.apiKey.reveal() },
    });
    return {
      ok: answer.status === 404,
      text: `HTTP ${answer.status}: as if it did not exist`,
      verdict: "not found",
    };
  });
  await narrator.step("Another tenant's capability is shown for this sandbox", async () => {
    const other = await system.createTenant("a third tenant");
    const theirs = await Sandbox.create("base", {
      ...clientOptions(system),
      apiKey: other.apiKey.reveal(),
      timeoutMs: 60_000,
    });
    const foreign = {
      ...cast,
      id: parseSandboxId(theirs.sandboxId),
      token: new Secret(await accessToken(system, parseSandboxId(theirs.sandboxId), other.apiKey)),
    };
    const capability = (await entryFor(foreign)).capability;
    const answer = await probe(cast, worker, capability);
    await theirs.kill();
    return refused(answer, "deny", worker, "it is for another sandbox than the one asked for");
  });
  await narrator.step("A forged capability: one bit of the signature is another", async () => {
    return refused(
      await probe(cast, worker, forge(entry.capability)),
      "deny",
      worker,
      "the signature does not verify",
    );
  });
  await narrator.step("An expired capability, signed by the real key three minutes ago", async () => {
    const past = await system.issuerAt({ ...systemClock, wallMs: () => systemClock.wallMs() - 180_000 });
    const { token } = past.issue({
      identity: entry.route.identity,
      access: entry.access,
      caller: system.caller,
      presenter: system.presenter,
    });
    return refused(
      await probe(cast, worker, token),
      "deny",
      worker,
      "120 seconds and 15 of tolerance have passed",
    );
  });
  await narrator.step("A capability for port 8000 is used for port 8001", async () => {
    const answer = await system.routes.resolve({
      sandboxId: id,
      credential: { kind: "none" },
      wanted: { purpose: "service-port", port: 8000, protocol: "http" },
      presenter: system.presenter,
    });
    if (answer.kind !== "entry") return { ok: false, text: `no capability: ${answer.kind}` };
    const shown = await presentToWorker(
      await system.dialWorker(worker),
      {
        sandbox: id,
        capability: answer.entry.capability,
        target: { purpose: "service-port", port: 8001, protocol: "http" },
        path: "/",
      },
      systemRandom,
    );
    return refused(shown, "deny", worker, "the port is part of what was signed");
  });
}

function refused(
  answer: ProbeAnswer,
  wanted: "deny" | "refresh-route",
  worker: WorkerId,
  why: string,
): StepResult {
  const ok = answer.verdict === wanted && answer.bodyBytes === 0;
  return { ok, text: `${why}; bytes served: ${answer.bodyBytes}`, verdict: answer.verdict, worker };
}

async function probe(cast: Cast, worker: WorkerId, capability: string): Promise<ProbeAnswer> {
  const socket = await cast.system.dialWorker(worker);
  const path = `/files?path=${encodeURIComponent(chart)}&username=user`;
  return presentToWorker(
    socket,
    { sandbox: cast.id, capability, target: { purpose: "control" }, path },
    systemRandom,
  );
}

/** Route and capability as the gateway gets them from the control plane. */
async function entryFor({ system, id, token }: Cast): Promise<RouteEntry> {
  const answer = await system.routes.resolve({
    sandboxId: id,
    credential: { kind: "access-token", token },
    wanted: { purpose: "control", scope: "files:read" },
    presenter: system.presenter,
  });
  if (answer.kind !== "entry") throw new Error(`no route: ${answer.kind}`);
  return answer.entry;
}

/** Another last character of the same length: canonical base64url, other bits. */
function forge(token: string): string {
  const at = token.length - 10;
  return `${token.slice(0, at)}${token[at] === "A" ? "B" : "A"}${token.slice(at + 1)}`;
}

interface Inspected {
  readonly state: string;
  readonly space: {
    readonly generation: string;
    readonly workerID: string;
    readonly snapshot: { readonly memory: string } | null;
  };
}

async function inspect(system: EmbeddedSystem, id: SandboxId): Promise<Inspected> {
  const answer = await fetch(`${system.apiUrl}/sandboxes/${id}`, {
    headers: { "x-api-key": system.apiKey.reveal() },
  });
  return (await answer.json()) as Inspected; // cast: our own API's answer
}

async function placement(
  system: EmbeddedSystem,
  id: SandboxId,
): Promise<{ generation: string; worker: string }> {
  const { space } = await inspect(system, id);
  return { generation: space.generation, worker: space.workerID };
}

async function connectOn(system: EmbeddedSystem, id: SandboxId, workerID: WorkerId): Promise<void> {
  const answer = await fetch(`${system.apiUrl}/v2/sandboxes/${id}/connect`, {
    method: "POST",
    headers: { "x-api-key": system.apiKey.reveal(), "content-type": "application/json" },
    body: JSON.stringify({ timeout: 300, workerID }),
  });
  if (answer.status !== 201) throw new Error(`connect answered ${answer.status}: ${await answer.text()}`);
}

async function accessToken(
  system: EmbeddedSystem,
  id: SandboxId,
  apiKey: Secret<string> = system.apiKey,
): Promise<string> {
  const answer = await fetch(`${system.apiUrl}/v2/sandboxes/${id}/connect`, {
    method: "POST",
    headers: { "x-api-key": apiKey.reveal(), "content-type": "application/json" },
    body: "{}",
  });
  const { envdAccessToken } = (await answer.json()) as { envdAccessToken: string }; // cast: our own API's answer
  return envdAccessToken;
}

function clientOptions(system: EmbeddedSystem): {
  apiUrl: string;
  sandboxUrl: string;
  apiKey: string;
  domain: string;
} {
  return {
    apiUrl: system.apiUrl,
    sandboxUrl: system.apiUrl,
    apiKey: system.apiKey.reveal(),
    domain: system.domain,
  };
}

/** A file of the `vega-datasets` package, whose entry point lies in its `build` folder. */
function dataSet(name: string): string {
  return join(fileURLToPath(import.meta.resolve("vega-datasets")), "../../data", name);
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
