// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JsonObject } from "@bufbuild/protobuf";
import { Process, type ProcessInput, type ProcessSelector, Signal } from "@space/wire/envd";
import { clientStream, type RpcMethod, serverStream, unary } from "./connect-rpc.ts";
import { EnvdError } from "./envd-error.ts";
import { withinLimit } from "./hosted-activation.ts";
import type { HostedProcess } from "./hosted-process.ts";
import type { OperationContext } from "./operation-context.ts";
import { endEvent, startEvent } from "./process-events.ts";
import type { InputSender } from "./process-input.ts";
import { start, subscriber, terminalSize } from "./process-start.ts";
import type { ProcessName } from "./process-table.ts";
import type { RpcStream } from "./rpc-stream.ts";

const method = Process.method;
const sigterm = 15;
/** Longest wait for a killed process to be reaped. */
const reapLimitMs = 10_000;

/** The process service, by method name. */
export const processMethods: ReadonlyMap<string, RpcMethod> = new Map([
  ["Start", serverStream(method.start, "process", start)],
  [
    "Connect",
    serverStream(method.connect, "process", ({ process }, stream, context) =>
      connect(process, stream, context),
    ),
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
      const { position, activation } = context;
      const write = (handed?: () => void): Promise<void> => {
        return sendInput(findRunning(process, context), input, new Sender(context, handed));
      };
      // an input that has a name is written once, however often it is presented.
      if (position === undefined) await write();
      else await activation.inputs.once(position.key, position.answerOffset !== undefined, write);
      return {};
    }),
  ],
  ["StreamInput", clientStream(method.streamInput, "input", streamInput)],
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

/** A call that sends one input. */
class Sender implements InputSender {
  readonly #context: OperationContext;
  readonly #handed: (() => void) | undefined;

  constructor(context: OperationContext, handed: (() => void) | undefined) {
    this.#context = context;
    this.#handed = handed;
  }

  get gone(): boolean {
    return this.#context.gone;
  }

  handed(): void {
    this.#handed?.();
  }
}

async function sendInput(process: HostedProcess, input: ProcessInput | undefined, sender: InputSender) {
  const { terminal, stdin } = process.description;
  switch (input?.input.case) {
    case "stdin":
      if (terminal) throw new EnvdError("internal", "the process has a terminal: write to its pty");
      if (!stdin) throw new EnvdError("internal", "the process was started without stdin");
      return process.input.write(input.input.value, sender);
    case "pty":
      if (!terminal) throw new EnvdError("internal", "the process has no terminal");
      return process.input.write(input.input.value, sender);
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

function processInfo({ pid, description }: HostedProcess): JsonObject {
  const { cmd, args, envs, cwd, tag } = description;
  const config: JsonObject = { cmd, args: [...args], envs: { ...envs } };
  if (cwd !== undefined) config["cwd"] = cwd;
  return tag === undefined ? { config, pid } : { config, pid, tag };
}
