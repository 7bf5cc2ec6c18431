// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { posix } from "node:path";
import { type ChunkSource, decodedChunks } from "./chunk-source.ts";
import { EnvdError } from "./envd-error.ts";
import { storeFile } from "./file-store.ts";
import type { GuestUser } from "./guest-users.ts";
import { answerJson } from "./json-answer.ts";
import { readParts } from "./multipart.ts";
import type { OperationContext } from "./operation-context.ts";

/** What an upload tells of each file: exactly these members. */
export interface UploadedFile {
  readonly name: string;
  readonly path: string;
  readonly type: "file";
}

export function uploadedFile(path: string): UploadedFile {
  return { name: posix.basename(path), path, type: "file" };
}

/** `POST /files`: one file as the body, or several as a form. Parents are made, existing files replaced. */
export async function uploadFiles(context: OperationContext): Promise<void> {
  const query = context.query();
  const user = await context.user(query.get("username"));
  const path = query.get("path") ?? "";
  const { body } = context.exchange;
  const source = decodedChunks(() => body.next(), context.header("content-encoding"));
  const type = (context.header("content-type") ?? "").split(";", 1).join("").trim().toLowerCase();
  switch (type) {
    case "multipart/form-data":
      return answerJson(context.exchange, 200, await uploadForm(context, path, user, source));
    case "application/octet-stream":
      return answerJson(context.exchange, 200, [await uploadBody(context, path, user, source)]);
    default:
      throw new EnvdError("invalid_argument", `unsupported content type '${type}'`);
  }
}

async function uploadBody(
  context: OperationContext,
  path: string,
  user: GuestUser,
  source: ChunkSource,
): Promise<UploadedFile> {
  if (path === "") throw new EnvdError("invalid_argument", "path is missing");
  const target = context.resolve(path, user);
  await storeFile(context.activation, target, user, source);
  return uploadedFile(target);
}

/** `path` wins over the parts' own names; a part without a name needs it. */
async function uploadForm(
  context: OperationContext,
  path: string,
  user: GuestUser,
  source: ChunkSource,
): Promise<UploadedFile[]> {
  const files = new Map<string, UploadedFile>();
  await readParts(context.header("content-type") ?? "", source, async ({ filename, content }) => {
    const name = path || (filename ?? "");
    if (name === "") throw new EnvdError("invalid_argument", "a file has neither a path nor a name");
    const target = context.resolve(name, user);
    if (files.has(target)) {
      throw new EnvdError(
        "invalid_argument",
        `you cannot upload multiple files to the same path '${target}'`,
      );
    }
    files.set(target, uploadedFile(target));
    await storeFile(context.activation, target, user, content);
  });
  return [...files.values()];
}
