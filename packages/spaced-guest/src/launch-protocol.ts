// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { FrameBuilder, PayloadReader } from "./frames.ts";

/** Frame types of the launch protocol; PROTOCOL.md section 2 is their specification. */
export const LaunchFrame = {
  start: 1,
  started: 2,
  failed: 3,
  kill: 4,
  done: 5,
  list: 6,
  listing: 7,
  host: 8,
  quit: 9,
  exited: 10,
  prepare: 11,
  claim: 12,
  lease: 13,
  run: 14,
  restore: 15,
  goOn: 16,
} as const;

export interface BindMount {
  /** Absolute path on the host. */
  readonly source: string;
  /** Relative to the guest's root; the folder or file exists there. */
  readonly target: string;
  readonly readOnly: boolean;
}

export interface StartRecord {
  readonly activationId: string;
  readonly secret: Uint8Array;
  readonly socketPath: string;
  readonly socketUid: number;
  readonly uidBase: number;
  readonly hostname: string;
  readonly lowerDir: string;
  readonly upperDir: string;
  readonly workDir: string;
  readonly rootDir: string;
  readonly binds: readonly BindMount[];
  readonly bootId: string;
  readonly cgroupFiles: readonly string[];
  /** Bounds /dev/shm; at most 4 GiB. */
  readonly tmpfsLimitBytes: number;
  /** No single file may grow beyond it (RLIMIT_FSIZE); 0 for no limit. */
  readonly fileLimitBytes: number;
  /**
   * The guest program's path in the guest's own tree, where a bind shows it: with it the guest can be saved and restored
   * with its memory, and its namespaces are its user namespace's own. Native launchers only.
   */
  readonly programPath?: string;
}

/** A guest whose processes CRIU restores: what it finds as by a start record, and the command that restores it. */
export interface RestoreRecord extends StartRecord {
  /** The folder of its images, with `shm.tar` among them when its shared memory folder held something. */
  readonly imagesDir: string;
  readonly argv: readonly string[];
}

/** A prepared guest: all of a start record but what makes it an activation. */
export type PrepareRecord = Pick<
  StartRecord,
  | "uidBase"
  | "lowerDir"
  | "upperDir"
  | "workDir"
  | "rootDir"
  | "binds"
  | "cgroupFiles"
  | "tmpfsLimitBytes"
  | "programPath"
> & { readonly name: string };

/** What makes it one. */
export type ClaimRecord = Pick<
  StartRecord,
  "activationId" | "secret" | "socketPath" | "socketUid" | "hostname" | "bootId" | "fileLimitBytes"
> & { readonly spare: string };

export interface HostRecord {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stderrPath: string;
  /** Its whole root, each path at its own place; empty for the host's own root. */
  readonly binds: readonly HostBind[];
}

export interface HostBind {
  readonly path: string;
  readonly readOnly: boolean;
}

/** A sandbox's runtime: a program of the host's that makes the walls itself. */
export interface RunRecord {
  readonly activationId: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Its output is appended here. */
  readonly stderrPath: string;
  readonly cgroupFiles: readonly string[];
}

/** A started process: the pid alone names nobody, the pair does (within one boot). */
export interface StartedProcess {
  readonly hostPid: number;
  /** Field 22 of /proc/PID/stat, in clock ticks since boot. */
  readonly startTime: bigint;
}

export interface LaunchListing extends StartedProcess {
  /** Activation id, or the name of a `spaced-host`. */
  readonly name: string;
  readonly running: boolean;
}

export interface LaunchExit {
  readonly name: string;
  readonly hostPid: number;
  /** As given by wait(2). */
  readonly waitStatus: number;
}

export function encodeStart(
  requestId: number,
  record: StartRecord,
  type: number = LaunchFrame.start,
  rest: (frame: FrameBuilder) => void = () => undefined,
): Buffer {
  const frame = new FrameBuilder(1024).begin(type).u32(requestId);
  frame.string(record.activationId).raw(record.secret).string(record.socketPath).u32(record.socketUid);
  frame.u32(record.uidBase).string(record.hostname).string(record.lowerDir).string(record.upperDir);
  frame.string(record.workDir).string(record.rootDir).u32(record.binds.length);
  for (const bind of record.binds) {
    frame
      .string(bind.source)
      .string(bind.target)
      .u8(bind.readOnly ? 1 : 0);
  }
  frame.string(record.bootId).u32(record.cgroupFiles.length);
  for (const file of record.cgroupFiles) frame.string(file);
  frame
    .u32(record.tmpfsLimitBytes)
    .u64(BigInt(record.fileLimitBytes))
    .string(record.programPath ?? "");
  rest(frame);
  return frame.end().finish();
}

export function encodeRestore(requestId: number, record: RestoreRecord): Buffer {
  return encodeStart(requestId, record, LaunchFrame.restore, (frame) => {
    frame.string(record.imagesDir).u32(record.argv.length);
    for (const argument of record.argv) frame.string(argument);
  });
}

export function encodeGoOn(requestId: number, activationId: string): Buffer {
  return new FrameBuilder(256).begin(LaunchFrame.goOn).u32(requestId).string(activationId).end().finish();
}

