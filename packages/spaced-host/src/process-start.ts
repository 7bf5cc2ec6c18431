// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { GuestError, type SpawnRequest } from "@space/spaced-guest";
import type { ProcessConfig, PTY, StartRequest } from "@space/wire/envd";
import { EnvdError, fileError } from "./envd-error.ts";
import type { GuestUser } from "./guest-users.ts";
import type { HostedProcess, ProcessDescription } from "./hosted-process.ts";
import type { OperationContext } from "./operation-context.ts";
import { endEvent, startEvent } from "./process-events.ts";
import { CallerGone } from "./request-body.ts";
import type { RpcStream } from "./rpc-stream.ts";
import type { RememberedStart } from "./start-memory.ts";
import { idempotencyKey, startDigest } from "./start-outcome.ts";
import { Subscriber } from "./subscriber.ts";

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const terminalSideLimit = 65_535;
const defaultTerminal = { cols: 80, rows: 24 };

/** `Start`: runs a process, or finds the one that the caller's idempotency key has run. */
export async function start(
  request: StartRequest,
  stream: RpcStream,
  context: OperationContext,
): Promise<void> {
  const key = idempotencyKey(context);
  if (key === undefined) {
    await run(request, stream, context);
    return;
  }
  const { starts } = context.activation;
  const claim = starts.claim(key, startDigest(request, context));
  switch (claim.kind) {
    case "unknown":
      throw new EnvdError(
        "aborted",
        "whether a start with this idempotency key ran is unknown: it is not run",
      );
    case "known":
      return goOnWith(claim.start, stream, context);
    case "new":
      return remember(
        claim.start,
        run(request, stream, context),
        () => starts.release(key, claim.start),
        context,
      );
  }
}

async function remember(
  start: RememberedStart,
  running: Promise<HostedProcess>,
  release: () => void,
  { stream }: OperationContext,
): Promise<void> {
  start.streamKey = stream?.key;
  try {
    start.ran(await running);
  } catch (error) {
    const isRefusal = error instanceof EnvdError || error instanceof CallerGone;
    if (isRefusal) release();
    else start.lost(); // the guest may have been asked
    throw error;
  }
}

/** the start was made before. Its answer goes on from the beginning where it is still kept, else as of now. */
async function goOnWith(start: RememberedStart, stream: RpcStream, context: OperationContext): Promise<void> {
  const process = await start.process();
  if (replay(start, context)) return;
  if (process !== undefined) return process.subscribe(subscriber(stream, context));
  const outcome = await start.outcome();
  switch (outcome.kind) {
    case "did-not-run":
      throw new EnvdError("aborted", "this idempotency key was reported as not run: use another one");
    case "unknown":
      throw new EnvdError("aborted", "whether the start with this idempotency key ran is unknown");
    case "running":
      return;
    case "ended":
      stream.send(startEvent(stream.codec, outcome.pid));
      stream.send(endEvent(stream.codec, outcome.exit));
      return stream.end();
  }
}

/** The first answer, whole, in place of this one; what carried it before is cut and cannot take it back. */
function replay(start: RememberedStart, { stream: mine, activation }: OperationContext): boolean {
  const { streams } = activation;
  const first = start.streamKey === undefined ? undefined : streams.find(start.streamKey);
  if (mine === undefined || first === undefined || first === mine) return false;
  if (first.codec !== mine.codec || !first.answer.reaches(0)) return false;
  const exchange = mine.answer.release();
  start.streamKey = mine.key;
  streams.rename(first, mine.key);
  if (exchange !== undefined) streams.continue(first, exchange, {});
  return true;
}

