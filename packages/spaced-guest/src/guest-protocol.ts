// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHmac } from "node:crypto";
import { FrameBuilder, PayloadReader, ProtocolError } from "./frames.ts";

/** Frame types of the guest protocol; PROTOCOL.md section 1 is their specification. */
export const GuestFrame = {
  hello: 1,
  helloOk: 2,
  rekey: 3,
  ok: 16,
  error: 17,
  data: 18,
  end: 19,
  content: 20,
  stat: 32,
  list: 33,
  read: 34,
  write: 35,
  mkdir: 36,
  rename: 37,
  remove: 38,
  sync: 39,
  statfs: 40,
  spawn: 41,
  dial: 42,
  killAll: 43,
  attach: 44,
  watch: 45,
  fetch: 46,
  quiesce: 47,
  started: 48,
  stdout: 49,
  stderr: 50,
  pty: 51,
  exited: 52,
  stdinTaken: 53,
  event: 54,
  overflow: 55,
  forsake: 56,
  stdin: 64,
  stdinEof: 65,
  signal: 66,
  resize: 67,
} as const;

export const nonceBytes = 32;
export const secretBytes = 32;

/** Bytes of stdin that may be under way and not yet taken by the process (STDIN minus STDIN_TAKEN). */
export const stdinWindowBytes: number = 256 * 1024;

/** Payload size used when a file's content is sent in DATA frames. */
export const dataChunkBytes: number = 64 * 1024;

/** Most bytes of a file that FETCH answers with. */
export const fetchLimitBytes: number = 60 * 1024;

/** A small file as one answer has it. */
export interface FetchedFile {
  /** Milliseconds since 1970, fractional. */
  readonly modifiedAtMs: number;
  /** The size that the file had when it was opened; 0 says nothing (/proc). */
  readonly sizeBytes: number;
  readonly content: Buffer;
}

export type EntryType = "file" | "directory" | "other";

/** One file as the guest sees it. For a symlink type, mode, size and owner are the target's, unless it dangles. */
export interface GuestEntry {
  readonly type: EntryType;
  readonly isSymlink: boolean;
  /** Permission bits, at most 0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  /** Milliseconds since 1970, fractional. */
  readonly modifiedAtMs: number;
  readonly path: string;
  /** Resolved absolute target; the raw link text when it dangles; empty when this is no symlink. */
  readonly symlinkTarget: string;
}

export interface WriteOptions {
  readonly mode?: number;
  readonly uid: number;
  readonly gid: number;
  readonly makeParents?: boolean;
  readonly append?: boolean;
}

export interface SpawnRequest {
  /** argv[0] is looked up in the PATH of `env` when it has no slash. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly uid: number;
  readonly gid: number;
  readonly groups?: readonly number[];
  /** Keep stdin open for `writeStdin`; otherwise it is /dev/null. Always open with `pty`. */
  readonly stdin?: boolean;
  readonly pty?: { readonly cols: number; readonly rows: number };
}

export type ProcessExit =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signalled"; readonly signal: number };

const entryTypes: readonly EntryType[] = ["other", "file", "directory", "other"];

export function decodeEntry(reader: PayloadReader): GuestEntry {
  const type = entryTypes[reader.u8()] ?? "other";
  const isSymlink = reader.u8() !== 0;
  const mode = reader.u32();
  const uid = reader.u32();
  const gid = reader.u32();
  const sizeBytes = Number(reader.u64());
  const modifiedAtMs = Number(reader.i64()) * 1000 + reader.u32() / 1e6;
  const path = reader.string();
  return { type, isSymlink, mode, uid, gid, sizeBytes, modifiedAtMs, path, symlinkTarget: reader.string() };
}

export function decodeEntries(payload: Buffer, into: GuestEntry[]): void {
  const reader = new PayloadReader(payload);
  while (!reader.atEnd) into.push(decodeEntry(reader));
}

/** What STARTED says: the pid, and where both directions stand. */
export interface ProcessStart {
  readonly pid: number;
  /** Bytes of STDIN that the guest has ever accepted. */
  readonly stdinReceived: number;
  /** Offset of the output that follows. */
  readonly outputOffset: number;
}

export function decodeStarted(payload: Buffer): ProcessStart {
  const reader = new PayloadReader(payload);
  const pid = reader.u32();
  const stdinReceived = Number(reader.u64());
  return { pid, stdinReceived, outputOffset: Number(reader.u64()) };
}

export function encodeStarted({ pid, stdinReceived, outputOffset }: ProcessStart): Buffer {
  const frame = new FrameBuilder(32).begin(GuestFrame.started).u32(pid);
  return frame.u64(BigInt(stdinReceived)).u64(BigInt(outputOffset)).end().finish();
}

export function decodeExit(payload: Buffer): ProcessExit {
  const reader = new PayloadReader(payload);
  const bySignal = reader.u8() !== 0;
  const value = reader.u32();
  return bySignal ? { kind: "signalled", signal: value } : { kind: "exited", code: value };
}

export function helloMac(secret: Uint8Array, nonce: Uint8Array, activationId: string): Buffer {
  return createHmac("sha256", secret)
    .update("space-guest-hello\0")
    .update(nonce)
    .update(activationId)
    .digest();
}

