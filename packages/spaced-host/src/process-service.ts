// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JsonObject } from "@bufbuild/protobuf";
import { type GuestError, GuestError as GuestRefusal, type SpawnRequest } from "@space/spaced-guest";
import {
  Process,
  type ProcessConfig,
  type ProcessInput,
  type ProcessSelector,
  type PTY,
  Signal,
  type StartRequest,
} from "@space/wire/envd";
import { clientStream, type RpcMethod, serverStream, unary } from "./connect-rpc.ts";
import { EnvdError, fileError } from "./envd-error.ts";
import type { GuestUser } from "./guest-users.ts";
import { withinLimit } from "./hosted-activation.ts";
import type { HostedProcess, ProcessDescription } from "./hosted-process.ts";
import type { OperationContext } from "./operation-context.ts";
import { endEvent, startEvent } from "./process-events.ts";
import type { ProcessName } from "./process-table.ts";
import { CallerGone } from "./request-body.ts";
import type { RpcStream } from "./rpc-stream.ts";
import { Subscriber } from "./subscriber.ts";

const method = Process.method;
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const sigkill = 9;
const sigterm = 15;
/** Longest wait for a killed process to be reaped. */
const reapLimitMs = 10_000;
const terminalSideLimit = 65_535;
const defaultTerminal = { cols: 80, rows: 24 };

/** The process service, by method name. */
export const processMethods: ReadonlyMap<string, RpcMethod> = new Map([
  ["Start", serverStream(method.start, start)],
  [
    "Connect",
    serverStream(method.connect, ({ process }, stream, context) => connect(process, stream, context)),
  ],
  [
    "List",
    unary(method.list, async (_request, context) => ({
      processes: context.activation.processes.list().map(processInfo),
    })),
  ],
  [
    "SendInput",
    unary(method.sendInput, async ({ process, input }, context) => {
      await sendInput(findRunning(process, context), input, context);
      return {};
    }),
  ],
  ["StreamInput", clientStream(method.streamInput, streamInput)],
  [
    "CloseStdin",
    unary(method.closeStdin, async ({ process }, context) => {
      const found = findRunning(process, context);
      if (found.description.terminal) throw new EnvdError("internal", "a terminal's input cannot be closed");
      if (!found.description.stdin) throw new EnvdError("internal", "the process was started without stdin");
      found.input.close();
      return {};
    }),
  ],
  [
    "SendSignal",
    unary(method.sendSignal, async ({ process, signal }, context) => {
      await sendSignal(findRunning(process, context), signal, context);
      return {};
    }),
  ],
  [
    "Update",
    unary(method.update, async ({ process, pty }, context) => {
      const found = findRunning(process, context);
      if (pty === undefined) return {};
      if (!found.description.terminal) throw new EnvdError("internal", "the process has no terminal");
      const { cols, rows } = terminalSize(pty);
      found.resize(cols, rows);
      return {};
    }),
  ],
]);

