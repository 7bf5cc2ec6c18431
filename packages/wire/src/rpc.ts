// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Clock, isErrorCode, isSpaceError, SpaceError } from "@space/model";
import { headLimitBytes } from "./frame.ts";
import { decodeJson, encodeJson } from "./json.ts";
import type { FrameLink } from "./link.ts";
import type { LinkStream, StreamHandlers } from "./link-stream.ts";

/** A command to the other end of a link: one head each way, no body. */
export type RpcHandler = (params: unknown, signal: AbortSignal) => Promise<unknown>;

export const defaultRpcDeadlineMs = 30_000;

/** Whether an opener's head is a command, and which. */
export function rpcMethod(head: unknown): string | undefined {
  if (typeof head !== "object" || head === null || !("rpc" in head)) return undefined;
  return typeof head.rpc === "string" ? head.rpc : undefined;
}

export interface RpcCall {
  readonly method: string;
  readonly params: unknown;
  readonly deadlineMs?: number;
}

/**
 * Sends a command and waits. Rejects with the other side's `SpaceError`; with `link/closed`, `link/protocol` or
 * `deadline/passed` when no proper answer came: the effect is then unknown.
 */
export function callRpc(link: FrameLink, clock: Clock, call: RpcCall): Promise<unknown> {
  const limitMs = call.deadlineMs ?? defaultRpcDeadlineMs;
  return new Promise((resolve, reject) => {
    let answer: Buffer | undefined;
    const fail = (error: SpaceError, reason: string): void => {
      cancel();
      stream.reset(reason);
      reject(error);
    };
    const cancel = clock.after(limitMs, () => {
      fail(new SpaceError("deadline/passed", { what: call.method, limitMs }), "deadline");
    });
    const stream = link.open(
      encodeJson({ rpc: call.method, params: call.params }),
      {
        onHead: (head) => {
          answer = head;
        },
        onData: () => fail(protocolError("data in an answer"), "unexpected"),
        onEnd: () => {
          cancel();
          settleAnswer(answer, resolve, reject);
        },
        onReset: (cause) => {
          cancel();
          reject(new SpaceError("link/closed", {}, { cause }));
        },
      },
      true,
    );
  });
}

function settleAnswer(
  head: Buffer | undefined,
  resolve: (value: unknown) => void,
  reject: (error: SpaceError) => void,
): void {
  try {
    const answer = decodeJson(head?.toString("utf8") ?? "");
    if (typeof answer === "object" && answer !== null && "error" in answer) reject(decodeError(answer.error));
    else if (typeof answer === "object" && answer !== null && "ok" in answer) resolve(answer.ok);
    else reject(protocolError("bad answer"));
  } catch (cause) {
    reject(protocolError("bad answer", cause));
  }
}

/**
 * Answers one command stream with the handler's result or error. An error that is not a `SpaceError` shows as
 * `internal/bug` and is reported to the link's owner. The signal fires when the caller has given up.
 */
export function serveRpc(
  stream: LinkStream,
  head: { readonly rpc: string; readonly params?: unknown },
  handlers: ReadonlyMap<string, RpcHandler>,
): StreamHandlers {
  const abort = new AbortController();
  const handler = handlers.get(head.rpc);
  const run = async (): Promise<string> => {
    if (handler === undefined) throw protocolError("unknown command");
    const answer = encodeJson({ ok: (await handler(head.params, abort.signal)) ?? null });
    if (Buffer.byteLength(answer) <= headLimitBytes) return answer;
    throw new SpaceError("input/too-large", { what: "answer", limitBytes: headLimitBytes });
  };
  run().then(
    (answer) => stream.sendHead(answer, true),
    (error: unknown) => {
      if (!isSpaceError(error)) stream.report(error);
      stream.sendHead(encodeJson({ error: encodeError(error, head.rpc) }), true);
    },
  );
  return {
    onData: () => {
      stream.reset("unexpected");
      abort.abort();
    },
    onEnd: () => undefined,
    onReset: () => abort.abort(),
  };
}

/** The public part of an error: code and details, never the cause. */
export function encodeError(error: unknown, where: string): { code: string; details: unknown } {
  if (error instanceof SpaceError) return { code: error.code, details: error.details };
  return { code: "internal/bug", details: { where } };
}

export function decodeError(value: unknown): SpaceError {
  if (typeof value === "object" && value !== null && "code" in value && "details" in value) {
    const { code, details } = value;
    if (typeof code === "string" && isErrorCode(code) && typeof details === "object" && details !== null) {
      return new SpaceError(code, details);
    }
  }
  return protocolError("unknown error");
}

function protocolError(problem: string, cause?: unknown): SpaceError {
  return new SpaceError("link/protocol", { problem }, { cause });
}
