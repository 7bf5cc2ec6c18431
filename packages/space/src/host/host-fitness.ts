// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { SpaceError } from "@space/model";
import { nativeLauncher } from "../product.ts";

/** One thing that the host has or lacks. */
export interface HostFact {
  readonly name: string;
  readonly state: "ok" | "slower" | "missing";
  /** What was found. */
  readonly found: string;
  /** What to do about it; empty when nothing is to be done. */
  readonly remedy: string;
}

/** What the facts are read from; injected so that each answer can be tested. */
export interface HostView {
  readonly userId: number;
  readonly kernel: string;
  read(path: string): string;
  exists(path: string): boolean;
  /** Where the program is on the usual path, if anywhere. */
  program(name: string): string | undefined;
}

export const thisHost: HostView = {
  userId: process.getuid?.() ?? -1,
  kernel: release(),
  read(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return ""; // absent reads as empty: the fact below says "missing"
    }
  },
  exists: existsSync,
  program: (name) =>
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
      .map((folder) => `${folder}/${name}`)
      .find((path) => existsSync(path)),
};

/** Id-mapped layers under an overlay came with Linux 5.19. */
const oldestKernel = [5, 19] as const;

/** Everything that the `namespace` substrate needs or likes. */
export function hostFacts(host: HostView): readonly HostFact[] {
  return [
    fact(
      "root",
      host.userId === 0,
      `user id ${host.userId}`,
      "run as root: user-id ranges, control groups and mounts need it",
    ),
    fact("kernel", kernelIsNew(host.kernel), host.kernel, "use Linux 5.19 or newer (Debian 12 has 6.1)"),
    fact(
      "user namespaces",
      allowsUserNamespaces(host),
      userNamespaces(host),
      "set user.max_user_namespaces above 0",
    ),
    fact(
      "overlay",
      /\boverlay\b/.test(host.read("/proc/filesystems")),
      "in /proc/filesystems",
      "load the overlay module",
    ),
    fact(
      "control groups",
      controlGroups(host) !== "none",
      controlGroups(host),
      "mount cgroup v2 at /sys/fs/cgroup",
    ),
    fact(
      "unshare",
      host.program("unshare") !== undefined,
      host.program("unshare") ?? "not found",
      "install util-linux",
    ),
    fact("tar", host.program("tar") !== undefined, host.program("tar") ?? "not found", "install tar"),
    fact(
      "python3",
      host.program("python3") !== undefined,
      host.program("python3") ?? "not found",
      "install python3, which guests then have too",
    ),
    launcherFact(host),
  ];
}

function fact(name: string, ok: boolean, found: string, remedy: string): HostFact {
  return { name, state: ok ? "ok" : "missing", found, remedy: ok ? "" : remedy };
}

function launcherFact(host: HostView): HostFact {
  if (host.exists(nativeLauncher)) return { name: "launcher", state: "ok", found: "native", remedy: "" };
  const remedy =
    "install gcc and libc6-dev, then start again: starts and commands are then several times faster, and terminals work";
  return { name: "launcher", state: "slower", found: "portable (no compiled launcher)", remedy };
}

function kernelIsNew(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  return major > oldestKernel[0] || (major === oldestKernel[0] && minor >= oldestKernel[1]);
}

function userNamespaces(host: HostView): string {
  return `max ${host.read("/proc/sys/user/max_user_namespaces").trim() || "unknown"}`;
}

function allowsUserNamespaces(host: HostView): boolean {
  return Number(host.read("/proc/sys/user/max_user_namespaces")) > 0;
}

function controlGroups(host: HostView): "v2" | "v1 with v2" | "v1" | "none" {
  if (host.exists("/sys/fs/cgroup/cgroup.controllers")) return "v2";
  const v1 = host.exists("/sys/fs/cgroup/memory");
  if (v1 && host.exists("/sys/fs/cgroup/unified/cgroup.controllers")) return "v1 with v2";
  return v1 ? "v1" : "none";
}

/** Throws `host/unfit` with the first thing that keeps sandboxes from starting here. */
export function requireHost(why: string, host: HostView = thisHost): Promise<void> {
  const missing = hostFacts(host).find(({ state, name }) => state === "missing" && name !== "python3");
  if (missing === undefined) return Promise.resolve();
  return Promise.reject(
    new SpaceError("host/unfit", {
      problem: `${why}, and this host lacks ${missing.name} (${missing.found})`,
      remedy: missing.remedy,
    }),
  );
}