async function start(request: StartRequest, stream: RpcStream, context: OperationContext): Promise<void> {
  const { activation, exchange } = context;
  const { config, user, spawn, description } = await prepare(request, context);
  const hosted = activation.processes.reserve(description);
  try {
    const connection = await activation.pool.detach();
    try {
      if (exchange.gone) throw new CallerGone();
      const process = await connection.spawn(spawn, hosted.handlers);
      activation.processes.add(hosted, process.pid);
      // Before the process's own limit, so that its reader is told of the limit and not of its consequence.
      const reader = exchange.gone ? undefined : subscriber(stream, context);
      limitLifetime(hosted, context);
      hosted.started(process, reader);
    } catch (error) {
      connection.destroy();
      throw error;
    }
  } catch (error) {
    hosted.abandon();
    throw error instanceof GuestRefusal ? spawnError(error, config, spawn.cwd, user) : error;
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
  hosted.onceOver(context.activation.ports.clock.after(limitMs, () => hosted.signal(sigkill)));
}

function subscriber(stream: RpcStream, context: OperationContext): Subscriber {
  const options = { keepaliveMs: context.keepaliveMs(), deadlineMs: context.timeoutMs() };
  return new Subscriber(stream, options, context.activation.ports.clock);
}

async function connect(selector: ProcessSelector | undefined, stream: RpcStream, context: OperationContext) {
  const found = context.activation.processes.find(processName(selector));
  switch (found.kind) {
    case "running":
      return found.process.subscribe(subscriber(stream, context));
    case "ended":
      stream.send(startEvent(stream.codec, found.pid));
      stream.send(endEvent(stream.codec, found.exit));
      return stream.end();
  }
}

async function sendInput(
  process: HostedProcess,
  input: ProcessInput | undefined,
  { exchange }: OperationContext,
) {
  const { terminal, stdin } = process.description;
  switch (input?.input.case) {
    case "stdin":
      if (terminal) throw new EnvdError("internal", "the process has a terminal: write to its pty");
      if (!stdin) throw new EnvdError("internal", "the process was started without stdin");
      return process.input.write(input.input.value, exchange);
    case "pty":
      if (!terminal) throw new EnvdError("internal", "the process has no terminal");
      return process.input.write(input.input.value, exchange);
    case undefined:
      throw new EnvdError("invalid_argument", "the input is missing");
  }
}

async function streamInput(
  requests: () => Promise<{ readonly event: StreamInputEvent } | undefined>,
  context: OperationContext,
): Promise<JsonObject> {
  let target: HostedProcess | undefined;
  for (let request = await requests(); request !== undefined; request = await requests()) {
    const { event } = request;
    if (event.case === "start") target = findRunning(event.value.process, context);
    if (event.case !== "data") continue;
    if (target === undefined)
      throw new EnvdError("invalid_argument", "the first event must name the process");
    await sendInput(target, event.value.input, context);
  }
  return {};
}

type StreamInputEvent =
  | { readonly case: "start"; readonly value: { readonly process?: ProcessSelector | undefined } }
  | { readonly case: "data"; readonly value: { readonly input?: ProcessInput | undefined } }
  | { readonly case: "keepalive"; readonly value: unknown }
  | { readonly case: undefined; readonly value?: undefined };

/** A killed process is gone and reaped when the call returns; a terminated one may take its time, or refuse. */
async function sendSignal(process: HostedProcess, signal: number, context: OperationContext): Promise<void> {
  switch (signal) {
    case Signal.SIGTERM:
      return process.signal(sigterm);
    case Signal.SIGKILL: {
      const reaped = await withinLimit(context.activation.ports.clock, reapLimitMs, process.kill());
      if (!reaped) throw new EnvdError("deadline_exceeded", "the process has not ended yet");
      return;
    }
    default:
      throw new EnvdError("unimplemented", `signal ${signal} is not supported`);
  }
}

function findRunning(selector: ProcessSelector | undefined, context: OperationContext): HostedProcess {
  return context.activation.processes.findRunning(processName(selector));
}

function processName(selector: ProcessSelector | undefined): ProcessName {
  switch (selector?.selector.case) {
    case "pid":
      return { kind: "pid", pid: selector.selector.value };
    case "tag":
      return { kind: "tag", tag: selector.selector.value };
    case undefined:
      throw new EnvdError("invalid_argument", "the process selector is missing");
  }
}

function terminalSize({ size }: PTY): { cols: number; rows: number } {
  const { cols, rows } = size ?? defaultTerminal;
  if (cols > terminalSideLimit || rows > terminalSideLimit) {
    throw new EnvdError("invalid_argument", "the terminal is too large");
  }
  return { cols, rows };
}

function processInfo({ pid, description }: HostedProcess): JsonObject {
  const { cmd, args, envs, cwd, tag } = description;
  const config: JsonObject = { cmd, args: [...args], envs: { ...envs } };
  if (cwd !== undefined) config["cwd"] = cwd;
  return tag === undefined ? { config, pid } : { config, pid, tag };
}
