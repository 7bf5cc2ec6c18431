// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { followLogs, newestRecords } from "../audit/log-tail.ts";
import { recordText, type ShownRecord } from "../audit/record-text.ts";
import { findAuditLogs } from "../data/audit-directories.ts";
import { UsageError } from "../failure.ts";
import { oneSandbox, type SandboxHost } from "../sandbox/sandbox-arguments.ts";
import { defaultDataFolder, readArguments } from "./arguments.ts";

const mostLines = 100_000;

/**
 * `./space sandbox logs ID`: what the audit logs of the installation say of one sandbox. What its processes print is not
 * kept by SPACE: it goes to whoever started or attached to them.
 */
export async function sandboxLogs(args: readonly string[], { write }: SandboxHost): Promise<number> {
  const options = {
    data: { type: "string", default: defaultDataFolder },
    json: { type: "boolean", default: false },
    follow: { type: "boolean", short: "f", default: false },
    lines: { type: "string", short: "n", default: "200" },
    sensitive: { type: "boolean", default: false },
  } as const;
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const { data, json, sensitive } = values;
  const id = oneSandbox(positionals);
  const count = Number(values.lines);
  if (!Number.isInteger(count) || count < 0 || count > mostLines)
    throw new UsageError(`-n takes 0 to ${mostLines}`);
  const isAbout = ({ record }: ShownRecord): boolean => mentions(record.fields, id);
  const show = (line: ShownRecord): void => {
    if (isAbout(line)) write(`${recordText(line, { json, sensitive })}\n`);
  };
  for (const line of newestRecords(findAuditLogs(data), count, isAbout)) show(line);
  if (!values.follow) return 0;
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  await followLogs(() => findAuditLogs(data), show, stop.signal);
  return 0;
}

/** Whether a field, or a part of one, is this sandbox's id. */
function mentions(value: unknown, id: string): boolean {
  if (typeof value === "string") return value === id;
  return (
    typeof value === "object" && value !== null && Object.values(value).some((part) => mentions(part, id))
  );
}
