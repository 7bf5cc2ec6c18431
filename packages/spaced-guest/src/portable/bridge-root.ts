// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { HostBind } from "../launch-protocol.ts";
import { during } from "./libc.ts";
import {
  attachAt,
  changeRoot,
  cloneTree,
  MountAttribute,
  MountFlag,
  mountAt,
  setAttributes,
} from "./mount-calls.ts";
import { openStage, stage } from "./stage.ts";

const links = ["bin", "lib", "lib64", "sbin"];

/** Makes a root with only these paths, each at its own place, and moves this process into it. Throws `GuestError`. */
export function enterBridgeRoot(binds: readonly HostBind[]): void {
  const trees = binds.map(({ path, readOnly }) => {
    const tree = cloneTree(path, false, "bind");
    const devices = path.startsWith("/dev/") ? 0 : MountAttribute.noDevices;
    const attributes = MountAttribute.noSetuid | devices | (readOnly ? MountAttribute.readOnly : 0);
    setAttributes(tree, attributes, undefined, "bind");
    return { tree, path, folder: during("bind", () => statSync(path).isDirectory()) };
  });
  openStage();
  const flags = MountFlag.noSetuid | MountFlag.noDevices;
  const options = "size=1m,mode=0755";
  mountAt({ type: "tmpfs", source: "root", target: stage.root, flags, options }, "root");
  for (const { tree, path, folder } of trees) {
    const place = join(stage.root, path);
    during("bind-target", () => makePlace(place, folder));
    attachAt(tree, place, "bind-target");
  }
  for (const name of links) during("root", () => symlinkSync(join("usr", name), join(stage.root, name)));
  const sealed = flags | MountFlag.remount | MountFlag.readOnly;
  mountAt({ type: null, target: stage.root, flags: sealed }, "root");
  changeRoot(stage.root);
}

function makePlace(place: string, folder: boolean): void {
  mkdirSync(folder ? place : dirname(place), { recursive: true, mode: 0o755 });
  if (!folder) writeFileSync(place, "", { flag: "a" });
}
