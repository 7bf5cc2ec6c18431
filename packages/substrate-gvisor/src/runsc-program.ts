// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { join } from "node:path";
import { SpaceError } from "@space/model";
import { unpackDebianPackages } from "@space/platform-linux";
import { type BuildVerdict, buildText, judgeBuild, type RunscBuild, readRunscBuild } from "./runsc-build.ts";

/** A runsc that may be used. */
export interface RunscProgram {
  readonly path: string;
  readonly build: RunscBuild;
  readonly verdict: Exclude<BuildVerdict, { readonly kind: "refused" }>;
}

/** What this was tested with; it is static, so any Debian can run it. */
const debianPackage = { suite: "bookworm-backports", packages: [{ name: "runsc" }] } as const;
const usualPlaces = ["/usr/local/bin/runsc", "/usr/bin/runsc"] as const;

/** What was looked at, and why it is not used: for `doctor`. */
export interface RefusedProgram {
  readonly path: string;
  readonly reason: string;
}

export interface RunscSearch {
  readonly found: RunscProgram | undefined;
  readonly refused: readonly RefusedProgram[];
}

/** Where `installRunsc` puts it. `tools` is the checkout's folder for programs of its own. */
export function privateRunsc(tools: string): string {
  return join(tools, "runsc/usr/bin/runsc");
}

/** Looks at the private one first, then at the host's. The first that is not refused is used. */
export async function findRunsc(tools: string): Promise<RunscSearch> {
  const refused: RefusedProgram[] = [];
  for (const path of [privateRunsc(tools), ...usualPlaces]) {
    if (!existsSync(path)) continue;
    const build = await readRunscBuild(path);
    const verdict = build === undefined ? undefined : judgeBuild(build);
    if (build === undefined || verdict === undefined)
      refused.push({ path, reason: "it does not say what it is" });
    else if (verdict.kind === "refused")
      refused.push({ path, reason: `${buildText(build)}: ${verdict.reason}` });
    else return { found: { path, build, verdict }, refused };
  }
  return { found: undefined, refused };
}

/** As `findRunsc`. Throws `host/unfit` saying what is wrong with each. */
export async function requireRunsc(tools: string): Promise<RunscProgram> {
  const { found, refused } = await findRunsc(tools);
  if (found !== undefined) return found;
  const why = refused.map(({ path, reason }) => `${path} is refused (${reason})`).join("; ");
  throw new SpaceError("host/unfit", {
    problem: why === "" ? "there is no runsc here" : why,
    remedy: "./space doctor --install",
  });
}

/** Puts Debian's tested build into the private folder, unless a usable one is found already. Throws `host/unfit`. */
export async function installRunsc(
  tools: string,
  signal: AbortSignal,
): Promise<{ readonly program: RunscProgram; readonly installed: boolean }> {
  const before = await findRunsc(tools);
  if (before.found !== undefined) return { program: before.found, installed: false };
  await unpackDebianPackages({ ...debianPackage, into: join(tools, "runsc") }, "the gvisor driver", signal);
  return { program: await requireRunsc(tools), installed: true };
}
