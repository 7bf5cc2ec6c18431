// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type BridgeEvent,
  type BridgeReport,
  bridgeReportLimit,
  members,
  parseActivationId,
  parseSandboxId,
  type SeenReport,
  SpaceError,
  type ToldBridgeEventName,
} from "@space/model";

/** Longest problem that is taken. */
const problemLimit = 256;

type FieldReaders = {
  readonly [N in ToldBridgeEventName]: (
    fields: unknown,
  ) => Extract<BridgeEvent, { readonly name: N }>["fields"];
};

/** The one table of what a bridge may say. Its word goes into the audit log as it was said, so it is read strictly. */
const readers: FieldReaders = {
  "bridge/daemon-accepted": (fields) => {
    const { pid, times } = members(fields, "fields", ["pid", "times"]);
    return { pid: readCount(pid, "pid"), times: readTimes(times) };
  },
  "bridge/daemon-refused": (fields) => {
    const { problem, times } = members(fields, "fields", ["problem", "times"]);
    return { problem: readProblem(problem), times: readTimes(times) };
  },
  "bridge/endpoint-refused": (fields) => {
    const { activationId, problem, times } = members(fields, "fields", ["activationId", "problem", "times"]);
    return {
      activationId: parseActivationId(activationId),
      problem: readProblem(problem),
      times: readTimes(times),
    };
  },
  "bridge/operation-refused": (fields) => {
    const { activationId, reason, times } = members(fields, "fields", ["activationId", "reason", "times"]);
    if (reason !== "no lease" && reason !== "not adopted") throw bad("reason");
    return { activationId: parseActivationId(activationId), reason, times: readTimes(times) };
  },
  "bridge/adopted": (fields) => {
    const { activationId, sandboxId, times } = members(fields, "fields", [
      "activationId",
      "sandboxId",
      "times",
    ]);
    return {
      activationId: parseActivationId(activationId),
      sandboxId: parseSandboxId(sandboxId),
      times: readTimes(times),
    };
  },
  "bridge/rekeyed": (fields) => {
    const { from, to, times } = members(fields, "fields", ["from", "to", "times"]);
    return { from: parseActivationId(from), to: parseActivationId(to), times: readTimes(times) };
  },
  "bridge/released": (fields) => {
    const { activationId, times } = members(fields, "fields", ["activationId", "times"]);
    return { activationId: parseActivationId(activationId), times: readTimes(times) };
  },
  "bridge/fenced": readOnlyTimes,
  "bridge/fence-lifted": readOnlyTimes,
  "bridge/fence-given-up": (fields) => {
    const { cutStreams, times } = members(fields, "fields", ["cutStreams", "times"]);
    return { cutStreams: readCount(cutStreams, "cutStreams"), times: readTimes(times) };
  },
  "bridge/suppressed": readOnlyTimes,
};

/** Throws `input/invalid`. */
export function parseBridgeReport(value: unknown): BridgeReport {
  const { source, number, events } = members(value, "report", ["source", "number", "events"]);
  if (!Array.isArray(events) || events.length > bridgeReportLimit) throw bad("events");
  return Object.freeze({ ...readSeen(source, number), events: Object.freeze(events.map(readEvent)) });
}

/** Throws `input/invalid`. */
export function parseSeenReport(value: unknown): SeenReport | null {
  if (value === null) return null;
  const { source, number } = members(value, "seen", ["source", "number"]);
  return readSeen(source, number);
}

function readSeen(source: unknown, number: unknown): SeenReport {
  if (typeof source !== "string" || !/^[0-9a-f]{16}$/.test(source)) throw bad("source");
  return { source, number: readCount(number, "number") };
}

function readEvent(value: unknown): BridgeEvent {
  const { name, fields } = members(value, "event", ["name", "fields"]);
  if (typeof name !== "string" || !isTold(name)) throw bad("name");
  return { name, fields: readers[name](fields) } as BridgeEvent; // cast: the reader of this very name
}

function isTold(name: string): name is ToldBridgeEventName {
  return Object.hasOwn(readers, name);
}

function readOnlyTimes(fields: unknown): { readonly times: number } {
  return { times: readTimes(members(fields, "fields", ["times"])["times"]) };
}

function readTimes(value: unknown): number {
  const times = readCount(value, "times");
  if (times === 0) throw bad("times");
  return times;
}

function readCount(value: unknown, field: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw bad(field);
  return value;
}

function readProblem(value: unknown): string {
  if (typeof value !== "string" || value.length > problemLimit) throw bad("problem");
  return value;
}

function bad(field: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem: "is not of its form" });
}