export function encodePrepare(requestId: number, record: PrepareRecord): Buffer {
  const unused = { secret: new Uint8Array(32), socketPath: "", socketUid: 0, hostname: "", bootId: "" };
  const start = { ...unused, ...record, activationId: record.name, fileLimitBytes: 0 };
  return encodeStart(requestId, start, LaunchFrame.prepare);
}

export function encodeClaim(requestId: number, record: ClaimRecord): Buffer {
  return new FrameBuilder(512)
    .begin(LaunchFrame.claim)
    .u32(requestId)
    .string(record.spare)
    .string(record.activationId)
    .raw(record.secret)
    .string(record.socketPath)
    .u32(record.socketUid)
    .string(record.hostname)
    .string(record.bootId)
    .u64(BigInt(record.fileLimitBytes))
    .end()
    .finish();
}

export function decodeStart(reader: PayloadReader): StartRecord {
  const activationId = reader.string();
  const secret = Buffer.from(reader.fixed(32));
  const socketPath = reader.string();
  const socketUid = reader.u32();
  const uidBase = reader.u32();
  const hostname = reader.string();
  const lowerDir = reader.string();
  const upperDir = reader.string();
  const workDir = reader.string();
  const rootDir = reader.string();
  const binds: BindMount[] = [];
  for (let left = reader.u32(); left > 0; left -= 1) {
    binds.push({ source: reader.string(), target: reader.string(), readOnly: reader.u8() !== 0 });
  }
  const bootId = reader.string();
  const cgroupFiles: string[] = [];
  for (let left = reader.u32(); left > 0; left -= 1) cgroupFiles.push(reader.string());
  const tmpfsLimitBytes = reader.u32();
  const fileLimitBytes = Number(reader.u64());
  const programPath = reader.string();
  const names = { activationId, secret, socketPath, socketUid, uidBase, hostname };
  return {
    ...names,
    lowerDir,
    upperDir,
    workDir,
    rootDir,
    binds,
    bootId,
    cgroupFiles,
    tmpfsLimitBytes,
    fileLimitBytes,
    programPath,
  };
}

export function encodeKill(requestId: number, name: string): Buffer {
  return new FrameBuilder(128).begin(LaunchFrame.kill).u32(requestId).string(name).end().finish();
}

export function encodeHost(requestId: number, record: HostRecord): Buffer {
  const env = Object.entries(record.env);
  const frame = new FrameBuilder(1024).begin(LaunchFrame.host).u32(requestId);
  frame.string(record.name).u32(record.uid).u32(record.gid).u32(record.argv.length);
  for (const argument of record.argv) frame.string(argument);
  frame.u32(env.length);
  for (const [name, value] of env) frame.string(`${name}=${value}`);
  frame.string(record.stderrPath).u32(record.binds.length);
  for (const bind of record.binds) frame.string(bind.path).u8(bind.readOnly ? 1 : 0);
  return frame.end().finish();
}

export function decodeHost(reader: PayloadReader): HostRecord {
  const name = reader.string();
  const uid = reader.u32();
  const gid = reader.u32();
  const argv: string[] = [];
  for (let left = reader.u32(); left > 0; left -= 1) argv.push(reader.string());
  const env: Record<string, string> = {};
  for (let left = reader.u32(); left > 0; left -= 1) {
    const pair = reader.string();
    const at = pair.indexOf("=");
    env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  const stderrPath = reader.string();
  const binds: HostBind[] = [];
  for (let left = reader.u32(); left > 0; left -= 1)
    binds.push({ path: reader.string(), readOnly: reader.u8() !== 0 });
  return { name, uid, gid, argv, env, stderrPath, binds };
}

export function encodeRun(requestId: number, record: RunRecord): Buffer {
  const frame = new FrameBuilder(1024).begin(LaunchFrame.run).u32(requestId);
  frame.string(record.activationId).u32(record.argv.length);
  for (const argument of record.argv) frame.string(argument);
  const env = Object.entries(record.env);
  frame.u32(env.length);
  for (const [name, value] of env) frame.string(`${name}=${value}`);
  frame.string(record.stderrPath).u32(record.cgroupFiles.length);
  for (const file of record.cgroupFiles) frame.string(file);
  return frame.end().finish();
}

/** `deadlineNs` on CLOCK_BOOTTIME. */
export function encodeLease(requestId: number, deadlineNs: bigint): Buffer {
  return new FrameBuilder(32).begin(LaunchFrame.lease).u32(requestId).u64(deadlineNs).end().finish();
}

/** Requests without further fields: LIST, QUIT. */
export function encodeLaunchRequest(type: number, requestId: number): Buffer {
  return new FrameBuilder(16).begin(type).u32(requestId).end().finish();
}

export function decodeListing(reader: PayloadReader): LaunchListing[] {
  const found: LaunchListing[] = [];
  for (let left = reader.u32(); left > 0; left -= 1) {
    const name = reader.string();
    found.push({ name, hostPid: reader.u32(), startTime: reader.u64(), running: reader.u8() !== 0 });
  }
  return found;
}

export function decodeLaunchExit(payload: Buffer): LaunchExit {
  const reader = new PayloadReader(payload);
  return { name: reader.string(), hostPid: reader.u32(), waitStatus: reader.i32() };
}
