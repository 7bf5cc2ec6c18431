// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { fstatSync } from "node:fs";
import type { Writable } from "node:stream";
import { explain, UsageError } from "../failure.ts";
import { askApi, type Environment, findDoor } from "../sandbox/api-door.ts";
import { type CommandStreams, runCommand } from "../sandbox/run-command.ts";
import { answered, oneSandbox, pairs, type SandboxHost } from "../sandbox/sandbox-arguments.ts";
import { createdSchema, detailSchema } from "../sandbox/sandbox-views.ts";
import { defaultDataFolder, readArguments } from "./arguments.ts";

/** What `exec` ends with when SPACE, and not the command, failed: as with other runtimes. */
export const ownFailure = 125;

const wokenSeconds = 300;

/** What `exec` was asked for. */
export interface ExecArguments {
  readonly data: string | undefined;
  readonly sandboxId: string;
  readonly argv: readonly [string, ...string[]];
  readonly user: string;
  readonly cwd: string | undefined;
  readonly variables: Readonly<Record<string, string>>;
}

/** Everything after `--` is the command, whatever it looks like. Throws {@link UsageError}. */
export function parseExec(args: readonly string[]): ExecArguments {
  const at = args.indexOf("--");
  const [cmd, ...rest] = at < 0 ? [] : args.slice(at + 1);
  if (cmd === undefined)
    throw new UsageError("say what to run: ./space sandbox exec ID -- COMMAND [ARGUMENT…]");
  const options = {
    data: { type: "string" },
    user: { type: "string", default: "user" },
    cwd: { type: "string" },
    env: { type: "string", multiple: true },
  } as const;
  const { values, positionals } = readArguments(args.slice(0, at), { options, allowPositionals: true });
  return {
    data: values.data,
    sandboxId: oneSandbox(positionals),
    argv: [cmd, ...rest],
    user: values.user,
    cwd: values.cwd,
    variables: pairs("--env", values.env ?? []),
  };
}

/**
 * `./space sandbox exec ID -- COMMAND`: ends with the command's exit code. Its input is this process's where that is a
 * pipe or a file. Wakes a paused sandbox as a connecting SDK does.
 */
export async function exec(args: readonly string[], { environment }: SandboxHost): Promise<number> {
  try {
    return await run(args, environment);
  } catch (error) {
    process.stderr.write(`space: ${explain(error)}\n`);
    return ownFailure;
  }
}

async function run(args: readonly string[], environment: Environment): Promise<number> {
  const { data, sandboxId, ...command } = parseExec(args);
  const door = await findDoor(environment, { data, usual: defaultDataFolder });
  const { state } = answered(detailSchema, (await askApi(door, "GET", `/sandboxes/${sandboxId}`)).body);
  // A connection sets the end of what it wakes, and never shortens the life of what runs.
  const timeout = state === "running" ? 0 : wokenSeconds;
  const answer = await askApi(door, "POST", `/sandboxes/${sandboxId}/connect`, { timeout });
  const { envdAccessToken: accessToken } = answered(createdSchema, answer.body);
  try {
    return await runCommand(
      { sandboxUrl: door.sandboxUrl, sandboxId, accessToken },
      command,
      processStreams(),
    );
  } finally {
    process.stdin.destroy(); // what nobody reads any more must not keep this process
  }
}

function processStreams(): CommandStreams {
  return {
    input: isGiven() ? process.stdin : undefined,
    stdout: (bytes) => written(process.stdout, bytes),
    stderr: (bytes) => written(process.stderr, bytes),
    started: (signal) => {
      let asked = false;
      const onSignal = (): void => {
        // The first asks; who insists kills.
        signal(asked ? "SIGNAL_SIGKILL" : "SIGNAL_SIGTERM").catch(() => undefined); // it has ended already
        asked = true;
      };
      for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, onSignal);
    },
  };
}

/** A person's terminal is not read: a command that wants one needs a terminal of its own. */
function isGiven(): boolean {
  if (process.stdin.isTTY) return false;
  try {
    const kind = fstatSync(0);
    return kind.isFile() || kind.isFIFO() || kind.isSocket();
  } catch {
    return false; // closed
  }
}

/** A reader that is gone takes nothing more; the command's end is waited for all the same. */
function written(stream: Writable, bytes: Uint8Array): Promise<void> {
  if (stream.destroyed || stream.write(bytes)) return Promise.resolve();
  return new Promise((resolve) => {
    for (const event of ["drain", "close", "error"]) stream.once(event, resolve);
  });
}
