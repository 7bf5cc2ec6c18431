// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditRecord } from "@space/audit-log";
import { auditFieldClass } from "@space/model";

export interface ShownRecord {
  readonly process: string;
  readonly record: AuditRecord;
}

export interface TextOptions {
  readonly json: boolean;
  /** Shows what is sensitive, too. What is secret was never written, and is not shown if it was. */
  readonly sensitive: boolean;
}

/** One record on one line; what an outsider chose is quoted, so that it cannot play with the terminal. */
export function recordText({ process, record }: ShownRecord, { json, sensitive }: TextOptions): string {
  const { sequence, atMs, event } = record;
  const fields = Object.entries(record.fields).map(([name, value]): readonly [string, unknown] => {
    const kind = auditFieldClass(event, name);
    if (kind === "secret") return [name, "[secret]"];
    return [name, kind === "sensitive" && !sensitive ? "[sensitive]" : value];
  });
  const at = new Date(atMs).toISOString();
  if (json) return JSON.stringify({ at, process, sequence, event, fields: Object.fromEntries(fields) });
  const pairs = fields.map(([name, value]) => `${name}=${valueText(value)}`);
  return [at, process, `#${sequence}`, JSON.stringify(event).slice(1, -1), ...pairs].join(" ");
}

/** Plain words as they are, everything else as JSON, cut short where it is long. */
function valueText(value: unknown): string {
  if (typeof value === "string" && /^[\w:./[\]-]{1,64}$/.test(value)) return value;
  const text = JSON.stringify(value);
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}
