// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFile } from "node:child_process";

import { SpaceError } from "@space/model";

/** Something that the host must have: present when its command is found, else when its Debian package is installed. */
export interface HostPackage {
  readonly name: string;
  readonly command?: string;
}

/** What installing needs from the host; a test gives its own. */
export interface PackageHost {
  readonly isRoot: boolean;
  /** Runs a program to its end. A program that cannot be started counts as one that failed. */
  run(command: string, args: readonly string[], signal: AbortSignal): Promise<CommandOutcome>;
}

export interface CommandOutcome {
  readonly succeeded: boolean;
  readonly stdout: string;
}

const outputLimitBytes = 4 << 20;
const lockWaitSeconds = 120;

export const thisPackageHost: PackageHost = {
  isRoot: process.getuid?.() === 0,
  run: (command, args, signal) =>
    new Promise((settle) => {
      // RUNLEVEL: a server that comes as a package must not start by itself and listen to the world.
      const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C", RUNLEVEL: "1" };
      const child = execFile(command, args, { env, signal, maxBuffer: outputLimitBytes }, (error, stdout) => {
        settle({ succeeded: error === null, stdout });
      });
      child.stdin?.end();
    }),
};

/**
 * Makes sure that the host has these packages, and installs the missing ones where that needs no question: on a
 * Debian host, as root. Says whether it installed any. Fails with `host/unfit`, naming `reason` and the command that
 * an administrator would run, when it may not or cannot. Safe to call concurrently: apt waits for its own lock.
 */
export async function ensureDebianPackages(
  needs: readonly HostPackage[],
  reason: string,
  signal: AbortSignal,
  host: PackageHost = thisPackageHost,
): Promise<"present" | "installed"> {
  const missing = await missingOf(needs, signal, host);
  if (missing.length === 0) return "present";
  const canInstall = host.isRoot && (await isFound("apt-get", signal, host));
  if (!canInstall) throw unfit("missing, and only root on Debian may install here", missing, reason);

  const names = missing.map(({ name }) => name);
  const install = [
    "install",
    "--yes",
    "--no-install-recommends",
    "-o",
    `DPkg::Lock::Timeout=${lockWaitSeconds}`,
    ...names,
  ];
  let { succeeded } = await host.run("apt-get", install, signal);
  if (!succeeded) {
    await host.run("apt-get", ["update"], signal); // a host that never fetched its package lists knows no package
    ({ succeeded } = await host.run("apt-get", install, signal));
  }
  signal.throwIfAborted();
  const stillMissing = await missingOf(missing, signal, host);
  if (!succeeded || stillMissing.length > 0) throw unfit("could not be installed", missing, reason);
  return "installed";
}

async function missingOf(
  needs: readonly HostPackage[],
  signal: AbortSignal,
  host: PackageHost,
): Promise<readonly HostPackage[]> {
  const missing: HostPackage[] = [];
  for (const need of needs) if (!(await isPresent(need, signal, host))) missing.push(need);
  signal.throwIfAborted();
  return missing;
}

async function isPresent(
  { name, command }: HostPackage,
  signal: AbortSignal,
  host: PackageHost,
): Promise<boolean> {
  if (command !== undefined && (await isFound(command, signal, host))) return true;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own format
  const format = "--showformat=${db:Status-Status}";
  const { stdout } = await host.run("dpkg-query", ["--show", format, name], signal);
  return stdout.trim() === "installed";
}

async function isFound(command: string, signal: AbortSignal, host: PackageHost): Promise<boolean> {
  const { succeeded } = await host.run("sh", ["-c", 'command -v "$1"', "sh", command], signal);
  return succeeded;
}

function unfit(problem: string, missing: readonly HostPackage[], reason: string): SpaceError<"host/unfit"> {
  const names = missing.map(({ name }) => name).join(" ");
  return new SpaceError("host/unfit", {
    problem: `${names} ${problem}; needed for ${reason}`,
    remedy: `apt-get install ${names}`,
  });
}
