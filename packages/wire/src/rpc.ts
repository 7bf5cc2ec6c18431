// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Clock, isErrorCode, SpaceError } from "@space/model";
import type { FrameLink } from "./link.ts";
import type { LinkStream, StreamHandlers } from "./link-stream.ts";

/** A command to the other end of a link: one head each way, no body. */
export type RpcHandler = (params: unknown, signal: AbortSignal) => Promise<unknown>;

export const defaultRpcDeadlineMs = 30_000;

/** JSON that keeps bigints: `{"$bigint":"12"}`. */
export function encodeJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "bigint" ? { $bigint: member.toString() } : member,
  );
}

export function decodeJson(text: string): unknown {
  return JSON.parse(text, (_key, member: unknown) => {
    if (typeof member !== "object" || member === null || !("$bigint" in member)) return member;
    const digits = member.$bigint;
    if (typeof digits !== "string" || !/^-?[0-9]{1,20}$/.test(digits)) {
      throw new SpaceError("link/protocol", { problem: "bad bigint" });
    }
    return BigInt(digits);
  });
}

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

/** Sends a command and waits. Rejects with the other side's `SpaceError`, `link/closed` or `deadline/passed` (the effect is then unknown). */
export function callRpc(link: FrameLink, clock: Clock, call: RpcCall): Promise<unknown> {
  const limitMs = call.deadlineMs ?? defaultRpcDeadlineMs;
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => {
      stream.reset("deadline");
      reject(new SpaceError("deadline/passed", { what: call.method, limitMs }));
    });
    const settle = (action: () => void): void => {
      cancel();
      action();
    };
    const stream = link.open(
      encodeJson({ rpc: call.method, params: call.params }),
      {
        onHead: (head) => settle(() => settleAnswer(head, resolve, reject)),
        onData: () => stream.reset("unexpected"),
        onEnd: () => undefined,
        onReset: () => settle(() => reject(new SpaceError("link/closed", {}))),
      },
      true,
    );
  });
}

function settleAnswer(
  head: Buffer,
  resolve: (value: unknown) => void,
  reject: (error: SpaceError) => void,
): void {
  try {
    const answer = decodeJson(head.toString("utf8"));
    if (typeof answer === "object" && answer !== null && "error" in answer) reject(decodeError(answer.error));
    else if (typeof answer === "object" && answer !== null && "ok" in answer) resolve(answer.ok);
    else reject(new SpaceError("link/protocol", { problem: "bad answer" }));
  } catch (cause) {
    reject(new SpaceError("link/protocol", { problem: "bad answer" }, { cause }));
  }
}

/** Answers one command stream with the handler's result or error. An error that is not a `SpaceError` shows as `internal/bug`. */
export function serveRpc(
  stream: LinkStream,
  head: { readonly rpc: string; readonly params?: unknown },
  handlers: ReadonlyMap<string, RpcHandler>,
): StreamHandlers {
  const abort = new AbortController();
  const handler = handlers.get(head.rpc);
  const run = async (): Promise<unknown> => {
    if (handler === undefined) throw new SpaceError("link/protocol", { problem: "unknown command" });
    return handler(head.params, abort.signal);
  };
  run().then(
    (ok: unknown) => stream.sendHead(encodeJson({ ok: ok ?? null }), true),
    (error: unknown) => stream.sendHead(encodeJson({ error: encodeError(error, head.rpc) }), true),
  );
  return {
    onData: () => stream.reset("unexpected"),
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
  return new SpaceError("link/protocol", { problem: "unknown error" });
}
