// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { carriedLimitBytes, members, parseSandboxId, SpaceError } from "@space/model";
import type { ProcessExit, SavedProcess, WatchOptions } from "@space/spaced-guest";
import type {
  CarriedDescription,
  CarriedEnd,
  CarriedProcess,
  CarriedReader,
  CarriedSince,
  CarriedStart,
  CarriedState,
  CarriedStream,
} from "./carried-state.ts";

const version = 1;
const lengthBytes = 4;

/**
 * `u32 length` (big-endian), that much JSON, then the bytes that it gives the lengths of, in the order in which it names
 * them. Streams that find no room any more are left out: they end, and say so.
 */
export function encodeCarried(state: CarriedState, limitBytes: number = carriedLimitBytes): Buffer {
  const streams = [...state.streams].sort((a, b) => a.bytes.length - b.bytes.length);
  for (;;) {
    const encoded = encodeWhole({ ...state, streams });
    if (encoded.length <= limitBytes) return encoded;
    if (streams.pop() === undefined)
      throw new SpaceError("input/too-large", { what: "what the bridge knows of the guest", limitBytes });
  }
}

function encodeWhole(state: CarriedState): Buffer {
  const blobs: Uint8Array[] = [];
  const blob = (bytes: Uint8Array): number => {
    blobs.push(bytes);
    return bytes.length;
  };
  const head = Buffer.from(
    JSON.stringify({
      version,
      sandboxId: state.sandboxId,
      processes: state.processes.map((process) => ({
        ...process,
        link: { ...process.link, input: blob(process.link.input) },
      })),
      ended: state.ended,
      streams: state.streams.map((stream) => ({ ...stream, bytes: blob(stream.bytes) })),
      inputs: state.inputs,
      starts: state.starts,
    }),
  );
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(head.length);
  return Buffer.concat([length, head, ...blobs]);
}

/** Throws `snapshot/refused` for what no bridge of this version has written. */
export function decodeCarried(bytes: Buffer): CarriedState {
  try {
    return new Reader(bytes).state();
  } catch (cause) {
    throw new SpaceError(
      "snapshot/refused",
      { problem: "what it knows of its streams cannot be read" },
      { cause },
    );
  }
}