async function run(
  request: StartRequest,
  stream: RpcStream,
  context: OperationContext,
): Promise<HostedProcess> {
  const { activation } = context;
  const { config, user, spawn, description } = await prepare(request, context);
  const hosted = activation.processes.reserve(description);
  try {
    const { pool } = activation;
    const connection = await pool.detach();
    try {
      if (context.gone) throw new CallerGone();
      const process = await connection.spawn(spawn, hosted.handlers);
      activation.processes.add(hosted, process.pid);
      // Before the process's own limit, so that its reader is told of the limit and not of its consequence.
      const reader = context.gone ? undefined : subscriber(stream, context);
      limitLifetime(hosted, context);
      hosted.onceOver(() => pool.readmit(connection));
      hosted.started(process, reader);
      return hosted;
    } catch (error) {
      pool.readmit(connection);
      throw error;
    }
  } catch (error) {
    hosted.abandon();
    throw error instanceof GuestError ? spawnError(error, config, spawn.cwd, user) : error;
  }
}

async function prepare(request: StartRequest, context: OperationContext) {
  const config = request.process;
  if (config === undefined || config.cmd === "")
    throw new EnvdError("invalid_argument", "process.cmd is missing");
  const user = await context.user();
  const terminal = request.pty === undefined ? undefined : terminalSize(request.pty);
  const description: ProcessDescription = {
    cmd: config.cmd,
    args: config.args,
    envs: config.envs,
    cwd: config.cwd,
    tag: request.tag,
    terminal: terminal !== undefined,
    stdin: terminal !== undefined || request.stdin !== false,
    privileged: user.uid === 0,
  };
  const cwd = context.resolve(config.cwd ?? "", user);
  const argv = [config.cmd, ...config.args];
  if (argv.some((text) => text.includes("\0")))
    throw new EnvdError("invalid_argument", "an argument holds a zero byte");
  const { name: _name, home: _home, ...ids } = user;
  const base = { argv, env: environment(config, user, context), cwd, ...ids, stdin: description.stdin };
  const spawn: SpawnRequest = terminal === undefined ? base : { ...base, pty: terminal };
  return { config, user, spawn, description };
}

/** Nothing is inherited: a path, who the user is, the sandbox's own variables, and the request's. */
function environment(
  config: ProcessConfig,
  user: GuestUser,
  context: OperationContext,
): Record<string, string> {
  const { name, home } = user;
  const { variables } = context.activation.facts;
  const env = { PATH: defaultPath, HOME: home, USER: name, LOGNAME: name, ...variables, ...config.envs };
  for (const [key, value] of Object.entries(env)) {
    if (key === "" || key.includes("=") || key.includes("\0") || value.includes("\0")) {
      throw new EnvdError("invalid_argument", `environment variable '${key}' is not valid`);
    }
  }
  return env;
}

function spawnError(cause: GuestError, config: ProcessConfig, cwd: string, user: GuestUser): EnvdError {
  if (cause.step === "chdir") {
    if (cause.code === "ENOENT")
      return new EnvdError("invalid_argument", `cwd '${cwd}' does not exist`, { cause });
    return fileError(cause, cwd);
  }
  if (cause.code === "EAGAIN" || cause.code === "ENOMEM" || cause.code === "ENOSYS")
    return fileError(cause, config.cmd);
  const reason = cause.code === "ENOENT" ? "executable file not found" : `${cause.step}: ${cause.code}`;
  return new EnvdError(
    "invalid_argument",
    `error starting process '${config.cmd}' as '${user.name}': ${reason}`,
    { cause },
  );
}

/** The time limit of a start is its process's too: it is killed then, whether anybody still reads or not. */
function limitLifetime(hosted: HostedProcess, context: OperationContext): void {
  const limitMs = context.timeoutMs();
  if (limitMs === undefined) return;
  hosted.limitLife(limitMs);
}

/** A reader of process events on this stream. */
export function subscriber(stream: RpcStream, context: OperationContext): Subscriber {
  const { stream: named } = context;
  const options = { keepaliveMs: context.keepaliveMs(), deadlineMs: context.timeoutMs(), named };
  return new Subscriber(stream, options, context.activation.ports.clock);
}

/** Throws `invalid_argument` for a size that no terminal has. */
export function terminalSize({ size }: PTY): { cols: number; rows: number } {
  const { cols, rows } = size ?? defaultTerminal;
  if (cols > terminalSideLimit || rows > terminalSideLimit) {
    throw new EnvdError("invalid_argument", "the terminal is too large");
  }
  return { cols, rows };
}
