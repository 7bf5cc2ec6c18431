// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Digest,
  isSpaceError,
  parseDigest,
  parseWorkerId,
  SpaceError,
  type WorkerId,
} from "@space/model";
import * as v from "valibot";

import {
  type ApiLimits,
  defaultTimeoutSeconds,
  forkLimit,
  refreshLimitSeconds,
  templateLengthLimit,
  variableLengthLimit,
} from "./limits.ts";

/**
 * The bodies of E2B's requests. Members that SPACE knows are checked strictly; unknown ones are dropped, because newer
 * clients send more.
 */
export function bodySchemas(limits: ApiLimits) {
  const seconds = (max: number) =>
    v.pipe(
      v.number("must be a number of seconds"),
      v.integer("must be whole seconds"),
      v.minValue(0, "must not be negative"),
      v.maxValue(max, `must be at most ${max}`),
    );
  const timeout = seconds(limits.timeoutSeconds);
  const flag = v.boolean("must be true or false");
  const workerID = v.optional(workerId);
  const { v1, v2 } = defaultTimeoutSeconds;

  const create = {
    templateID: template,
    metadata: v.optional(stringMap(limits.metadataEntries, limits.metadataBytes), {}),
    envVars: v.optional(variables(limits), {}),
    autoPause: v.optional(flag, false),
    autoPauseMemory: v.optional(flag),
    autoResume: v.optional(v.object({ enabled: flag }, "must be an object with enabled")),
    autoRecover: v.optional(v.object({ enabled: flag }, "must be an object with enabled")),
    secure: v.optional(flag),
    allow_internet_access: v.optional(flag),
    network: v.optional(looseObject),
    mcp: v.optional(v.nullable(looseObject)),
    iam: v.optional(looseObject),
    volumeMounts: v.optional(v.array(looseObject, "must be a list")),
    workerID,
  };
  const connect = { memory: v.optional(flag, true), workerID, snapshot: v.optional(digest) };
  return {
    createV1: body({ ...create, timeout: v.optional(timeout, v1) }),
    createV2: body({ ...create, timeout: v.optional(timeout, v2) }),
    connectV1: body({ ...connect, timeout }),
    connectV2: body({ ...connect, timeout: v.optional(timeout, v2) }),
    resume: body({ ...connect, timeout: v.optional(timeout, v1), autoPause: v.optional(flag) }),
    timeout: body({ timeout }),
    pause: body({ memory: v.optional(flag, true) }),
    snapshot: body({ name: v.optional(snapshotName) }),
    fork: body({ timeout: v.optional(timeout, v2), count: v.optional(forks, 1) }),
    move: body({ workerID }),
    refresh: body({ duration: v.optional(seconds(refreshLimitSeconds), v1) }),
  };
}

export type BodySchemas = ReturnType<typeof bodySchemas>;
export type CreateBody = v.InferOutput<BodySchemas["createV2"]>;
export type ConnectBody = v.InferOutput<BodySchemas["connectV2"]>;

/** Throws `input/invalid` naming the first member that is wrong. */
export function parseBody<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new SpaceError("input/invalid", { field: v.getDotPath(issue) ?? "body", problem: issue.message });
}

function body<E extends v.ObjectEntries>(entries: E) {
  return v.pipe(v.custom<object>(isObject, "must be a JSON object"), v.object(entries, "is missing"));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const looseObject = v.custom<Readonly<Record<string, unknown>>>(isObject, "must be an object");

/** `name`, `name:tag`, `namespace/name`, `namespace/name:tag`, or an id, which has the form of a name. */
const template = v.pipe(
  v.string("must be a string"),
  v.maxLength(templateLengthLimit, `must have at most ${templateLengthLimit} characters`),
  v.regex(
    /^(?:[A-Za-z0-9][A-Za-z0-9._-]*\/)?[A-Za-z0-9][A-Za-z0-9._-]*(?::[A-Za-z0-9][A-Za-z0-9._-]*)?$/,
    "must be name, name:tag or namespace/name:tag",
  ),
);

/** What has the form of a template's name or is empty; which names are free, the service says. */
const snapshotName = v.union([v.literal(""), template], "must be name or name:tag");

const forks = v.pipe(
  v.number("must be a number"),
  v.integer("must be a whole number"),
  v.minValue(1, "must be at least 1"),
  v.maxValue(forkLimit, `must be at most ${forkLimit}`),
);

const digest = v.pipe(
  v.string("must be a string"),
  v.regex(/^[0-9a-f]{64}$/, "must be a snapshot's digest"),
  v.transform((text): Digest => parseDigest(text)),
);

const workerId = v.custom<WorkerId>(isWorkerId, "must be a worker's id");

function isWorkerId(text: unknown): text is WorkerId {
  try {
    parseWorkerId(text);
    return true;
  } catch (error) {
    if (isSpaceError(error, "input/invalid")) return false;
    throw error;
  }
}

/** Members named `__proto__` or `constructor` are kept as plain members. */
function stringMap(entries: number, bytes: number) {
  return v.pipe(
    v.custom<Record<string, string>>(isStringMap, "must be an object of strings"),
    v.check((map) => Object.keys(map).length <= entries, `must have at most ${entries} members`),
    v.check((map) => sizeOf(map) <= bytes, `must have at most ${bytes} bytes`),
    v.transform(
      (map): Readonly<Record<string, string>> => Object.freeze(Object.fromEntries(Object.entries(map))),
    ),
  );
}

function isStringMap(value: unknown): value is Record<string, string> {
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([name, text]) => typeof text === "string" && text.isWellFormed() && name.isWellFormed(),
    )
  );
}

function sizeOf(map: Record<string, string>): number {
  return Object.entries(map).reduce(
    (sum, [name, text]) => sum + Buffer.byteLength(name) + Buffer.byteLength(text),
    0,
  );
}

function variables(limits: ApiLimits) {
  return v.pipe(
    stringMap(limits.variableEntries, limits.variableBytes),
    v.check(
      (map) => Object.entries(map).every(([name, text]) => /^[^=\0]+$/.test(name) && !text.includes("\0")),
      "must not have empty names, nor = in a name, nor NUL anywhere",
    ),
    v.check(
      (map) =>
        Object.entries(map).every((entry) => Buffer.byteLength(entry.join("=")) <= variableLengthLimit),
      `must each have at most ${variableLengthLimit} bytes`,
    ),
  );
}