/** Reads what is written above, member by member. Throws whatever it meets: `decodeCarried` says what that means. */
class Reader {
  readonly #head: unknown;
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#at = lengthBytes + bytes.readUInt32BE(0);
    this.#head = JSON.parse(bytes.toString("utf8", lengthBytes, this.#at));
  }

  state(): CarriedState {
    const names = ["version", "sandboxId", "processes", "ended", "streams", "inputs", "starts"];
    const whole = members(this.#head, "carried", names);
    if (whole["version"] !== version) throw new TypeError("another version");
    const processes = list(whole["processes"]).map((one) => this.#process(one));
    const streams = list(whole["streams"]).map((one) => this.#stream(one));
    if (this.#at !== this.#bytes.length) throw new TypeError("bytes are left");
    const inputs = members(whole["inputs"], "inputs", ["keys", "forgotAgoMs"]);
    const starts = members(whole["starts"], "starts", ["known", "since"]);
    return {
      sandboxId: parseSandboxId(whole["sandboxId"]),
      processes,
      ended: list(whole["ended"]).map(readEnd),
      streams,
      inputs: {
        keys: list(inputs["keys"]).map(text),
        forgotAgoMs: orNull(inputs["forgotAgoMs"], amount),
      },
      starts: { known: list(starts["known"]).map(readStart), since: orNull(starts["since"], readSince) },
    };
  }

  #blob(length: unknown): Uint8Array {
    const from = this.#at;
    this.#at += amount(length);
    if (this.#at > this.#bytes.length) throw new TypeError("bytes are missing");
    return this.#bytes.subarray(from, this.#at);
  }

  #process(value: unknown): CarriedProcess {
    const one = members(value, "process", ["description", "link", "closed", "limitMs"]);
    const names = ["pid", "sentBytes", "acknowledgedBytes", "input", "inputEnds", "receivedBytes", "size"];
    const link = members(one["link"], "link", names);
    const saved: SavedProcess = {
      pid: amount(link["pid"]),
      sentBytes: amount(link["sentBytes"]),
      acknowledgedBytes: amount(link["acknowledgedBytes"]),
      input: this.#blob(link["input"]),
      inputEnds: flag(link["inputEnds"]),
      receivedBytes: amount(link["receivedBytes"]),
      size: orNull(link["size"], (size) => {
        const { cols, rows } = members(size, "size", ["cols", "rows"]);
        return { cols: amount(cols), rows: amount(rows) };
      }),
    };
    return {
      description: readDescription(one["description"]),
      link: saved,
      closed: flag(one["closed"]),
      limitMs: orNull(one["limitMs"], amount),
    };
  }

  #stream(value: unknown): CarriedStream {
    const names = ["key", "codec", "kind", "answered", "start", "handed", "bytes", "reader"];
    const { codec, kind, ...one } = members(value, "stream", names);
    if (codec !== "json" && codec !== "proto") throw new TypeError("bad codec");
    if (kind !== "process" && kind !== "watch") throw new TypeError("bad kind");
    return {
      key: text(one["key"]),
      codec,
      kind,
      answered: flag(one["answered"]),
      start: amount(one["start"]),
      handed: amount(one["handed"]),
      bytes: this.#blob(one["bytes"]),
      reader: orNull(one["reader"], readReader),
    };
  }
}

function readDescription(value: unknown): CarriedDescription {
  const names = ["cmd", "args", "envs", "terminal", "stdin", "privileged"];
  const one = members(value, "description", names, ["cwd", "tag"]);
  const envs = Object.entries(record(one["envs"])).map(([name, value]): [string, string] => [
    name,
    text(value),
  ]);
  return {
    cmd: text(one["cmd"]),
    args: list(one["args"]).map(text),
    envs: Object.fromEntries(envs),
    cwd: optionalText(one["cwd"]),
    tag: optionalText(one["tag"]),
    terminal: flag(one["terminal"]),
    stdin: flag(one["stdin"]),
    privileged: flag(one["privileged"]),
  };
}

function readEnd(value: unknown): CarriedEnd {
  const one = members(value, "end", ["pid", "exit"], ["tag"]);
  return { pid: amount(one["pid"]), tag: optionalText(one["tag"]), exit: readExit(one["exit"]) };
}

function readReader(value: unknown): CarriedReader {
  const one = members(value, "reader", ["kind", "keepaliveMs", "deadlineMs"], ["pid", "path", "options"]);
  const times = {
    keepaliveMs: amount(one["keepaliveMs"]),
    deadlineMs: orNull(one["deadlineMs"], amount),
  };
  switch (one["kind"]) {
    case "process":
      return { kind: "process", pid: amount(one["pid"]), ...times };
    case "watch":
      return { kind: "watch", path: text(one["path"]), options: readOptions(one["options"]), ...times };
    default:
      throw new TypeError("bad reader");
  }
}

function readOptions(value: unknown): Required<WatchOptions> {
  const one = members(value, "options", ["recursive", "withEntries", "allowNetworkMounts"]);
  return {
    recursive: flag(one["recursive"]),
    withEntries: flag(one["withEntries"]),
    allowNetworkMounts: flag(one["allowNetworkMounts"]),
  };
}

function readStart(value: unknown): CarriedStart {
  const one = members(value, "start", ["key", "digest", "ageMs", "state"], ["streamKey"]);
  return {
    key: text(one["key"]),
    digest: text(one["digest"]),
    ageMs: amount(one["ageMs"]),
    streamKey: optionalText(one["streamKey"]),
    state: readState(one["state"]),
  };
}

function readState(value: unknown): CarriedStart["state"] {
  const one = members(value, "state", ["kind"], ["pid", "exit"]);
  switch (one["kind"]) {
    case "running":
      return { kind: "running", pid: amount(one["pid"]) };
    case "ended":
      return { kind: "ended", pid: amount(one["pid"]), exit: readExit(one["exit"]) };
    case "did-not-run":
      return { kind: "did-not-run" };
    case "unknown":
      return { kind: "unknown" };
    default:
      throw new TypeError("bad state");
  }
}

function readSince(value: unknown): CarriedSince {
  const { agoMs, wallMs } = members(value, "since", ["agoMs", "wallMs"]);
  return { agoMs: amount(agoMs), wallMs: amount(wallMs) };
}

function readExit(value: unknown): ProcessExit {
  const one = members(value, "exit", ["kind"], ["code", "signal"]);
  switch (one["kind"]) {
    case "exited":
      return { kind: "exited", code: amount(one["code"]) };
    case "signalled":
      return { kind: "signalled", signal: amount(one["signal"]) };
    default:
      throw new TypeError("bad exit");
  }
}

function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("not a list");
}

function record(value: unknown): object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new TypeError("not an object");
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError("not a text");
}

function optionalText(value: unknown): string | undefined {
  return value === undefined ? undefined : text(value);
}

function flag(value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new TypeError("not a flag");
}

function amount(value: unknown): number {
  if (typeof value === "number" && value >= 0 && Number.isSafeInteger(Math.floor(value))) return value;
  throw new TypeError("not an amount");
}

function orNull<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === null ? null : read(value);
}
