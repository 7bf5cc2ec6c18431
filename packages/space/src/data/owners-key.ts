// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "@space/model";
import { replaceFile } from "@space/platform-linux/durable-file";

/**
 * The default tenant's API key, which is kept beside the database, readable by its owner alone: the database has only its
 * hash. Undefined before the first start.
 */
export function readOwnersKey(data: string): Secret<string> | undefined {
  const path = join(data, "api-key");
  return existsSync(path) ? new Secret(readFileSync(path, "utf8").trim()) : undefined;
}

/** The same, made where there is none. */
export async function ownersKey(
  data: string,
  make: () => Promise<{ readonly text: Secret<string> }>,
): Promise<Secret<string>> {
  const known = readOwnersKey(data);
  if (known !== undefined) return known;
  const { text } = await make();
  await replaceFile(join(data, "api-key"), `${text.reveal()}\n`);
  return text;
}
