// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type AdmissionId,
  members,
  type PortProtocol,
  parseActivationId,
  parseAdmissionId,
  parseSandboxId,
  portProtocols,
  type SandboxId,
  SpaceError,
} from "@space/model";

/** What the request is for: the agent in the guest, or a port of the user's. */
export type OperationTarget =
  | { readonly purpose: "control" }
  | { readonly purpose: "service-port"; readonly port: number; readonly protocol: PortProtocol };

/**
 * The head of an operation between gateway and worker. R-13: `sandbox` is the target, named apart from the capability.
 * `headers` is flat: name, value, name, value; names in lower case.
 */
export interface OperationHead {
  readonly admission: AdmissionId;
  readonly sandbox: SandboxId;
  readonly capability: string;
  readonly target: OperationTarget;
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: readonly string[];
  /** the body is held back until the worker, having admitted the operation, sends `proceed`. */
  readonly awaitAdmission?: true;
}

/** The head of an admitted operation between worker and bridge: it names the activation and carries no capability. */
export interface HostOperationHead {
  readonly activation: ActivationId;
  readonly target: OperationTarget;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
}

/** Reads a worker's head strictly. Throws `link/protocol` or `input/invalid`. */
export function parseHostOperationHead(value: unknown): HostOperationHead {
  const head = members(value, "head", hostHeadMembers);
  return {
    activation: parseActivationId(head["activation"]),
    target: parseTarget(head["target"]),
    method: parseMethod(head["method"]),
    path: parsePath(head["path"]),
    headers: parseHeaders(head["headers"]),
  };
}

const hostHeadMembers = ["activation", "target", "method", "path", "headers"] as const;

function parseMethod(method: unknown): string {
  if (typeof method !== "string" || !/^[A-Z]{1,16}$/.test(method)) throw bad("bad method");
  return method;
}

function parsePath(path: unknown): string {
  if (typeof path !== "string" || !path.startsWith("/") || /[\0\r\n ]/.test(path)) throw bad("bad path");
  return path;
}

/** The answer's head on every hop. */
export interface AnswerHead {
  /** 200 to 599, or 101 for an accepted WebSocket: the stream's bytes are then the socket's, both ways. */
  readonly status: number;
  readonly headers: readonly string[];
  /** Said by the bridge alone, never by a guest: nothing listens on the service port that was asked for. */
  readonly portClosed?: true;
  /** R-22, said by the bridge alone: the named stream cannot go on where the gateway stands, byte for byte. */
  readonly streamLost?: true;
}

/** the worker's own headers. Nothing else may use the prefix. */
export const reservedPrefix = "space-";
export const admittedHeader = "space-admitted";
export const admissionHeader = "space-admission";
export const verdictHeader = "space-verdict";
export const rejectedRouteHeader = "space-rejected-route";
/** On an admitted answer that the worker or the bridge made itself instead of the guest: the `SpaceError` code. */
export const failureHeader = "space-failure";

function bad(problem: string): SpaceError {
  return new SpaceError("link/protocol", { problem });
}

/** Reads a gateway's head strictly. Throws `link/protocol` or `input/invalid`. */
export function parseOperationHead(value: unknown): OperationHead {
  const head = members(value, "head", headMembers, ["awaitAdmission"]);
  const { capability, awaitAdmission } = head;
  if (typeof capability !== "string") throw bad("bad capability");
  if (awaitAdmission !== undefined && awaitAdmission !== true) throw bad("bad awaitAdmission");
  const read: OperationHead = {
    admission: parseAdmissionId(head["admission"]),
    sandbox: parseSandboxId(head["sandbox"]),
    capability,
    target: parseTarget(head["target"]),
    method: parseMethod(head["method"]),
    path: parsePath(head["path"]),
    headers: parseHeaders(head["headers"]),
  };
  return awaitAdmission === true ? { ...read, awaitAdmission } : read;
}

const headMembers = ["admission", "sandbox", "capability", "target", "method", "path", "headers"] as const;

export function parseAnswerHead(value: unknown): AnswerHead {
  const head = members(value, "head", ["status", "headers"], ["portClosed", "streamLost"]);
  const { status, portClosed, streamLost } = head;
  if (typeof status !== "number" || !isFinalStatus(status)) throw bad("bad status");
  if (portClosed !== undefined && portClosed !== true) throw bad("bad portClosed");
  if (streamLost !== undefined && streamLost !== true) throw bad("bad streamLost");
  const headers = parseHeaders(head["headers"]);
  if (streamLost === true) return { status, headers, streamLost };
  return portClosed === true ? { status, headers, portClosed } : { status, headers };
}

/** 101 ends an HTTP exchange too: what follows it are the bytes of the upgraded protocol. */
function isFinalStatus(status: number): boolean {
  return status === 101 || (Number.isInteger(status) && status >= 200 && status <= 599);
}

function parseTarget(value: unknown): OperationTarget {
  if (typeof value === "object" && value !== null && "purpose" in value && value.purpose === "control") {
    members(value, "target", ["purpose"]);
    return { purpose: "control" };
  }
  const { purpose, port, protocol } = members(value, "target", ["purpose", "port", "protocol"]);
  if (purpose !== "service-port") throw bad("bad purpose");
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535) throw bad("bad port");
  const known = portProtocols.find((name) => name === protocol);
  if (known === undefined) throw bad("bad protocol");
  return { purpose: "service-port", port, protocol: known };
}

/** Names are tokens in lower case, so that a reserved one has one spelling; values hold no line end. */
function parseHeaders(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length % 2 !== 0) throw bad("bad headers");
  for (let at = 0; at < value.length; at += 2) {
    if (!isHeaderName(value[at]) || !isHeaderValue(value[at + 1])) throw bad("bad headers");
  }
  return value as readonly string[]; // cast: each was looked at
}

const knownNamesLimit = 1024;
const knownNameChars = 64;
/** Names that were found good, since nearly all are among a few. Not emptied, only bounded. */
const knownNames = new Set<unknown>();

function isHeaderName(name: unknown): boolean {
  if (knownNames.has(name)) return true;
  if (typeof name !== "string" || !headerName.test(name)) return false;
  if (knownNames.size < knownNamesLimit && name.length <= knownNameChars) knownNames.add(name);
  return true;
}

function isHeaderValue(text: unknown): boolean {
  return typeof text === "string" && !/[\0\r\n]/.test(text);
}

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
