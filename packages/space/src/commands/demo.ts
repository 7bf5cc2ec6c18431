// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNarrator, StoryEnded } from "../demo/narrator.ts";
import { tellStory } from "../demo/story.ts";
import { startEmbedded } from "../embedded/embedded-system.ts";
import { requireHost } from "../host/host-fitness.ts";
import { ensurePython } from "../host/python.ts";
import { readArguments } from "./arguments.ts";

/** `./space demo [--json]`: a whole system on a throw-away directory, one story, and an exit code that tells whether all was well. */
export async function demo(args: readonly string[]): Promise<number> {
  const { json } = readArguments(args, { options: { json: { type: "boolean", default: false } } }).values;
  await requireHost("the demo starts real sandboxes");
  await ensurePython("the demo's job in the sandbox is a Python program");
  const write = json ? undefined : (text: string): void => void process.stdout.write(text);
  const narrator = createNarrator(write, {
    colour: process.stdout.isTTY && process.env["NO_COLOR"] === undefined,
    nowMs: () => performance.now(),
  });
  const startedMs = performance.now();
  const data = mkdtempSync(join(tmpdir(), "space-demo-"));
  let ok = false;
  try {
    ok = await runStory(data, narrator);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
  const seconds = Math.round((performance.now() - startedMs) / 100) / 10;
  if (json) process.stdout.write(`${JSON.stringify({ ok, seconds, steps: narrator.records }, null, 2)}\n`);
  else
    process.stdout.write(
      ok
        ? `All ${narrator.records.length} steps were as they should be (${seconds} s).\n`
        : "The demo ended early.\n",
    );
  return ok ? 0 : 1;
}

async function runStory(data: string, narrator: ReturnType<typeof createNarrator>): Promise<boolean> {
  const ephemeral = { host: "127.0.0.1", port: 0 };
  const system = await startEmbedded({
    data,
    listen: ephemeral,
    tlsListen: ephemeral,
    domain: "space.localhost",
    workers: 2,
    substrate: "namespace",
    log: () => undefined,
  });
  const interrupted = (): void => void system.stop().finally(() => process.exit(130));
  process.once("SIGINT", interrupted);
  process.once("SIGTERM", interrupted);
  try {
    await tellStory(system, narrator);
    return true;
  } catch (error) {
    if (error instanceof StoryEnded) return false;
    throw error;
  } finally {
    process.off("SIGINT", interrupted);
    process.off("SIGTERM", interrupted);
    await system.stop();
  }
}
