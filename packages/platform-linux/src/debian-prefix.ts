// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { SpaceError } from "@space/model";
import { type PackageHost, thisPackageHost } from "./debian-packages.ts";

/** Packages of one suite of Debian's, to be unpacked together beside the host's own. */
export interface DebianPrefix {
  /** The suite that has them, e.g. `bookworm-backports`: it need not be the host's. */
  readonly suite: string;
  readonly packages: readonly PrefixPackage[];
  /** The folder that will hold their files. Its parent exists or can be made. */
  readonly into: string;
}

export interface PrefixPackage {
  readonly name: string;
  /** The version that is known, and the SHA-256 of its file. Without it: whatever the suite has. */
  readonly pin?: { readonly version: string; readonly sha256: string };
}

/** What was unpacked. A package whose pinned version the suite has given up is there in the one that it has now. */
export interface UnpackedPackage {
  readonly name: string;
  readonly version: string;
  readonly isPinned: boolean;
}

/** What Debian signs its archive with; comes with every Debian. */
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/**
 * Fetches packages from the mirror that this host is set up for and unpacks them into one folder of their own: nothing is
 * installed, and none of the host's lists or states is touched. apt verifies the archive's signature and each package's
 * digest, and then the pinned digests are compared too. The folder is there whole or not at all; one that is there already
 * is replaced. Dependencies are not fetched. Throws `host/unfit` with the reason. May be called concurrently: the last one wins.
 */
export async function unpackDebianPackages(
  wanted: DebianPrefix,
  reason: string,
  signal: AbortSignal,
  host: PackageHost = thisPackageHost,
): Promise<readonly UnpackedPackage[]> {
  const names = wanted.packages.map(({ name }) => name);
  const unfit = (problem: string, name = names[names.length - 1] ?? ""): SpaceError =>
    new SpaceError("host/unfit", {
      problem: `${name} of ${wanted.suite} ${problem}; needed for ${reason}`,
      remedy: `on Debian, with ${wanted.suite} served by its mirror, try again; or install ${name} yourself`,
    });
  if (!existsSync(keyring)) throw unfit("cannot be verified: this host has no keyring of Debian's archive");
  const mirror = await debianMirror(signal, host);
  if (mirror === undefined) throw unfit("cannot be fetched: apt here knows no mirror of Debian");
  mkdirSync(dirname(wanted.into), { recursive: true });
  const draft = mkdtempSync(`${wanted.into}.draft-`);
  try {
    const config = writeAptFolders(draft, `deb [signed-by=${keyring}] ${mirror} ${wanted.suite} main\n`);
    const { succeeded } = await host.run("apt-get", ["-qq", "-c", config, "update"], signal);
    signal.throwIfAborted();
    if (!succeeded) throw unfit("cannot be fetched: the mirror's lists");
    const debs = join(draft, "debs");
    if (!(await download(wanted.packages, { debs, config }, signal, host)))
      throw unfit("could not be fetched and verified");
    const found = readdirSync(debs).map((file) => identify(join(debs, file), wanted.packages));
    for (const { name } of wanted.packages) {
      const [unpacked, ...more] = found.filter((package_) => package_.name === name);
      if (unpacked === undefined || more.length > 0) throw unfit("could not be fetched", name);
      if (unpacked.isForged) throw unfit("is not what it was when it was pinned: its digest differs", name);
      const unpack = ["-x", unpacked.path, join(draft, "root")];
      if (!(await host.run("dpkg-deb", unpack, signal)).succeeded) throw unfit("could not be unpacked", name);
    }
    rmSync(wanted.into, { recursive: true, force: true });
    renameSync(join(draft, "root"), wanted.into);
    return found.map(({ name, version, isPinned }) => ({ name, version, isPinned }));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The pinned versions where the suite still has them all, otherwise what it has. Whether they were had and verified. */
async function download(
  packages: readonly PrefixPackage[],
  { debs, config }: { readonly debs: string; readonly config: string },
  signal: AbortSignal,
  host: PackageHost,
): Promise<boolean> {
  const exactly = packages.map(({ name, pin }) => (pin === undefined ? name : `${name}=${pin.version}`));
  const any = packages.map(({ name }) => name);
  for (const names of packages.some(({ pin }) => pin !== undefined) ? [exactly, any] : [any]) {
    const script = 'cd "$1" && config=$2 && shift 2 && exec apt-get -qq -c "$config" download "$@"';
    const { succeeded } = await host.run("sh", ["-c", script, "sh", debs, config, ...names], signal);
    signal.throwIfAborted();
    if (succeeded) return true;
    for (const file of readdirSync(debs)) rmSync(join(debs, file));
  }
  return false;
}

/** apt names a package's file NAME_VERSION_ARCHITECTURE.deb, with a colon in the version as %3a. */
function identify(path: string, packages: readonly PrefixPackage[]) {
  const [name = "", escaped = ""] = basename(path, ".deb").split("_");
  const version = decodeURIComponent(escaped);
  const pin = packages.find((wanted) => wanted.name === name)?.pin;
  const isSameVersion = pin !== undefined && pin.version === version;
  const isSame =
    isSameVersion && createHash("sha256").update(readFileSync(path)).digest("hex") === pin.sha256;
  return { name, version, path, isPinned: isSame, isForged: isSameVersion && !isSame };
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
