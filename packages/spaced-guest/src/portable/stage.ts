// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { closeSync, constants, mkdirSync, openSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { GuestError } from "../guest-error.ts";
import { attachAt, cloneTree, MountAttribute, MountFlag, mountAt, setAttributes } from "./mount-calls.ts";

/**
 * Where a starting process assembles what it needs, on a file system of its own: hidden by it, in that process's own
 * mount namespace only, is a folder that every host has and that no record's path lies under.
 */
const folder = "/sys";

export const stage = {
  folder,
  /** The new root. */
  root: join(folder, "root"),
  devices: join(folder, "dev"),
  processes: join(folder, "proc"),
  memory: join(folder, "shm"),
  /** This program and its Node, readable for the guest's root: the way to them may not be. Gone with the old root. */
  code: join(folder, "code"),
  node: join(folder, "node"),
} as const;

/** Of the erased program, beside which lie its dependencies. */
const sources = join(import.meta.dirname, "..");
const modules = join(sources, "..", "node_modules");
const readOnly = MountAttribute.readOnly | MountAttribute.noSetuid | MountAttribute.noDevices;

/** Mounts the stage and makes its folders. */
export function openStage(): void {
  mountAt(
    {
      type: "tmpfs",
      target: stage.folder,
      flags: MountFlag.noSetuid | MountFlag.noDevices,
      options: "size=1m,mode=0755",
    },
    "stage",
  );
  for (const place of [stage.root, stage.devices, stage.processes, stage.memory, stage.code, stage.node]) {
    mkdirSync(place, { mode: 0o755 });
  }
}

/** Descriptors of trees that must be found before the stage hides anything. */
export function cloneProgram(userNamespace: number): () => void {
  const trees = [
    { place: join(stage.code, "src"), tree: cloneReadable(sources, userNamespace) },
    {
      place: join(stage.code, "node_modules"),
      tree: cloneReadable(modules, userNamespace),
    },
    { place: stage.node, tree: cloneReadable(dirname(process.execPath), userNamespace) },
  ];
  return () => {
    writeFileSync(join(stage.code, "package.json"), '{"type":"module"}');
    for (const { place, tree } of trees) {
      mkdirSync(place, { recursive: true, mode: 0o755 });
      attachAt(tree, place, "program");
    }
  };
}

/** Its owners are mapped into the guest where the file system can: a checkout may be readable for its owner only. */
function cloneReadable(path: string, userNamespace: number): number {
  const tree = cloneTree(path, false, "program");
  try {
    setAttributes(tree, readOnly, userNamespace, "program");
  } catch (error) {
    if (!(error instanceof GuestError) || error.code !== "EINVAL") throw error;
    setAttributes(tree, readOnly, undefined, "program");
  }
  return tree;
}

/** A descriptor that only names a path. The caller closes it. */
export function openPath(path: string): number {
  return openSync(path, 0x20_0000 | constants.O_DIRECTORY);
}

export function closeAll(descriptors: readonly number[]): void {
  for (const fd of descriptors) closeSync(fd);
}
