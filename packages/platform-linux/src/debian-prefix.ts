// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SpaceError } from "@space/model";
import { type PackageHost, thisPackageHost } from "./debian-packages.ts";

/** One package of Debian's, to be unpacked beside the host's own. */
export interface PrefixPackage {
  readonly name: string;
  /** The suite that has it, e.g. `bookworm-backports`: it need not be the host's. */
  readonly suite: string;
  /** The folder that will hold its files. Its parent exists or can be made. */
  readonly into: string;
}

/** What Debian signs its archive with; comes with every Debian. */
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/**
 * Fetches a package from the mirror that this host is set up for and unpacks it into a folder of its own: no package
 * is installed, and none of the host's lists or states is touched. apt verifies the archive's signature and the package's
 * digest. The folder is there whole or not at all; one that is there already is replaced. Dependencies are not fetched.
 * Throws `host/unfit` with the reason. May be called concurrently: the last one wins.
 */
export async function unpackDebianPackage(
  wanted: PrefixPackage,
  reason: string,
  signal: AbortSignal,
  host: PackageHost = thisPackageHost,
): Promise<void> {
  const unfit = (problem: string): SpaceError =>
    new SpaceError("host/unfit", {
      problem: `${wanted.name} of ${wanted.suite} ${problem}; needed for ${reason}`,
      remedy: `on Debian, with ${wanted.suite} served by its mirror, try again; or install ${wanted.name} yourself`,
    });
  if (!existsSync(keyring)) throw unfit("cannot be verified: this host has no keyring of Debian's archive");
  const mirror = await debianMirror(signal, host);
  if (mirror === undefined) throw unfit("cannot be fetched: apt here knows no mirror of Debian");
  mkdirSync(dirname(wanted.into), { recursive: true });
  const draft = mkdtempSync(`${wanted.into}.draft-`);
  try {
    const config = writeAptFolders(draft, `deb [signed-by=${keyring}] ${mirror} ${wanted.suite} main\n`);
    const steps: readonly (readonly [problem: string, command: string, args: readonly string[]])[] = [
      ["cannot be fetched: the mirror's lists", "apt-get", ["-qq", "-c", config, "update"]],
      [
        "could not be fetched and verified",
        "sh",
        [
          "-c",
          'cd "$1" && exec apt-get -qq -c "$2" download "$3"',
          "sh",
          join(draft, "debs"),
          config,
          wanted.name,
        ],
      ],
    ];
    for (const [problem, command, args] of steps) {
      const { succeeded } = await host.run(command, args, signal);
      signal.throwIfAborted();
      if (!succeeded) throw unfit(problem);
    }
    const [archive] = readdirSync(join(draft, "debs"));
    if (archive === undefined) throw unfit("could not be fetched");
    const unpack = ["-x", join(draft, "debs", archive), join(draft, "root")];
    if (!(await host.run("dpkg-deb", unpack, signal)).succeeded) throw unfit("could not be unpacked");
    rmSync(wanted.into, { recursive: true, force: true });
    renameSync(join(draft, "root"), wanted.into);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The mirror that apt here fetches Debian's own packages from. */
async function debianMirror(signal: AbortSignal, host: PackageHost): Promise<string | undefined> {
  const args = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
  const { stdout } = await host.run("apt-get", args, signal);
  return stdout.split("\n").find((uri) => /^[a-z+]+:\/\/[^\s[\]]+\/debian\/?$/.test(uri));
}

/** Folders and settings for an apt that knows nothing but one suite. Returns the file of settings. */
function writeAptFolders(folder: string, source: string): string {
  for (const name of ["lists/partial", "cache/archives/partial", "debs"])
    mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, "sources.list"), source);
  writeFileSync(join(folder, "status"), "");
  const settings: Readonly<Record<string, string>> = {
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::State::lists": join(folder, "lists"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "Acquire::Languages": "none",
    "Acquire::AllowInsecureRepositories": "false",
    "APT::Get::AllowUnauthenticated": "false",
    "APT::Sandbox::User": "root",
  };
  const config = join(folder, "apt.conf");
  const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";\n`);
  writeFileSync(config, lines.join(""));
  return config;
}
