// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { type LogReport, verifyLog } from "@space/audit-log";
import { followLogs, newestRecords } from "../audit/log-tail.ts";
import { recordText } from "../audit/record-text.ts";
import { auditTrust, findAuditLogs } from "../data/audit-directories.ts";
import { UsageError } from "../failure.ts";
import { defaultDataFolder, readArguments, toStdout, type Write } from "./arguments.ts";

const options = {
  data: { type: "string" },
  json: { type: "boolean", default: false },
  "root-key": { type: "string" },
  checkpoint: { type: "string" },
  follow: { type: "boolean", short: "f", default: false },
  lines: { type: "string", short: "n", default: "20" },
  sensitive: { type: "boolean", default: false },
} as const;

/**
 * `./space audit verify` reads every audit log of a data directory and exits 1 when any record was altered, removed,
 * reordered or cut off; `./space audit tail` shows the newest records. Neither needs SPACE to run, and both may run beside it.
 */
export async function audit(args: readonly string[], write: Write = toStdout): Promise<number> {
  const { values, positionals } = parse(args);
  const data = values.data ?? defaultDataFolder;
  const [what, ...rest] = positionals;
  if (rest.length === 0 && what === "verify") return verify(data, values, write);
  if (rest.length === 0 && what === "tail") return tail(data, values, write);
  throw new UsageError("say what to do: ./space audit verify, or ./space audit tail");
}

type Values = ReturnType<typeof parse>["values"];

function verify(data: string, values: Values, write: Write): number {
  const trust = auditTrust(data, values["root-key"]);
  const { checkpoint } = values;
  const kept = checkpoint === undefined ? new Map<string, string[]>() : keptTokens(checkpoint);
  const logs = findAuditLogs(data);
  const reports = logs.map((log) => ({
    directory: log.directory,
    ...verifyLog({ ...log, trust, kept: kept.get(log.process) ?? [] }),
  }));
  const missing = [...kept.keys()].filter((name) => !logs.some(({ process }) => process === name));
  const good = missing.length === 0 && reports.every(({ problems }) => problems.length === 0);
  if (values.json) write(`${JSON.stringify({ intact: good, missing, logs: reports }, undefined, 1)}\n`);
  else {
    for (const report of reports) write(reportText(report));
    for (const name of missing) write(`${JSON.stringify(name)}: MISSING\n  a checkpoint of it was kept\n`);
  }
  return good ? 0 : 1;
}

/** The checkpoints of a file, one a line, by the process whose log they speak of. */
function keptTokens(file: string): ReadonlyMap<string, string[]> {
  const tokens = readFileSync(file, "utf8").trim().split("\n");
  return Map.groupBy(tokens, processOf);
}

/** Whose log a kept checkpoint speaks of, by its own word; the verifier checks it. */
function processOf(token: string): string {
  const payload = payloadOf(token);
  if (typeof payload === "object" && payload !== null && "process" in payload) {
    const { process: name } = payload;
    if (typeof name === "string") return name;
  }
  throw new UsageError("the file of kept checkpoints holds something else");
}

function payloadOf(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  } catch {
    return undefined; // the caller refuses it
  }
}

function reportText(report: LogReport): string {
  const { process: name, firstSequence, lastSequence, problems, problemsLeftOff } = report;
  const lines = [
    `${name}: ${problems.length === 0 ? "intact" : "NOT INTACT"}`,
    `  records ${firstSequence} to ${lastSequence}, ${signedText(report)}`,
    ...(report.dropped > 0 ? [`  ${report.dropped} events could not be written when they came`] : []),
    ...(report.recovered > 0 ? [`  ${report.recovered} times a crash cut the last record off`] : []),
    ...problems.map(
      ({ kind, sequence, segment, line, detail }) =>
        `  ${kind}: record ${sequence}${segment === "" ? "" : ` (${segment}:${line})`}: ${detail}`,
    ),
    ...(problemsLeftOff > 0 ? [`  and ${problemsLeftOff} more`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function signedText({ checkpoints, lastCheckpoint, unsigned }: LogReport): string {
  if (lastCheckpoint === null) return "and no checkpoint signs them yet";
  const at = new Date(lastCheckpoint.atMs).toISOString();
  return `${checkpoints} checkpoints, the last of ${at}, ${unsigned} records since`;
}

async function tail(data: string, values: Values, write: Write): Promise<number> {
  const count = Number(values.lines);
  if (!Number.isInteger(count) || count < 0 || count > 100_000) throw new UsageError("-n takes 0 to 100000");
  const show = (line: Parameters<typeof recordText>[0]): void => {
    write(`${recordText(line, { json: values.json, sensitive: values.sensitive })}\n`);
  };
  const logs = findAuditLogs(data);
  for (const line of newestRecords(logs, count)) show(line);
  if (!values.follow) return 0;
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  await followLogs(() => findAuditLogs(data), show, stop.signal);
  return 0;
}

function parse(args: readonly string[]) {
  return readArguments(args, { options, allowPositionals: true });
}
