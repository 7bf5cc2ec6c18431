// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SpaceError } from "@space/model";
import { unpackDebianPackages } from "@space/platform-linux";
import { type CriuVerdict, judgeCriu, readCriuVersion } from "./criu-build.ts";
import { criuPackages, criuSuite } from "./criu-packages.ts";
import { programEnvironment } from "./run-program.ts";

/** A CRIU that may be used. */
export interface CriuProgram {
  /** The program and its first arguments. */
  readonly argv: readonly string[];
  /** For people: where it is. */
  readonly path: string;
  readonly version: string;
  readonly verdict: Exclude<CriuVerdict, { readonly kind: "refused" }>;
  /** Packages of a private one that are not those it was tried with, e.g. `libc6 2.44-1`. */
  readonly untried: readonly string[];
}

/** What was looked at, and why it is not used: for `doctor`. */
export interface RefusedCriu {
  readonly path: string;
  readonly reason: string;
}

export interface CriuSearch {
  readonly found: CriuProgram | undefined;
  readonly refused: readonly RefusedCriu[];
}

const usualPlaces = ["/usr/local/sbin/criu", "/usr/sbin/criu"] as const;
const libraries = "usr/lib/x86_64-linux-gnu";
const noteName = "prefix.note";
const versionLimitMs = 10_000;

/** Where `installCriu` puts it. `tools` is the checkout's folder for programs of its own. */
export function privateCriu(tools: string): string {
  return join(tools, "criu");
}

/** Looks at the private one first, then at the host's. The first that is not refused is used. */
export async function findCriu(tools: string): Promise<CriuSearch> {
  const refused: RefusedCriu[] = [];
  const prefix = privateCriu(tools);
  for (const path of [prefix, ...usualPlaces]) {
    if (!existsSync(path)) continue;
    const program = path === prefix ? await judgePrefix(prefix) : await judge({ argv: [path], path });
    if (typeof program !== "string") return { found: program, refused };
    refused.push({ path, reason: program });
  }
  return { found: undefined, refused };
}

/** As `findCriu`. Throws `host/unfit` saying what is wrong with each. */
export async function requireCriu(tools: string): Promise<CriuProgram> {
  const { found, refused } = await findCriu(tools);
  if (found !== undefined) return found;
  const why = refused.map(({ path, reason }) => `${path} is refused (${reason})`).join("; ");
  throw new SpaceError("host/unfit", {
    problem: why === "" ? "there is no CRIU here" : why,
    remedy: "./space doctor --install",
  });
}

/** Puts Debian's tested CRIU, with all that it loads, into the private folder, unless a usable one is found already. Throws `host/unfit`. */
export async function installCriu(
  tools: string,
  signal: AbortSignal,
): Promise<{ readonly program: CriuProgram; readonly installed: boolean }> {
  const before = await findCriu(tools);
  if (before.found !== undefined) return { program: before.found, installed: false };
  if (process.arch !== "x64")
    throw new SpaceError("host/unfit", {
      problem: `nobody has tried CRIU on ${process.arch}`,
      remedy: "use a host with an x86-64 processor",
    });
  const into = privateCriu(tools);
  const wanted = { suite: criuSuite, packages: criuPackages, into };
  const unpacked = await unpackDebianPackages(wanted, "memory snapshots of the namespace driver", signal);
  for (const folder of ["usr/share", "etc"]) await rm(join(into, folder), { recursive: true, force: true });
  const untried = unpacked.flatMap(({ name, version, isPinned }) => (isPinned ? [] : [`${name} ${version}`]));
  await writeFile(join(into, noteName), JSON.stringify({ untried, seal: await sealOf(into) }));
  return { program: await requireCriu(tools), installed: true };
}

/** It, or why not. */
async function judgePrefix(prefix: string): Promise<CriuProgram | string> {
  const note = await readNote(prefix);
  if (note === undefined || note.seal !== (await sealOf(prefix)))
    return "its files are not those that were fetched";
  const folder = join(prefix, libraries);
  const loader = [join(folder, "ld-linux-x86-64.so.2"), "--library-path", folder];
  return judge({ argv: [...loader, join(prefix, "usr/sbin/criu")], path: prefix }, note.untried);
}

async function judge(
  place: Pick<CriuProgram, "argv" | "path">,
  untried: readonly string[] = [],
): Promise<CriuProgram | string> {
  const [program = "", ...first] = place.argv;
  const version = readCriuVersion(await output(program, [...first, "--version"]));
  if (version === undefined) return "it does not say what it is";
  const verdict = judgeCriu(version);
  return verdict.kind === "refused"
    ? `CRIU ${version}: ${verdict.reason}`
    : { ...place, version, verdict, untried };
}

function output(program: string, args: readonly string[]): Promise<string> {
  const options = { env: programEnvironment, timeout: versionLimitMs };
  return new Promise((resolve) => {
    execFile(program, [...args], options, (error, stdout) => resolve(error === null ? stdout : ""));
  });
}

interface PrefixNote {
  readonly untried: readonly string[];
  readonly seal: string;
}

async function readNote(prefix: string): Promise<PrefixNote | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(join(prefix, noteName), "utf8"));
    if (typeof value !== "object" || value === null || !("untried" in value) || !("seal" in value))
      return undefined;
    const { untried, seal } = value;
    const isList = Array.isArray(untried) && untried.every((name) => typeof name === "string");
    return isList && typeof seal === "string" ? { untried, seal } : undefined;
  } catch {
    return undefined; // cut short, or of somebody else's making
  }
}

/** One digest of every file's name and content, but the note's. */
export async function sealOf(prefix: string): Promise<string> {
  const entries = await readdir(prefix, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && entry.name !== noteName)
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const whole = createHash("sha256");
  for (const path of paths) {
    const digest = createHash("sha256")
      .update(await readFile(path))
      .digest("hex");
    whole.update(`${digest} ${path.slice(prefix.length)}\n`);
  }
  return whole.digest("hex");
}
