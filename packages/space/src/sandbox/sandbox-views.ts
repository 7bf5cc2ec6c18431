// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";

const listed = {
  sandboxID: v.string(),
  templateID: v.string(),
  state: v.string(),
  startedAt: v.string(),
  endAt: v.string(),
  cpuCount: v.number(),
  memoryMB: v.number(),
  metadata: v.record(v.string(), v.string()),
};

/** What the commands show of the API's answers; the rest of them goes through to `--json` as it came. */
export const listSchema = v.array(v.looseObject(listed));
export const createdSchema = v.looseObject({ sandboxID: v.string(), envdAccessToken: v.string() });
/** What became of each child that was asked for. */
export const forkedSchema = v.array(
  v.union([
    v.object({ sandbox: v.looseObject({ sandboxID: v.string() }) }),
    v.object({ error: v.looseObject({ message: v.string() }) }),
  ]),
);
export const detailSchema = v.looseObject({
  ...listed,
  lifecycle: v.object({ autoResume: v.boolean(), onTimeout: v.string() }),
  space: v.looseObject({
    generation: v.string(),
    workerID: v.nullable(v.string()),
    autoRecover: v.boolean(),
    recoveredFrom: v.nullable(v.string()),
    snapshot: v.nullable(v.looseObject({ digest: v.string(), memory: v.string(), sizeBytes: v.number() })),
  }),
});

export type ListedSandbox = v.InferOutput<typeof listSchema>[number];
export type SandboxDetail = v.InferOutput<typeof detailSchema>;

/** What the control plane's signed chain says; only whoever has the installation's data directory can ask for it. */
export interface ChainFacts {
  readonly activation: string;
  readonly attempt: number;
  readonly certificates: number;
  readonly snapshots: number;
}

/** Columns as wide as their widest cell. What outsiders chose is quoted where it could play with the terminal. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const safe = rows.map((row) => row.map(plain));
  const widths = (safe[0] ?? []).map((_, at) => Math.max(...safe.map((row) => row[at]?.length ?? 0)));
  const lines = safe.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  "));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

function plain(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : JSON.stringify(text).replace(/[^\x20-\x7e]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function listText(sandboxes: readonly ListedSandbox[], nowMs: number): string {
  const rows = sandboxes.map(({ sandboxID, templateID, state, startedAt, endAt, metadata }) => [
    sandboxID,
    state,
    templateID,
    `${spanText(nowMs - Date.parse(startedAt))} ago`,
    state === "running" ? endText(Date.parse(endAt) - nowMs) : "-",
    Object.entries(metadata)
      .map(([name, value]) => `${name}=${value}`)
      .join(" ") || "-",
  ]);
  return tableText([["SANDBOX", "STATE", "TEMPLATE", "STARTED", "ENDS", "METADATA"], ...rows]);
}

export function detailText(detail: SandboxDetail, chain: ChainFacts | undefined): string {
  const { space, lifecycle } = detail;
  const snapshot =
    space.snapshot === null
      ? "none"
      : `${space.snapshot.digest}, ${space.snapshot.sizeBytes} bytes, memory: ${space.snapshot.memory}`;
  const rows = [
    ["sandbox", detail.sandboxID],
    ["state", detail.state],
    ["template", detail.templateID],
    ["started", detail.startedAt],
    [
      "ends",
      `${detail.endAt}, then ${lifecycle.onTimeout}${lifecycle.autoResume ? ", wakes for a request" : ""}`,
    ],
    ["size", `${detail.cpuCount} CPUs, ${detail.memoryMB} MB`],
    ["worker", space.workerID ?? "none"],
    ["generation", space.generation],
    ...(chain === undefined
      ? [["chain", "only with the data directory of the installation (--data)"]]
      : [
          ["activation", `${chain.activation}, attempt ${chain.attempt}`],
          ["chain", `${chain.certificates} certificates, ${chain.snapshots} snapshots, verified to the root`],
        ]),
    ["snapshot", snapshot],
    ...(space.recoveredFrom === null
      ? []
      : [["recovered", `without what generation ${space.recoveredFrom} wrote after its newest snapshot`]]),
    ...Object.entries(detail.metadata).map(([name, value]) => ["metadata", `${name}=${value}`]),
  ];
  return tableText(rows);
}

function endText(leftMs: number): string {
  return leftMs <= 0 ? "now" : `in ${spanText(leftMs)}`;
}

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The two largest units. */
export function spanText(ms: number): string {
  const [days, hours] = [Math.floor(ms / dayMs), Math.floor((ms % dayMs) / hourMs)];
  const [minutes, seconds] = [Math.floor((ms % hourMs) / minuteMs), Math.floor((ms % minuteMs) / secondMs)];
  if (ms < 0) return "0s";
  if (days > 0) return `${days}d ${hours}h`;
  if (hours > 0) return `${hours}h ${minutes}m`;
  return minutes > 0 ? `${minutes}m ${seconds}s` : `${seconds}s`;
}