export function rekeyMac(oldSecret: Uint8Array, rest: Uint8Array): Buffer {
  return createHmac("sha256", oldSecret).update("space-guest-rekey\0").update(rest).digest();
}

export function encodeHello(nonce: Uint8Array): Buffer {
  return new FrameBuilder(48).begin(GuestFrame.hello).raw(nonce).end().finish();
}

export function encodeRekey(oldSecret: Uint8Array, newSecret: Uint8Array, newActivationId: string): Buffer {
  const rest = new FrameBuilder(128).raw(newSecret).string(newActivationId).finish();
  return new FrameBuilder(192)
    .begin(GuestFrame.rekey)
    .raw(rekeyMac(oldSecret, rest))
    .raw(rest)
    .end()
    .finish();
}

export interface WatchOptions {
  readonly recursive?: boolean;
  /** With each event but the last two kinds, what is at its path then. */
  readonly withEntries?: boolean;
  readonly allowNetworkMounts?: boolean;
}

export type WatchEventKind = "created" | "written" | "removed" | "renamed" | "mode-changed";

export interface WatchEvent {
  readonly kind: WatchEventKind;
  /** Relative to the watched folder; `.` is the folder itself. */
  readonly name: string;
  readonly entry?: GuestEntry;
}

const watchEventKinds: readonly WatchEventKind[] = [
  "created",
  "written",
  "removed",
  "renamed",
  "mode-changed",
];

export function encodeWatch(path: string, options: WatchOptions): Buffer {
  const { recursive = false, withEntries = false, allowNetworkMounts = false } = options;
  const flags = (recursive ? 1 : 0) | (withEntries ? 2 : 0) | (allowNetworkMounts ? 4 : 0);
  return new FrameBuilder(32 + path.length * 3).begin(GuestFrame.watch).string(path).u8(flags).end().finish();
}

export function decodeWatchEvent(payload: Buffer): WatchEvent {
  const reader = new PayloadReader(payload);
  const kind = watchEventKinds[reader.u8() - 1];
  if (kind === undefined) throw new ProtocolError("no such kind of event");
  const name = reader.string();
  return reader.u8() === 0 ? { kind, name } : { kind, name, entry: decodeEntry(reader) };
}

/** Requests that carry one path: STAT, REMOVE. */
export function encodePathRequest(type: number, path: string): Buffer {
  return new FrameBuilder(16 + path.length * 3).begin(type).string(path).end().finish();
}

export function encodeList(path: string, depth: number): Buffer {
  return new FrameBuilder().begin(GuestFrame.list).string(path).u32(depth).end().finish();
}

export const toTheEnd = 0xffff_ffff_ffff_ffffn;

export function encodeRead(path: string, offset: bigint, length: bigint): Buffer {
  return new FrameBuilder().begin(GuestFrame.read).string(path).u64(offset).u64(length).end().finish();
}

export function encodeFetch(into: FrameBuilder, path: string): void {
  into.begin(GuestFrame.fetch).string(path).u32(fetchLimitBytes).end();
}

const contentHeadBytes = 20;

/** Of a CONTENT frame. Throws `ProtocolError`. */
export function decodeContent(payload: Buffer): FetchedFile {
  if (payload.length < contentHeadBytes) throw new ProtocolError("payload too short");
  const seconds = payload.readUInt32LE(8) + payload.readInt32LE(12) * 2 ** 32;
  return {
    sizeBytes: payload.readUInt32LE(0) + payload.readUInt32LE(4) * 2 ** 32,
    modifiedAtMs: seconds * 1000 + payload.readUInt32LE(16) / 1e6,
    content: payload.subarray(contentHeadBytes),
  };
}

export function encodeWrite(path: string, options: WriteOptions, initialBytes = 256): FrameBuilder {
  return new FrameBuilder(initialBytes)
    .begin(GuestFrame.write)
    .string(path)
    .u32(options.mode ?? 0o644)
    .u32(options.uid)
    .u32(options.gid)
    .u8(options.makeParents === true ? 1 : 0)
    .u8(options.append === true ? 1 : 0)
    .end();
}

export function encodeMkdir(path: string, uid: number, gid: number): Buffer {
  return new FrameBuilder().begin(GuestFrame.mkdir).string(path).u32(uid).u32(gid).end().finish();
}

export function encodeRename(from: string, to: string, uid: number, gid: number): Buffer {
  return new FrameBuilder().begin(GuestFrame.rename).string(from).string(to).u32(uid).u32(gid).end().finish();
}

export function encodeSpawn(request: SpawnRequest): Buffer {
  const groups = request.groups ?? [];
  const env = Object.entries(request.env);
  const flags = (request.stdin === true ? 1 : 0) | (request.pty === undefined ? 0 : 2);
  const frame = new FrameBuilder(1024).begin(GuestFrame.spawn).u32(flags).u32(request.uid).u32(request.gid);
  frame.u32(groups.length);
  for (const group of groups) frame.u32(group);
  frame.string(request.cwd).u32(request.argv.length);
  for (const argument of request.argv) frame.string(argument);
  frame.u32(env.length);
  for (const [name, value] of env) frame.string(`${name}=${value}`);
  return frame
    .u16(request.pty?.cols ?? 0)
    .u16(request.pty?.rows ?? 0)
    .end()
    .finish();
}
