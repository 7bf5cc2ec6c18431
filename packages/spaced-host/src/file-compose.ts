// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { members } from "@space/model";
import { GuestError, type GuestWriter } from "@space/spaced-guest";
import { EnvdError, fileError, onPath } from "./envd-error.ts";
import { uploadedFile } from "./file-upload.ts";
import type { GuestUser } from "./guest-users.ts";
import type { HostedActivation } from "./hosted-activation.ts";
import { answerJson } from "./json-answer.ts";
import type { OperationContext } from "./operation-context.ts";

const requestLimitBytes = 1024 * 1024;
const sourceLimit = 10_000;

interface ComposeRequest {
  readonly destination: string;
  readonly sources: readonly string[];
  readonly username: string | undefined;
}

/** `POST /files/compose`: files become one, in their order; they are removed once it is whole. */
export async function composeFiles(context: OperationContext): Promise<void> {
  const { activation, exchange } = context;
  const request = parseRequest(await exchange.body.collect(requestLimitBytes));
  const user = await context.user(request.username);
  const destination = context.resolve(request.destination, user);
  const sources = request.sources.map((path) => context.resolve(path, user));
  const suffix = Buffer.from(activation.ports.random.bytes(8)).toString("hex");
  const partial = `${destination}.${suffix}.partial`;
  try {
    await concatenate(activation, sources, partial, user);
    await onPath(
      destination,
      activation.pool.use((guest) => guest.rename(partial, destination, user)),
    );
  } catch (error) {
    await activation.pool.use((guest) => guest.remove(partial)).catch(() => undefined); // the first error is the one to tell
    throw error;
  }
  for (const path of new Set(sources)) {
    if (path !== destination)
      await onPath(
        path,
        activation.pool.use((guest) => guest.remove(path)),
      );
  }
  answerJson(exchange, 200, uploadedFile(destination));
}

async function concatenate(
  activation: HostedActivation,
  sources: readonly string[],
  target: string,
  user: GuestUser,
): Promise<void> {
  const { pool } = activation;
  await pool.use(async (guest) => {
    const writer = guest.writeStream(target, { uid: user.uid, gid: user.gid, makeParents: true });
    try {
      for (const path of sources) await append(activation, path, writer);
    } catch (error) {
      writer.abort();
      throw error;
    }
    await onPath(target, writer.end());
  });
}

/** Copies one file to the writer, no faster than it is written. */
async function append({ pool }: HostedActivation, path: string, writer: GuestWriter): Promise<void> {
  await pool.use(async (guest) => {
    let waiting = false;
    const wait = (): void => {
      if (waiting) return;
      waiting = true;
      guest.pause();
      void writer.drained().then(() => {
        waiting = false;
        guest.resume();
      });
    };
    try {
      await guest.readStream(
        path,
        {},
        {
          onEntry: () => undefined,
          onData: (chunk) => {
            if (!writer.write(chunk)) wait();
          },
        },
      );
    } catch (error) {
      throw error instanceof GuestError ? fileError(error, path) : error;
    } finally {
      guest.resume();
    }
  });
}

function parseRequest(bytes: Buffer): ComposeRequest {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new EnvdError("invalid_argument", "the body is not JSON", { cause });
  }
  try {
    const {
      destination,
      source_paths: sources,
      username,
    } = members(value, "body", ["destination", "source_paths"], ["username"]);
    if (typeof destination !== "string" || destination === "") throw bad("destination");
    if (username !== undefined && typeof username !== "string") throw bad("username");
    if (!Array.isArray(sources) || sources.length === 0 || sources.length > sourceLimit)
      throw bad("source_paths");
    return { destination, username, sources: sources.map(parsePath) };
  } catch (cause) {
    if (cause instanceof EnvdError) throw cause;
    throw new EnvdError("invalid_argument", "the body is not a compose request", { cause });
  }
}

function parsePath(path: unknown): string {
  if (typeof path !== "string" || path === "") throw bad("source_paths");
  return path;
}

function bad(field: string): EnvdError {
  return new EnvdError("invalid_argument", `${field} is not valid`);
}
