// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { parseSandboxId, SpaceError } from "@space/model";
import * as v from "valibot";
import { UsageError } from "../failure.ts";
import type { Environment } from "./api-door.ts";

/** What the commands reach of the process that they run in. */
export interface SandboxHost {
  readonly write: (text: string) => unknown;
  readonly writeError: (text: string) => unknown;
  readonly environment: Environment;
}

/** The API's answer in the form that it has in this version. Throws `link/protocol`. */
export function answered<S extends v.GenericSchema>(schema: S, body: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, body);
  if (result.success) return result.output;
  throw new SpaceError("link/protocol", { problem: "an answer of another form" });
}

/** The one sandbox that is named. Throws {@link UsageError} and `input/invalid`. */
export function oneSandbox(positionals: readonly string[]): string {
  const [id, ...rest] = positionals;
  if (id === undefined || rest.length > 0)
    throw new UsageError("name one sandbox; ./space sandbox ls shows them");
  return parseSandboxId(id);
}

/** `NAME=VALUE` of an option that may come often. Throws {@link UsageError}. */
export function pairs(option: string, texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text): [string, string] => {
      const at = text.indexOf("=");
      if (at < 1) throw new UsageError(`${option} takes NAME=VALUE`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

/** Whole seconds. Throws {@link UsageError}. */
export function seconds(text: string): number {
  return wholeNumber("--timeout", text);
}

/** An option's whole number. Throws {@link UsageError}. */
export function wholeNumber(option: string, text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw new UsageError(`${option} takes a whole number`);
  return Number(text);
}
