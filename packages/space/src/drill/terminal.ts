// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { CommandExitError, Sandbox } from "e2b";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { Owner } from "./owner.ts";
import { becomes } from "./waiting.ts";

export interface TerminalOptions {
  /** Bytes typed. */
  readonly bytes: number;
  /** Pauses with memory, each resumed on the same worker, while somebody types. */
  readonly pauses: number;
}

export interface TerminalReport {
  readonly drill: "terminal";
  readonly ok: boolean;
  readonly seconds: number;
  readonly bytes: number;
  readonly pauses: number;
  /** Resumes that kept the processes: the terminal's own is still there, under its pid. */
  readonly kept: number;
  /** Whether the program in the terminal read exactly what was typed, each byte once and in order. */
  readonly readAsTyped: boolean;
  /** Whether the one stream that the client opened at the start showed exactly what the program wrote. */
  readonly shownAsTyped: boolean;
  /** Pieces of input that were under way when a pause began. */
  readonly typedIntoPauses: number;
  /** How often the gateway went on with a stream. */
  readonly continuedStreams: number;
  readonly problem: string | null;
}

const typedPath = "/home/user/typed";
const ready = "READY>";
const waitLimitMs = 60_000;
const lookEveryMs = 20;
/** So many that one is under way whenever the pause begins to hold them back. */
const piecesPerTurn = 100;
/** What the pauses have left over is typed in pieces of so many bytes. */
const restBytes = 100;
const printable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Types into a terminal with E2B's own client while its sandbox is paused and resumed again and again. */
export async function drillTerminal(
  system: EmbeddedSystem,
  { bytes, pauses }: TerminalOptions,
): Promise<TerminalReport> {
  const startedMs = systemClock.monotonicMs();
  const client = {
    apiUrl: system.apiUrl,
    sandboxUrl: system.apiUrl,
    apiKey: system.apiKey.reveal(),
    domain: system.domain,
  };
  const sandbox = await Sandbox.create("base", { ...client, timeoutMs: 3_600_000 });
  const text = textOf(bytes);
  const terminal = await openTerminal(sandbox);
  const typing = await typeThroughPauses(new Owner(system), sandbox, { text, pauses, pid: terminal.pid });
  let problem: string | null = null;
  try {
    await until("the terminal shows all that was typed", () => terminal.shown().length >= text.length);
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  const shownAsTyped = terminal.shown() === text;
  const readAsTyped = (await sandbox.files.read(typedPath)) === text;
  const continuedStreams = system.counters().continued;
  const kept = typing.kept;
  await terminal.end();
  await sandbox.kill();
  return {
    drill: "terminal",
    ok: shownAsTyped && readAsTyped && kept === pauses && typing.typedIntoPauses > 0,
    seconds: Math.round((systemClock.monotonicMs() - startedMs) / 100) / 10,
    bytes,
    pauses,
    kept,
    readAsTyped,
    shownAsTyped,
    typedIntoPauses: typing.typedIntoPauses,
    continuedStreams,
    problem: problem ?? terminal.problem(),
  };
}

/** Random, so that no two places look alike: a byte that is lost, doubled or moved shows. */
function textOf(bytes: number): string {
  return [...randomBytes(bytes)].map((byte) => printable[byte % printable.length] ?? "").join("");
}

interface OpenTerminal {
  readonly pid: number;
  shown(): string;
  problem(): string | null;
  end(): Promise<void>;
}

/** A raw terminal whose program writes down what it reads, and shows it. Its one stream stays open all the time. */
async function openTerminal(sandbox: Sandbox): Promise<OpenTerminal> {
  let output = "";
  let problem: string | null = null;
  const handle = await sandbox.pty.create({
    cols: 80,
    rows: 24,
    timeoutMs: 0,
    onData: (data) => {
      output += Buffer.from(data).toString("latin1");
    },
  });
  const over = handle.wait().catch((error: unknown) => {
    if (!(error instanceof CommandExitError)) problem = String(error);
  });
  const program = `stty raw -echo; printf 'REA''DY>'; exec tee ${typedPath}\n`;
  await sandbox.pty.sendInput(handle.pid, Buffer.from(program));
  await until("the terminal is ready", () => output.includes(ready));
  return {
    pid: handle.pid,
    shown: () => output.slice(output.indexOf(ready) + ready.length),
    problem: () => problem,
    async end() {
      await sandbox.pty.kill(handle.pid);
      await over;
    },
  };
}

interface Typing {
  readonly text: string;
  readonly pauses: number;
  readonly pid: number;
}

/** In each turn one piece is typed before, and then one after the other until the pause is over: one waits for its end. */
async function typeThroughPauses(
  owner: Owner,
  sandbox: Sandbox,
  { text, pauses, pid }: Typing,
): Promise<{ readonly kept: number; readonly typedIntoPauses: number }> {
  const address = { sandboxId: sandbox.sandboxId, accessToken: "" };
  const { workerId } = await owner.inspect(address);
  const pieceBytes = Math.ceil(text.length / (pauses * piecesPerTurn));
  let at = 0;
  let kept = 0;
  let typedIntoPauses = 0;
  const type = async (mostBytes = pieceBytes): Promise<void> => {
    const piece = text.slice(at, at + mostBytes);
    at += piece.length;
    if (piece !== "") await sandbox.pty.sendInput(pid, Buffer.from(piece, "latin1"));
  };
  for (let turn = 0; turn < pauses; turn += 1) {
    await type();
    let isPausing = true;
    let isUnderWay = true;
    const typeOn = async (): Promise<void> => {
      const endAt = Math.min(text.length, at + (piecesPerTurn - 1) * pieceBytes);
      while (isPausing && at < endAt) await type();
    };
    const underWay = typeOn().finally(() => {
      isUnderWay = false;
    });
    await owner.pause(address);
    isPausing = false;
    if (isUnderWay) typedIntoPauses += 1;
    await owner.resume(address, workerId);
    await underWay;
    const processes = await sandbox.commands.list();
    if (processes.some((process) => process.pid === pid)) kept += 1;
  }
  while (at < text.length) await type(restBytes);
  return { kept, typedIntoPauses };
}

async function until(what: string, condition: () => boolean): Promise<void> {
  if (!(await becomes(condition, { limitMs: waitLimitMs, lookEveryMs })))
    throw new Error(`not in time: ${what}`);
}
