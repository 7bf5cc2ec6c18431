// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type * as v from "valibot";
import { UsageError } from "../failure.ts";
import { systemClock } from "../host/system-clock.ts";
import { type ApiDoor, askApi, findDoor } from "../sandbox/api-door.ts";
import {
  answered,
  oneSandbox,
  pairs,
  type SandboxHost,
  seconds,
  wholeNumber,
} from "../sandbox/sandbox-arguments.ts";
import {
  createdSchema,
  detailSchema,
  detailText,
  forkedSchema,
  listSchema,
  listText,
} from "../sandbox/sandbox-views.ts";
import { defaultDataFolder, readArguments, toStdout } from "./arguments.ts";
import { chainFacts } from "./sandbox-chain.ts";
import { exec } from "./sandbox-exec.ts";
import { sandboxLogs } from "./sandbox-logs.ts";

const common = { data: { type: "string" }, json: { type: "boolean", default: false } } as const;
const toStderr = (text: string): unknown => process.stderr.write(text);
const pageSize = 100;

type Subcommand = (args: readonly string[], host: SandboxHost) => Promise<number>;

const subcommands: Readonly<Record<string, Subcommand>> = {
  ls,
  create,
  exec,
  pause,
  resume,
  move,
  fork,
  kill,
  inspect,
  logs: sandboxLogs,
};

/**
 * `./space sandbox ls|create|exec|pause|resume|move|fork|kill|inspect|logs`: over the same API, and with the same rights, as E2B's
 * SDKs. `logs`, and the chain of `inspect`, come from the data directory instead.
 */
export async function sandbox(
  args: readonly string[],
  host: SandboxHost = { write: toStdout, writeError: toStderr, environment: process.env },
): Promise<number> {
  const [what = "", ...rest] = args;
  const subcommand = Object.hasOwn(subcommands, what) ? subcommands[what] : undefined;
  if (subcommand !== undefined) return subcommand(rest, host);
  throw new UsageError(`say what to do: ./space sandbox ${Object.keys(subcommands).join("|")}`);
}

