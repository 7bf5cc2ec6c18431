// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { constants } from "node:os";
import { posix } from "node:path";
import type { FrameBuilder } from "@space/spaced-guest";

const { errno } = constants;

/** An errno and the guest's word for the step that failed. */
export class FakeErrno extends Error {
  override readonly name: string = "FakeErrno";
  readonly errno: number;
  readonly step: string;

  constructor(name: keyof typeof errno, step: string) {
    super(`${step}: ${name}`);
    this.errno = errno[name];
    this.step = step;
  }
}

interface Owned {
  mode: number;
  uid: number;
  gid: number;
  modifiedAtMs: number;
}
export type FakeFile = Owned & { readonly kind: "file"; content: Buffer };
export type FakeDirectory = Owned & { readonly kind: "directory"; readonly children: Map<string, FakeNode> };
export type FakeLink = Owned & { readonly kind: "link"; readonly target: string };
export type FakeNode = FakeFile | FakeDirectory | FakeLink;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const root: Owner = { uid: 0, gid: 0 };
const linkLimit = 40;
/** The fake's clock: files are all of one instant. */
const now = Date.UTC(2026, 0, 2, 3, 4, 5) + 0.006;

/** A small file system in memory, with the guest's rules: symlinks, owners, errno. No permissions are checked: pid 1 is root. */
export class FakeFiles {
  readonly #root: FakeDirectory = { kind: "directory", children: new Map(), ...owned(0o755, root) };
  /** Bytes that may be written before ENOSPC. */
  spaceBytes: number = Number.POSITIVE_INFINITY;

  write(path: string, content: Buffer | string, owner: Owner = root, mode = 0o644): FakeFile {
    this.mkdir(posix.dirname(path), root, true);
    const file = this.create(path, { owner, mode, makeParents: false, append: false });
    file.content = Buffer.from(content);
    return file;
  }

  read(path: string): Buffer {
    const node = this.find(path);
    if (node.kind !== "file") throw new FakeErrno("EISDIR", "open");
    return node.content;
  }

  /** The node at the path, links followed. */
  find(path: string): Exclude<FakeNode, FakeLink> {
    return this.#walk(this.real(path));
  }

