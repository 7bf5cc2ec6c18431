// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chmodSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { type AuditSink, isErrorCode, isSpaceError, SpaceError } from "@space/model";
import { peerCredentials } from "@space/platform-linux";

const requestLimitBytes = 64 * 1024;
const answerLimitBytes = 300 * 1024 * 1024;
/** How long a caller may take to say what it wants, and the work to be done: receivers are waited for. */
const limitMs = 120_000;
const connectionsAtOnce = 16;

export type AdminHandler = (method: unknown, params: unknown) => Promise<unknown>;

/**
 * Serves operators of this machine at a Unix socket of mode 0600: one JSON request a connection, a line, and one answer.
 * Only a peer that the kernel says to be of this process's own user is heard; root on the machine is outside of what
 * SPACE defends against anyway.
 */
export function serveAdmin(path: string, handler: AdminHandler, audit: AuditSink): Promise<Server> {
  rmSync(path, { force: true }); // of a process that is gone: the data directory is held
  const server = createServer((socket) => {
    socket.on("error", () => undefined); // the caller has gone
    socket.setTimeout(limitMs, () => socket.destroy());
    if (!isOwn(socket)) {
      audit.record("mesh/refused", { problem: "admin socket: another user", peer: "" });
      socket.destroy();
      return;
    }
    void serveOne(socket, handler);
  });
  server.maxConnections = connectionsAtOnce;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      chmodSync(path, 0o600);
      resolve(server);
    });
  });
}

function isOwn(socket: Socket): boolean {
  try {
    return peerCredentials(socket).uid === process.getuid?.();
  } catch {
    return false; // gone, or of another pid namespace
  }
}

async function serveOne(socket: Socket, handler: AdminHandler): Promise<void> {
  try {
    const { method, params } = parseRequest(await readLine(socket, requestLimitBytes));
    socket.end(`${JSON.stringify({ ok: await handler(method, params) })}\n`);
  } catch (error) {
    const known = isSpaceError(error) ? error : new SpaceError("internal/bug", { where: "admin" });
    socket.end(`${JSON.stringify({ error: { code: known.code, details: known.details } })}\n`);
  }
}

function parseRequest(line: string): { readonly method: unknown; readonly params: unknown } {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null && "method" in value && "params" in value) return value;
  } catch {
    // refused below
  }
  throw new SpaceError("input/invalid", { field: "request", problem: "is not of its form" });
}

/** undefined when nobody listens there. Throws the other side's `SpaceError`, `link/closed` or `deadline/passed`. */
export async function askAdmin(
  path: string,
  method: string,
  params: unknown,
): Promise<{ readonly value: unknown } | undefined> {
  const socket = await dial(path);
  if (socket === undefined) return undefined;
  socket.setTimeout(limitMs, () =>
    socket.destroy(new SpaceError("deadline/passed", { what: method, limitMs })),
  );
  try {
    socket.write(`${JSON.stringify({ method, params })}\n`);
    return { value: readAnswer(await readLine(socket, answerLimitBytes)) };
  } finally {
    socket.destroy();
  }
}

function readAnswer(line: string): unknown {
  const answer: unknown = JSON.parse(line);
  if (typeof answer !== "object" || answer === null)
    throw new SpaceError("link/protocol", { problem: "no answer" });
  if ("ok" in answer) return answer.ok;
  const error = "error" in answer ? (answer.error as { code?: unknown; details?: unknown }) : {}; // cast: checked below
  const code = typeof error.code === "string" && isErrorCode(error.code) ? error.code : "internal/bug";
  throw new SpaceError(code, error.details as never); // cast: written by the same program on the other side
}

function dial(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(socket));
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined);
      else reject(new SpaceError("link/closed", {}, { cause: error }));
    });
  });
}

/** Everything up to the first line feed. Throws `input/too-large` or `link/closed`. */
function readLine(socket: Socket, limitBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    socket.on("data", (bytes: Buffer) => {
      const end = bytes.indexOf(10);
      pieces.push(end < 0 ? bytes : bytes.subarray(0, end));
      sizeBytes += bytes.length;
      if (end >= 0) resolve(Buffer.concat(pieces).toString("utf8"));
      else if (sizeBytes > limitBytes) {
        reject(new SpaceError("input/too-large", { what: "line", limitBytes }));
        socket.pause();
      }
    });
    socket.on("close", () => reject(new SpaceError("link/closed", {})));
    socket.on("error", (cause) =>
      reject(isSpaceError(cause) ? cause : new SpaceError("link/closed", {}, { cause })),
    );
  });
}
