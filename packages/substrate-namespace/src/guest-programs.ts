// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { SpaceError } from "@space/model";

/** Where the guest's tree shows its program. */
export const programTarget = "run/space/guest";

/**
 * The programs that guests run as their pid 1, by digest: the one of this version, and those that restored guests brought.
 * A guest goes on with the very program that it was saved with, whatever the launcher's is by then.
 */
export class GuestPrograms {
  readonly #folder: string;
  /** Of this version. */
  readonly current: string;

  constructor(folder: string, program: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    this.current = this.#add(program, digestOf(program));
  }

  /** One that came with a snapshot. Throws `snapshot/refused` when it is not the one that the snapshot names. */
  bring(path: string, digest: string): string {
    const place = join(this.#folder, digest);
    if (existsSync(place)) return place;
    if (digestOf(path) !== digest)
      throw new SpaceError("snapshot/refused", { problem: "the guest's program is another than it says" });
    return this.#add(path, digest);
  }

  /** What this process runs. Throws `substrate/failed`. */
  of(pid: number): { readonly path: string; readonly digest: string } {
    // Mount, its parent, its device, what of it is shown, and where.
    const shown = new RegExp(`^\\S+ \\S+ \\S+ /([0-9a-f]{64}) /${programTarget} `, "m");
    const digest = shown.exec(readFileSync(`/proc/${pid}/mountinfo`, "utf8"))?.[1];
    if (digest === undefined || !existsSync(join(this.#folder, digest)))
      throw new SpaceError("substrate/failed", { step: "find the guest's program" });
    return { path: join(this.#folder, digest), digest };
  }

  #add(from: string, digest: string): string {
    const place = join(this.#folder, digest);
    if (existsSync(place)) return place;
    copyFileSync(from, `${place}.part`);
    chmodSync(`${place}.part`, 0o755);
    renameSync(`${place}.part`, place);
    return place;
  }
}

function digestOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
