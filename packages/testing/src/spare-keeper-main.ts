// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A worker's daemon as far as guests go, made to be killed: `node spare-keeper-main.ts OPTIONS_JSON`. Again and again it
// waits until its pool is full, starts more guests than that at once and stops them; a line says what it is at.

import { randomBytes } from "node:crypto";
import { newActivationId, newSandboxId, Secret } from "@space/model";
import { NamespaceSubstrate } from "@space/substrate-namespace";

const random = { bytes: (length: number): Uint8Array => randomBytes(length) };
const full = 4;
const limits = { memoryBytes: 2 ** 28, cpus: 1, processes: 64, diskBytes: 2 ** 28 };

if (import.meta.main) {
  const [options = "{}"] = process.argv.slice(2);
  await keep(await NamespaceSubstrate.open(JSON.parse(options)));
}

async function keep(substrate: NamespaceSubstrate): Promise<never> {
  for (;;) {
    await fill(substrate);
    say("starting");
    const starts = Array.from({ length: full + 2 }, () => startOne(substrate));
    const started = await Promise.all(starts);
    await Promise.all(started.map(({ activationId }) => substrate.stop(activationId)));
    say("stopped");
  }
}

async function fill(substrate: NamespaceSubstrate): Promise<void> {
  let before: number | undefined;
  while (before === undefined || before < full) {
    const names = (await substrate.launchClient.list()).map(({ name }) => name);
    const now = names.filter((name) => name.startsWith("spare-")).length;
    if (now !== before) say(`${now} spares`);
    before = now;
  }
}

async function startOne(substrate: NamespaceSubstrate) {
  const started = await substrate.start({
    sandboxId: newSandboxId(random),
    activationId: newActivationId(random),
    activationSecret: new Secret<Uint8Array>(randomBytes(32)),
    hostname: "test-guest",
    limits,
  });
  say("started");
  return started;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