function doorOf(
  values: { readonly data?: string | undefined },
  { environment }: SandboxHost,
): Promise<ApiDoor> {
  return findDoor(environment, { data: values.data, usual: defaultDataFolder });
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 1)}\n`;
}

async function ls(args: readonly string[], host: SandboxHost): Promise<number> {
  const options = { ...common, state: { type: "string", multiple: true } } as const;
  const { values } = readArguments(args, { options });
  const states = values.state ?? ["running", "paused", "lost"];
  const door = await doorOf(values, host);
  const found: v.InferOutput<typeof listSchema> = [];
  let next: string | undefined;
  do {
    const query: URLSearchParams = new URLSearchParams({ limit: `${pageSize}`, state: states.join(",") });
    if (next !== undefined) query.set("nextToken", next);
    const answer = await askApi(door, "GET", `/v2/sandboxes?${query.toString()}`);
    found.push(...answered(listSchema, answer.body));
    next = answer.headers.get("x-next-token") ?? undefined; // where the list goes on
  } while (next !== undefined);
  host.write(values.json ? jsonText({ sandboxes: found }) : listText(found, systemClock.wallMs()));
  return 0;
}

async function create(args: readonly string[], host: SandboxHost): Promise<number> {
  const options = {
    ...common,
    template: { type: "string", default: "base" },
    timeout: { type: "string" },
    metadata: { type: "string", multiple: true },
    env: { type: "string", multiple: true },
    "on-timeout": { type: "string", default: "kill" },
    "auto-resume": { type: "boolean", default: false },
    worker: { type: "string" },
  } as const;
  const { values } = readArguments(args, { options });
  const onTimeout = values["on-timeout"];
  if (onTimeout !== "kill" && onTimeout !== "pause") throw new UsageError("--on-timeout is kill or pause");
  const body = {
    templateID: values.template,
    metadata: pairs("--metadata", values.metadata ?? []),
    envVars: pairs("--env", values.env ?? []),
    autoPause: onTimeout === "pause",
    ...(values["auto-resume"] && { autoResume: { enabled: true } }),
    ...(values.timeout !== undefined && { timeout: seconds(values.timeout) }),
    ...(values.worker !== undefined && { workerID: values.worker }),
  };
  const answer = await askApi(await doorOf(values, host), "POST", "/v2/sandboxes", body);
  const { sandboxID } = answered(createdSchema, answer.body);
  host.write(values.json ? jsonText(withoutTokens(answer.body)) : `${sandboxID}\n`);
  return 0;
}

/** Tokens stay out of terminals and logs; whoever holds the key gets them from the API. */
function withoutTokens(body: unknown): unknown {
  return JSON.parse(
    JSON.stringify(body, (name, value: unknown) => (name.endsWith("AccessToken") ? undefined : value)),
  );
}

async function pause(args: readonly string[], host: SandboxHost): Promise<number> {
  const options = { ...common, "files-only": { type: "boolean", default: false } } as const;
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const id = oneSandbox(positionals);
  const door = await doorOf(values, host);
  await askApi(door, "POST", `/sandboxes/${id}/pause`, { memory: !values["files-only"] });
  return done(id, "paused", { host, json: values.json });
}

async function resume(args: readonly string[], host: SandboxHost): Promise<number> {
  const options = {
    ...common,
    "files-only": { type: "boolean", default: false },
    timeout: { type: "string" },
    worker: { type: "string" },
  } as const;
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const id = oneSandbox(positionals);
  const body = {
    memory: !values["files-only"],
    timeout: seconds(values.timeout ?? "300"),
    ...(values.worker !== undefined && { workerID: values.worker }),
  };
  await askApi(await doorOf(values, host), "POST", `/sandboxes/${id}/resume`, body);
  return done(id, "running", { host, json: values.json });
}

/** Says whether the memory went along: where it could not, its processes have ended and its files are there. */
async function move(args: readonly string[], host: SandboxHost): Promise<number> {
  const options = { ...common, to: { type: "string" } } as const;
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const id = oneSandbox(positionals);
  const body = values.to === undefined ? {} : { workerID: values.to };
  const { headers } = await askApi(await doorOf(values, host), "POST", `/sandboxes/${id}/move`, body);
  const memoryMoved = headers.get("space-memory-moved") === "true";
  host.write(
    values.json
      ? jsonText({ sandboxID: id, state: "running", memoryMoved })
      : `${id} moved, ${memoryMoved ? "with its memory" : "with its files alone"}\n`,
  );
  return 0;
}

/** Children that could be made are told, and those that could not; ends with 1 where one could not. */
async function fork(args: readonly string[], host: SandboxHost): Promise<number> {
  const options = {
    ...common,
    count: { type: "string", default: "1" },
    timeout: { type: "string", default: "300" },
  } as const;
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const id = oneSandbox(positionals);
  const body = { count: wholeNumber("--count", values.count), timeout: seconds(values.timeout) };
  const answer = await askApi(await doorOf(values, host), "POST", `/sandboxes/${id}/fork`, body);
  const forked = answered(forkedSchema, answer.body);
  if (values.json) host.write(jsonText({ forks: withoutTokens(answer.body) }));
  for (const one of values.json ? [] : forked) {
    if ("sandbox" in one) host.write(`${one.sandbox.sandboxID}\n`);
    else host.writeError(`space: ${one.error.message}\n`);
  }
  return forked.every((one) => "sandbox" in one) ? 0 : 1;
}

async function kill(args: readonly string[], host: SandboxHost): Promise<number> {
  const { values, positionals } = readArguments(args, { options: common, allowPositionals: true });
  const id = oneSandbox(positionals);
  await askApi(await doorOf(values, host), "DELETE", `/sandboxes/${id}`);
  return done(id, "killed", { host, json: values.json });
}

function done(
  sandboxID: string,
  state: string,
  { host, json }: { readonly host: SandboxHost; readonly json: boolean },
): number {
  host.write(json ? jsonText({ sandboxID, state }) : `${sandboxID} ${state}\n`);
  return 0;
}

async function inspect(args: readonly string[], host: SandboxHost): Promise<number> {
  const { values, positionals } = readArguments(args, { options: common, allowPositionals: true });
  const id = oneSandbox(positionals);
  const answer = await askApi(await doorOf(values, host), "GET", `/sandboxes/${id}`);
  const detail = answered(detailSchema, answer.body);
  const isElsewhere = values.data === undefined && (host.environment["E2B_API_URL"] ?? "") !== "";
  const chain = isElsewhere ? undefined : await chainFacts(values.data ?? defaultDataFolder, id);
  host.write(
    values.json
      ? jsonText({ ...Object(withoutTokens(detail)), chain: chain ?? null })
      : detailText(detail, chain),
  );
  return 0;
}
