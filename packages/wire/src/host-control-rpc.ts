// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type AdoptRequest,
  type CarriedPiece,
  type Clock,
  carriedLimitBytes,
  carriedPieceBytes,
  type HostControl,
  members,
  parseActivationId,
  parseSandboxId,
  type RekeyRequest,
  Secret,
  SpaceError,
} from "@space/model";
import { parseBridgeReport, parseSeenReport } from "./bridge-report-codec.ts";
import type { FrameLink } from "./link.ts";
import { callRpc, type RpcHandler } from "./rpc.ts";

const methods = {
  adopt: "host.adopt",
  rekey: "host.rekey",
  quiesce: "host.quiesce",
  carried: "host.carried",
  carry: "host.carry",
  release: "host.release",
  holdUntil: "host.hold-until",
  list: "host.list",
  takeReport: "host.take-report",
} as const;

/** How long a report is waited for, before it is asked for again. */
const reportDeadlineMs = 600_000;
/** Length of an activation's secret. */
const secretBytes = 32;
/** Longest wait that a `quiesce` may ask for. */
const quiesceLimitMs = 600_000;
/** What an answer may take beyond the wait that `quiesce` asks for: the flush to disk. */
const quiesceSlackMs = 60_000;
const pathLimitBytes = 4096;

/**
 * The worker daemon's end: a {@link HostControl} whose commands travel over the link to `spaced-host`. Beside the port's
 * own errors each rejects with `link/closed` or `deadline/passed` when no answer came; the effect is then unknown and the
 * command may be repeated.
 */
export function hostControlOver(link: FrameLink, clock: Clock): HostControl {
  const call = (method: string, params: unknown, deadlineMs?: number): Promise<unknown> =>
    callRpc(link, clock, deadlineMs === undefined ? { method, params } : { method, params, deadlineMs });
  return {
    adopt: async (request) => {
      await call(methods.adopt, adoptToJson(request));
    },
    rekey: async ({ from, to, activationSecret }) => {
      await call(methods.rekey, { from, to, activationSecret: secretToText(activationSecret) });
    },
    quiesce: async (activationId, limitMs, letGo) =>
      (await call(methods.quiesce, { activationId, limitMs, letGo }, limitMs + quiesceSlackMs)) === true,
    carried: async (activationId, offset) =>
      parsePiece(await call(methods.carried, { activationId, offset }), []),
    carry: async (activationId, piece) => {
      await call(methods.carry, { activationId, ...pieceToJson(piece) });
    },
    release: async (activationId) => {
      await call(methods.release, { activationId });
    },
    holdUntil: async (deadlineBootMs) => {
      await call(methods.holdUntil, { deadlineBootMs });
    },
    list: async () => parseActivationIds(await call(methods.list, null)),
    takeReport: async (seen) => {
      const taken = seen && { source: seen.source, number: seen.number };
      return parseBridgeReport(await call(methods.takeReport, { seen: taken }, reportDeadlineMs));
    },
  };
}

/** The bridge's end: the commands that `serveRpc` answers from `control`. Parameters are read strictly (`input/invalid`). */
export function hostControlHandlers(control: HostControl): ReadonlyMap<string, RpcHandler> {
  return new Map<string, RpcHandler>([
    [methods.adopt, async (params) => control.adopt(parseAdopt(params))],
    [methods.rekey, async (params) => control.rekey(parseRekey(params))],
    [
      methods.quiesce,
      async (params) => {
        const { activationId, limitMs, letGo } = members(params, "quiesce", [
          "activationId",
          "limitMs",
          "letGo",
        ]);
        if (typeof letGo !== "boolean")
          throw new SpaceError("input/invalid", { field: "letGo", problem: "must be a boolean" });
        const wait = parseInteger(limitMs, "limitMs", quiesceLimitMs);
        return control.quiesce(parseActivationId(activationId), wait, letGo);
      },
    ],
    [
      methods.carried,
      async (params) => {
        const { activationId, offset } = members(params, "carried", ["activationId", "offset"]);
        const from = parseInteger(offset, "offset", carriedLimitBytes);
        return pieceToJson(await control.carried(parseActivationId(activationId), from));
      },
    ],
    [
      methods.carry,
      async (params) => {
        const piece = parsePiece(params, ["activationId"]);
        const { activationId } = params as Record<string, unknown>; // cast: an object, or the piece was refused
        return control.carry(parseActivationId(activationId), piece);
      },
    ],
    [
      methods.release,
      async (params) =>
        control.release(parseActivationId(members(params, "release", ["activationId"])["activationId"])),
    ],
    [
      methods.holdUntil,
      async (params) => {
        const { deadlineBootMs } = members(params, "hold", ["deadlineBootMs"]);
        if (typeof deadlineBootMs !== "number" || !(deadlineBootMs >= 0)) throw bad("deadlineBootMs");
        return control.holdUntil(deadlineBootMs);
      },
    ],
    [methods.list, async () => control.list()],
    [
      methods.takeReport,
      async (params) => control.takeReport(parseSeenReport(members(params, "take report", ["seen"])["seen"])),
    ],
  ]);
}