  /** The absolute path without links. Throws ENOENT, ENOTDIR or ELOOP. */
  real(path: string): string {
    let links = 0;
    let rest = path.split("/").filter((part) => part !== "" && part !== ".");
    let at = "/";
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      const next = name === ".." ? posix.dirname(at) : posix.join(at, name);
      const node = this.#entry(next);
      if (node.kind === "link") {
        links += 1;
        if (links > linkLimit) throw new FakeErrno("ELOOP", "open");
        rest = [...posix.resolve(posix.dirname(next), node.target).split("/").filter(Boolean), ...rest];
        at = "/";
      } else {
        if (node.kind === "file" && rest.length > 0) throw new FakeErrno("ENOTDIR", "open");
        at = next;
      }
    }
    return at;
  }

  symlink(path: string, target: string): void {
    const parent = this.#directory(posix.dirname(path));
    parent.children.set(posix.basename(path), { kind: "link", target, ...owned(0o777, root) });
  }

  /** mkdir -p. Whether the last one was made. */
  mkdir(path: string, owner: Owner, existing: boolean): void {
    let at = "/";
    let made = false;
    for (const name of path.split("/").filter(Boolean)) {
      const parent = this.#directory(at);
      at = posix.join(at, name);
      if (parent.children.has(name)) {
        made = false;
        if (this.find(at).kind !== "directory") throw new FakeErrno("ENOTDIR", "mkdir");
      } else {
        parent.children.set(name, { kind: "directory", children: new Map(), ...owned(0o755, owner) });
        made = true;
      }
    }
    if (!made && !existing) throw new FakeErrno("EEXIST", "mkdir");
  }

  create(
    path: string,
    options: { owner: Owner; mode: number; makeParents: boolean; append: boolean },
  ): FakeFile {
    if (options.makeParents) this.mkdir(posix.dirname(path), options.owner, true);
    const parent = this.#directory(posix.dirname(path));
    const found = parent.children.get(posix.basename(path));
    if (found === undefined) {
      const file: FakeFile = {
        kind: "file",
        content: Buffer.alloc(0),
        ...owned(options.mode, options.owner),
      };
      parent.children.set(posix.basename(path), file);
      return file;
    }
    const file = this.find(path);
    if (file.kind !== "file") throw new FakeErrno("EISDIR", "open");
    if (!options.append) file.content = Buffer.alloc(0);
    Object.assign(file, options.owner);
    return file;
  }

  append(file: FakeFile, chunk: Buffer): void {
    if (chunk.length > this.spaceBytes) throw new FakeErrno("ENOSPC", "write");
    this.spaceBytes -= chunk.length;
    file.content = Buffer.concat([file.content, chunk]);
  }

  rename(from: string, to: string, owner: Owner): void {
    const source = this.#directory(posix.dirname(from));
    const node = source.children.get(posix.basename(from));
    if (node === undefined) throw new FakeErrno("ENOENT", "rename");
    this.mkdir(posix.dirname(to), owner, true);
    source.children.delete(posix.basename(from));
    this.#directory(posix.dirname(to)).children.set(posix.basename(to), node);
  }

  remove(path: string): void {
    if (path === "/") throw new FakeErrno("EBUSY", "remove");
    try {
      this.#directory(posix.dirname(path)).children.delete(posix.basename(path));
    } catch {
      // a missing parent is a missing path
    }
  }

  /** Paths below a directory, depth first, in lexical order; links are not entered. */
  *list(path: string, depth: number): Generator<string> {
    const node = this.find(path);
    if (node.kind !== "directory") throw new FakeErrno("ENOTDIR", "list");
    for (const name of [...node.children.keys()].sort()) {
      const child = posix.join(path, name);
      yield child;
      if (depth > 1 && node.children.get(name)?.kind === "directory") yield* this.list(child, depth - 1);
    }
  }

  encodeEntry(into: FrameBuilder, path: string): FrameBuilder {
    const own = this.#entry(posix.join(this.real(posix.dirname(path)), posix.basename(path)));
    const isLink = own.kind === "link";
    let node: FakeNode = own;
    let target = "";
    if (isLink) {
      try {
        target = this.real(path);
        node = this.#walk(target);
      } catch {
        target = own.target; // it dangles
      }
    }
    const type = node.kind === "file" ? 1 : node.kind === "directory" ? 2 : 3;
    const size = node.kind === "file" ? node.content.length : 0;
    const seconds = Math.floor(node.modifiedAtMs / 1000);
    into
      .u8(type)
      .u8(isLink ? 1 : 0)
      .u32(node.mode)
      .u32(node.uid)
      .u32(node.gid)
      .u64(BigInt(size));
    into.i64(BigInt(seconds)).u32(Math.round((node.modifiedAtMs - seconds * 1000) * 1e6));
    return into.string(path).string(target);
  }

  #directory(path: string): FakeDirectory {
    const node = this.find(path);
    if (node.kind !== "directory") throw new FakeErrno("ENOTDIR", "open");
    return node;
  }

  #walk(real: string): Exclude<FakeNode, FakeLink> {
    const node = this.#entry(real);
    if (node.kind === "link") throw new FakeErrno("ELOOP", "open");
    return node;
  }

  /** The node at a path whose parents have no links; the last part is not followed. */
  #entry(path: string): FakeNode {
    let node: FakeNode = this.#root;
    for (const name of path.split("/").filter(Boolean)) {
      if (node.kind !== "directory") throw new FakeErrno("ENOTDIR", "open");
      const next: FakeNode | undefined = node.children.get(name);
      if (next === undefined) throw new FakeErrno("ENOENT", "open");
      node = next;
    }
    return node;
  }
}

function owned(mode: number, { uid, gid }: Owner): Owned {
  return { mode, uid, gid, modifiedAtMs: now };
}
