// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import * as v from "valibot";
import { UsageError } from "../failure.ts";
import { limitedText, problemIn } from "./api-door.ts";
import { ApiRefusal } from "./api-refusal.ts";
import { enveloped, readMessages } from "./message-stream.ts";

const agentPort = "49983";
/** Shorter than any silence that an HTTP client or a proxy takes for an end. */
const keepaliveSeconds = 30;
const callLimitMs = 60_000;
const refusalLimitBytes = 64 * 1024;
const inputPieceBytes = 32 * 1024;

/** A running sandbox's agent, as its owner reaches it. */
export interface AgentDoor {
  readonly sandboxUrl: string;
  readonly sandboxId: string;
  readonly accessToken: string;
}

export interface CommandToRun {
  readonly argv: readonly [string, ...string[]];
  readonly user: string;
  readonly cwd: string | undefined;
  readonly variables: Readonly<Record<string, string>>;
}

/** Where a command's bytes come from and go to. */
export interface CommandStreams {
  /** Undefined: it reads the end at once. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
  /** Resolve when more may be written. */
  stdout(bytes: Uint8Array): Promise<void>;
  stderr(bytes: Uint8Array): Promise<void>;
  /** Called once, with what signals the command. */
  started(signal: (name: "SIGNAL_SIGTERM" | "SIGNAL_SIGKILL") => Promise<void>): void;
}

const base64 = v.pipe(
  v.string(),
  v.transform((text) => Buffer.from(text, "base64")),
);
const eventSchema = v.object({
  event: v.object({
    start: v.optional(v.object({ pid: v.number() })),
    data: v.optional(v.object({ stdout: v.optional(base64), stderr: v.optional(base64) })),
    end: v.optional(v.object({ exitCode: v.optional(v.number(), 0), status: v.optional(v.string(), "") })),
  }),
});

/**
 * Runs a program in a sandbox, byte for byte, and resolves with its exit code: 128 and the signal's number where a signal
 * ended it. Throws {@link ApiRefusal} where it cannot be started, and `link/closed` where the stream breaks off: the command
 * may go on then.
 */
export async function runCommand(
  agent: AgentDoor,
  command: CommandToRun,
  streams: CommandStreams,
): Promise<number> {
  const { argv, cwd, user, variables } = command;
  const [cmd, ...args] = argv;
  const process = { cmd, args, envs: variables, ...(cwd === undefined ? {} : { cwd }) };
  const asUser = { authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}` };
  const headers = { ...asUser, "keepalive-ping-interval": String(keepaliveSeconds) };
  const start = { process, stdin: streams.input !== undefined };
  const response = await post(agent, "Start", {
    headers: { ...headers, "content-type": "application/connect+json" },
    body: enveloped(start),
  });
  if (response.body === null) throw new SpaceError("link/protocol", { problem: "no stream" });
  const stop = new AbortController();
  try {
    for await (const item of readMessages(response.body)) {
      if (item.kind === "end") throw refusalOf(item.error);
      const parsed = v.safeParse(eventSchema, item.message);
      if (!parsed.success) throw new SpaceError("link/protocol", { problem: "an unknown event" });
      const { start: begun, data, end } = parsed.output.event;
      if (begun !== undefined) begin(agent, begun.pid, { streams, signal: stop.signal });
      if (data?.stdout !== undefined) await streams.stdout(data.stdout);
      if (data?.stderr !== undefined) await streams.stderr(data.stderr);
      if (end !== undefined) return codeOf(end);
    }
    throw new SpaceError("link/closed", {});
  } finally {
    stop.abort();
  }
}

/** Passes input and signals on from now on. */
function begin(
  agent: AgentDoor,
  pid: number,
  { streams, signal }: { readonly streams: CommandStreams; readonly signal: AbortSignal },
): void {
  const chosen = { process: { pid } };
  streams.started((name) => call(agent, "SendSignal", { ...chosen, signal: name }));
  const { input } = streams;
  if (input === undefined) return;
  const pass = async (): Promise<void> => {
    for await (const bytes of input) {
      for (let at = 0; at < bytes.length; at += inputPieceBytes) {
        if (signal.aborted) return;
        const stdin = Buffer.from(bytes.subarray(at, at + inputPieceBytes)).toString("base64");
        await call(agent, "SendInput", { ...chosen, input: { stdin } });
      }
    }
    if (!signal.aborted) await call(agent, "CloseStdin", chosen);
  };
  // A command that has ended, or reads no more, takes none: its end is told by the stream.
  pass().catch(() => undefined);
}

async function call(agent: AgentDoor, method: string, message: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await post(agent, method, {
    headers,
    body: Buffer.from(JSON.stringify(message)),
    signal: AbortSignal.timeout(callLimitMs),
  });
  await limitedText(response, refusalLimitBytes);
}

interface Posted {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly signal?: AbortSignal;
}

async function post({ sandboxUrl, sandboxId, accessToken }: AgentDoor, method: string, posted: Posted) {
  const routing = {
    "connect-protocol-version": "1",
    "X-Access-Token": accessToken,
    "E2b-Sandbox-Id": sandboxId,
    "E2b-Sandbox-Port": agentPort,
  };
  const url = `${sandboxUrl}/process.Process/${method}`;
  const headers = { ...routing, ...posted.headers };
  const response = await fetch(url, { method: "POST", ...posted, headers }).catch((cause: unknown) => {
    throw new UsageError(`${sandboxUrl} does not answer`, { cause });
  });
  if (response.ok) return response;
  const text = await limitedText(response, refusalLimitBytes);
  throw new ApiRefusal(response.status, problemIn(text) ?? `answered with ${response.status}`);
}

function refusalOf(error: unknown): ApiRefusal {
  return new ApiRefusal(
    200,
    problemIn(JSON.stringify(error ?? {})) ?? "the command's stream ended without its end",
  );
}

const signalBase = 128;
/** The agent's words for Linux's signals, from 1. */
const signalWords: readonly string[] =
  "hangup,interrupt,quit,illegal instruction,trace/breakpoint trap,aborted,bus error,floating point exception,killed,user defined signal 1,segmentation fault,user defined signal 2,broken pipe,alarm clock,terminated".split(
    ",",
  );

/** As a shell tells it. */
function codeOf({ exitCode, status }: { readonly exitCode: number; readonly status: string }): number {
  const [, word] = /^signal: (.+)$/.exec(status) ?? [];
  if (word === undefined) return exitCode & 0xff;
  const [, number] = /^signal (\d+)$/.exec(word) ?? [];
  return signalBase + (number === undefined ? signalWords.indexOf(word) + 1 : Number(number));
}
