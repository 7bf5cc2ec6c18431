// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { writeSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile, syncFolder } from "@space/platform-linux/durable-file";

/** One segment being written. Bytes are placed, not appended, so that what is written twice is there once. */
export interface SegmentFile {
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** As {@link write}, for the very end of the process. */
  writeNow(bytes: Uint8Array, position: number): void;
  cutTo(sizeBytes: number): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The files of a log. Every method throws what the file system says, or `store/failed` with it. */
export interface LogFiles {
  /** Makes a new segment of mode 0600, its name synced. */
  create(name: string): Promise<SegmentFile>;
  remove(name: string): Promise<void>;
  /** Replaces a small file as a whole. */
  replace(name: string, text: string): Promise<void>;
}

export class DirectoryLogFiles implements LogFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async create(name: string): Promise<SegmentFile> {
    const file = await open(join(this.#directory, name), "wx", 0o600);
    await syncFolder(this.#directory);
    return new OpenSegmentFile(file);
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#directory, name), { force: true });
  }

  async replace(name: string, text: string): Promise<void> {
    const path = join(this.#directory, name);
    await replaceFile(path, text, { temporary: `${path}.new` }); // one writer per directory
  }
}

class OpenSegmentFile implements SegmentFile {
  readonly #file: FileHandle;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const { bytesWritten } = await this.#file.write(
        bytes,
        written,
        bytes.length - written,
        position + written,
      );
      written += bytesWritten;
    }
  }

  writeNow(bytes: Uint8Array, position: number): void {
    writeSync(this.#file.fd, bytes, 0, bytes.length, position);
  }

  async cutTo(sizeBytes: number): Promise<void> {
    await this.#file.truncate(sizeBytes);
  }

  async sync(): Promise<void> {
    await this.#file.datasync();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}
