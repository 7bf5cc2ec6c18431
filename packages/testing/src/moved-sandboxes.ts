// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import type { CommandHandle, Sandbox } from "e2b";
import type { EmbeddedRig } from "./embedded-rig.ts";

/** How far a counter has come that writes its number and who it is into `/tmp/count`. */
export async function counted(sandbox: Sandbox): Promise<{ readonly n: number; readonly who: string }> {
  const [n = "", ...who] = (await sandbox.files.read("/tmp/count")).split(" ");
  return { n: Number(n), who: who.join(" ") };
}

/** The worker that a sandbox is on, or was last. */
export async function placeOf(rig: EmbeddedRig, sandboxId: string): Promise<string> {
  const answer = await fetch(`${rig.system.apiUrl}/sandboxes/${sandboxId}`, { headers: headers(rig) });
  return ((await answer.json()) as { space: { workerID: string } }).space.workerID; // cast: our own API's answer
}

/** Resumes a paused sandbox on another of the rig's workers than this. */
export async function resumeElsewhere(rig: EmbeddedRig, sandboxId: string, from: string): Promise<void> {
  const workerID = rig.system.workerIds.find((id) => id !== from) ?? "";
  const answer = await fetch(`${rig.system.apiUrl}/v2/sandboxes/${sandboxId}/connect`, {
    method: "POST",
    headers: headers(rig),
    body: JSON.stringify({ timeout: 300, workerID }),
  });
  assert.equal(answer.status, 201, await answer.text());
}

/** Moves a running sandbox to another of the rig's workers than this. Whether its memory went along. */
export async function moveElsewhere(rig: EmbeddedRig, sandboxId: string, from: string): Promise<boolean> {
  const workerID = rig.system.workerIds.find((id) => id !== from) ?? "";
  const answer = await fetch(`${rig.system.apiUrl}/sandboxes/${sandboxId}/move`, {
    method: "POST",
    headers: headers(rig),
    body: JSON.stringify({ workerID }),
  });
  assert.equal(answer.status, 204, await answer.text());
  return answer.headers.get("space-memory-moved") === "true";
}

function headers(rig: EmbeddedRig): Record<string, string> {
  return { "x-api-key": rig.system.apiKey.reveal(), "content-type": "application/json" };
}

/** What one client sees of a command that writes numbered lines, and of a terminal that is typed numbered ones. */
export class NumberedStreams {
  readonly #sandbox: Sandbox;
  readonly command: CommandHandle;
  readonly #terminal: CommandHandle;
  readonly #output: { command: string; terminal: string };
  #typed = 0;

  private constructor(
    sandbox: Sandbox,
    handles: { readonly command: CommandHandle; readonly terminal: CommandHandle },
    output: { command: string; terminal: string },
  ) {
    this.#sandbox = sandbox;
    this.command = handles.command;
    this.#terminal = handles.terminal;
    this.#output = output;
  }

  /** The command counts until `last`, fast enough that something is always under way. */
  static async begin(sandbox: Sandbox, last: number): Promise<NumberedStreams> {
    const output = { command: "", terminal: "" };
    const loop = `i=0; while [ $i -lt ${last} ]; do i=$((i+1)); echo $i; sleep 0.005; done; exit 7`;
    const command = await sandbox.commands.run(loop, {
      background: true,
      timeoutMs: 0,
      onStdout: (text) => {
        output.command += text;
      },
    });
    const terminal = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      timeoutMs: 0,
      onData: (bytes) => {
        output.terminal += Buffer.from(bytes).toString();
      },
    });
    // Without echo, so that each line that was typed comes back once: from the program that read it.
    await sandbox.pty.sendInput(terminal.pid, Buffer.from("stty -echo; exec cat\n"));
    return new NumberedStreams(sandbox, { command, terminal }, output);
  }

  /** Types some more lines, each in a call of its own. */
  async type(lines: number): Promise<void> {
    for (let line = 0; line < lines; line += 1) {
      this.#typed += 1;
      await this.#sandbox.pty.sendInput(this.#terminal.pid, Buffer.from(`line-${this.#typed}\n`));
    }
  }

  /** The numbers that the command has written. */
  get counted(): readonly number[] {
    return this.#output.command.split("\n").slice(0, -1).map(Number);
  }

  /** The numbers of the lines that the terminal has given back. */
  get returned(): readonly number[] {
    return [...this.#output.terminal.matchAll(/line-([0-9]+)\r\n/g)].map(([, number]) => Number(number));
  }

  /** Every line that was typed has come back, once and in order. */
  get isReturned(): boolean {
    return this.returned.length >= this.#typed;
  }

  /** Each once and in order: throws where it is otherwise. */
  check(): void {
    const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);
    assert.deepEqual(this.counted, upTo(this.counted.length));
    assert.deepEqual(this.returned, upTo(this.returned.length));
  }
}