function adoptToJson(request: AdoptRequest): Readonly<Record<string, unknown>> {
  const { activationId, sandboxId, template, socketPath, guest, isFirst, variables } = request;
  const { pid, startTime } = guest;
  const activationSecret = secretToText(request.activationSecret);
  return {
    activationId,
    sandboxId,
    template,
    socketPath,
    activationSecret,
    guest: { pid, startTime },
    isFirst,
    variables,
  };
}

function parseAdopt(params: unknown): AdoptRequest {
  const whole = members(params, "adopt", [
    "activationId",
    "sandboxId",
    "template",
    "socketPath",
    "activationSecret",
    "guest",
    "isFirst",
    "variables",
  ]);
  const { isFirst } = whole;
  if (typeof isFirst !== "boolean") throw bad("isFirst");
  const { pid, startTime } = members(whole["guest"], "guest", ["pid", "startTime"]);
  if (typeof startTime !== "string" || !/^[0-9]{1,20}$/.test(startTime)) throw bad("startTime");
  return {
    activationId: parseActivationId(whole["activationId"]),
    sandboxId: parseSandboxId(whole["sandboxId"]),
    template: parseText(whole["template"], "template", pathLimitBytes),
    socketPath: parseText(whole["socketPath"], "socketPath", pathLimitBytes),
    activationSecret: parseSecret(whole["activationSecret"]),
    guest: { pid: parseInteger(pid, "pid", 0x7fff_ffff), startTime },
    isFirst,
    variables: parseVariables(whole["variables"]),
  };
}

function parseRekey(params: unknown): RekeyRequest {
  const { from, to, activationSecret } = members(params, "rekey", ["from", "to", "activationSecret"]);
  return {
    from: parseActivationId(from),
    to: parseActivationId(to),
    activationSecret: parseSecret(activationSecret),
  };
}

function pieceToJson({ offset, totalBytes, bytes }: CarriedPiece): Readonly<Record<string, unknown>> {
  return { offset, totalBytes, bytes: Buffer.from(bytes).toString("base64url") };
}

function parsePiece(value: unknown, besides: readonly string[]): CarriedPiece {
  const whole = members(value, "piece", ["offset", "totalBytes", "bytes", ...besides]);
  const text = whole["bytes"];
  if (typeof text !== "string" || text.length > 2 * carriedPieceBytes) throw bad("bytes");
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length > carriedPieceBytes || bytes.toString("base64url") !== text) throw bad("bytes");
  return {
    offset: parseInteger(whole["offset"], "offset", carriedLimitBytes),
    totalBytes: parseInteger(whole["totalBytes"], "totalBytes", carriedLimitBytes),
    bytes,
  };
}

function parseActivationIds(value: unknown): readonly ActivationId[] {
  if (!Array.isArray(value)) throw bad("list");
  return value.map((id: unknown) => parseActivationId(id));
}

function secretToText(secret: Secret<Uint8Array>): string {
  return Buffer.from(secret.reveal()).toString("base64url");
}

function parseSecret(value: unknown): Secret<Uint8Array> {
  if (typeof value !== "string") throw bad("activationSecret");
  const bytes = Buffer.from(value, "base64url");
  if (bytes.length !== secretBytes || bytes.toString("base64url") !== value) throw bad("activationSecret");
  return new Secret<Uint8Array>(bytes);
}

function parseText(value: unknown, field: string, limitBytes: number): string {
  if (typeof value !== "string" || value.length > limitBytes || value.includes("\0")) throw bad(field);
  return value;
}

function parseInteger(value: unknown, field: string, max: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > max) throw bad(field);
  return value;
}

function parseVariables(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw bad("variables");
  const variables: Record<string, string> = {};
  for (const [name, text] of Object.entries(value)) {
    if (name === "" || /[=\0]/.test(name) || typeof text !== "string" || text.includes("\0"))
      throw bad("variables");
    variables[name] = text;
  }
  return Object.freeze(variables);
}

function bad(field: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem: "is not of its form" });
}
