// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SpaceError } from "@space/model";
import { programEnvironment } from "./run-program.ts";

/**
 * Starts a program as root of a user namespace whose ids are those of one guest. `cwd` is where it works; it can read
 * what everybody may, and write what the range owns.
 */
export type RangeRunner = (
  uidBase: number,
  argv: readonly string[],
  cwd: string,
  stdin: "pipe" | "ignore",
) => ChildProcess;

// Numeric owners are the guest's own (the archiver sees the mapped ids), so an archive fits any range on any worker.
// Whiteouts are character devices 0/0 and opaque folders carry user.overlay.* attributes: both are kept.
const common = ["--numeric-owner", "--xattrs", "--xattrs-include=user.*", "--format=posix"];
const createCommand = ["tar", "--create", ...common, "--sparse", "--one-file-system", "--file=-", "."];
const extractCommand = ["tar", "--extract", ...common, "--same-owner", "--same-permissions", "--file=-"];

/** What the kernel takes as one path. An archive names files by their paths, so that a longer one could not be unpacked. */
const pathLimitBytes = 4095;
/** Prints something at the first path that is longer. Names of 255 bytes at most need 16 folders for it: nothing above is compared. */
const longPathCommand = [
  ...["find", ".", "-xdev", "-mindepth", "16", "-regextype", "posix-extended"],
  ...["-regex", `.{${pathLimitBytes}}..*`, "-printf", "long", "-quit"],
];

const shownBytes = 2000;

/** Both launchers' own mode for it: no shell, writes confined to `cwd`. `launcher` is the program and its first arguments. */
export function rangeRunner([program = "", ...first]: readonly string[]): RangeRunner {
  return (uidBase, argv, cwd, stdin) =>
    spawn(program, [...first, "--in-user-namespace", String(uidBase), ...argv], {
      cwd,
      env: programEnvironment,
      stdio: [stdin, "pipe", "pipe"],
    });
}

/**
 * Archives a layer that nobody writes to. Throws `input/too-large` for one with a path that could not be unpacked, before
 * the stream has ended, and `substrate/failed` at its end when it is not whole.
 */
export async function* archiveLayer(
  run: RangeRunner,
  uidBase: number,
  layer: string,
): AsyncGenerator<Uint8Array> {
  const child = run(uidBase, createCommand, layer, "ignore");
  const ended = endOf(child);
  const search = run(uidBase, longPathCommand, layer, "ignore");
  const searched = searchFor(search).then((found) => {
    if (found === "long") child.kill("SIGKILL"); // its length grows with the square of the depth
    return found;
  });
  try {
    if (child.stdout !== null) {
      for await (const chunk of child.stdout) if (chunk instanceof Uint8Array) yield chunk;
    }
    const problem = await ended;
    const found = await searched;
    if (found === "long")
      throw new SpaceError("input/too-large", { what: "a path in the sandbox", limitBytes: pathLimitBytes });
    if (problem !== undefined || found !== "none")
      throw new SpaceError("substrate/failed", { step: "archive" }, { cause: problem ?? found });
  } finally {
    child.kill("SIGKILL"); // no effect on one that has ended; the reader may have stopped early
    search.kill("SIGKILL");
  }
}

/** Never rejects. */
async function searchFor(search: ChildProcess): Promise<"long" | "none" | Error> {
  let printed = "";
  search.stdout?.setEncoding("latin1").on("data", (text: string) => {
    printed += text;
  });
  const problem = await endOf(search);
  return printed === "" ? (problem ?? "none") : "long";
}

/** Unpacks an archive into an empty layer. Throws `snapshot/refused` when it is damaged, or what its source throws. */
export async function restoreLayer(
  run: RangeRunner,
  uidBase: number,
  layer: string,
  archive: AsyncIterable<Uint8Array>,
): Promise<void> {
  const child = run(uidBase, extractCommand, layer, "pipe");
  const ended = endOf(child);
  let sourceError: Error | undefined;
  if (child.stdin !== null) {
    try {
      await pipeline(Readable.from(archive, { objectMode: false }), child.stdin);
    } catch (error) {
      // The source failed; or tar ended early, which its own exit explains better.
      sourceError =
        error instanceof Error ? error : new Error("the archive's source failed", { cause: error });
      child.stdin.destroy();
    }
  }
  if (sourceError !== undefined && !isBrokenPipe(sourceError)) {
    child.kill("SIGKILL");
    await ended;
    throw sourceError;
  }
  const problem = await ended;
  if (problem === undefined) return;
  throw new SpaceError("snapshot/refused", { problem: "the archive cannot be unpacked" }, { cause: problem });
}

function isBrokenPipe(error: Error): boolean {
  return "code" in error && (error.code === "EPIPE" || error.code === "ERR_STREAM_PREMATURE_CLOSE");
}

/** Undefined when the program succeeded, otherwise why not. Never rejects. */
async function endOf(child: ChildProcess): Promise<Error | undefined> {
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (errors.length < shownBytes) errors += text.slice(0, shownBytes);
  });
  try {
    const [code]: unknown[] = await once(child, "close");
    return code === 0 ? undefined : new Error(`ended with ${String(code)}: ${errors}`);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
