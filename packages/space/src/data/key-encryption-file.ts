// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createCipheriv, createDecipheriv } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { type KeyWrapping, type Random, Secret, SpaceError } from "@space/model";
import { replaceFileNow } from "@space/platform-linux/durable-file";
import { requirePrivate } from "./private-file.ts";

const version = 1;
const idBytes = 16;
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + idBytes + nonceBytes;
const lineForm = /^([0-9a-f]{32}) ([0-9a-f]{64})$/;

interface EncryptionKey {
  readonly id: string;
  readonly secret: Secret<Uint8Array>;
}

/**
 * Key-encryption keys in one file, that its owner alone may read: a line for each, its id and itself in hexadecimal, the
 * newest first. The file is read for each use anew, so that it may be exchanged under a running process. Lost with all
 * its copies, no snapshot can be read any more.
 */
export class KeyEncryptionFile implements KeyWrapping {
  readonly #path: string;
  readonly #random: Random;

  private constructor(path: string, random: Random) {
    this.#path = path;
    this.#random = random;
  }

  /** Makes the file, with one key, where there is none. Throws `host/unfit` for one that others may read, or that is none. */
  static open(path: string, random: Random): KeyEncryptionFile {
    const file = new KeyEncryptionFile(path, random);
    if (existsSync(path)) file.#read();
    else file.#write([file.#newKey()]);
    return file;
  }

  /** One that was made before. Throws `host/unfit`, also where it is not there. */
  static existing(path: string, random: Random): KeyEncryptionFile {
    const file = new KeyEncryptionFile(path, random);
    file.#read();
    return file;
  }

  /** Ids, the newest first. */
  get ids(): readonly string[] {
    return this.#read().map(({ id }) => id);
  }

  /** A new key wraps from now on; those before still open. Durable when it returns its id. */
  rotate(): string {
    const key = this.#newKey();
    this.#write([key, ...this.#read()]);
    return key.id;
  }

  /** Only this key and newer ones are left. What is still wrapped under another is lost: everything is to be wrapped anew before. */
  forgetBefore(keyId: string): void {
    const keys = this.#read();
    const at = keys.findIndex(({ id }) => id === keyId);
    if (at >= 0) this.#write(keys.slice(0, at + 1));
  }

  async wrap(secret: Secret<Uint8Array>, context: string): Promise<Uint8Array> {
    const [newest] = this.#read();
    if (newest === undefined) throw new SpaceError("key-wrapping/failed", { step: "read the file" });
    const nonce = this.#random.bytes(nonceBytes);
    const header = Buffer.concat([Buffer.of(version), Buffer.from(newest.id, "hex"), nonce]);
    const cipher = createCipheriv("aes-256-gcm", newest.secret.reveal(), nonce);
    cipher.setAAD(Buffer.concat([header, Buffer.from(context)]));
    return Buffer.concat([header, cipher.update(secret.reveal()), cipher.final(), cipher.getAuthTag()]);
  }

  async unwrap(wrapped: Uint8Array, context: string): Promise<Secret<Uint8Array>> {
    const id = idIn(wrapped);
    const key = this.#read().find((held) => held.id === id);
    if (key === undefined) throw new SpaceError("key-wrapping/unknown", { wrappingKey: id });
    const header = wrapped.subarray(0, headerBytes);
    const options = { authTagLength: tagBytes };
    const nonce = header.subarray(headerBytes - nonceBytes);
    const cipher = createDecipheriv("aes-256-gcm", key.secret.reveal(), nonce, options);
    cipher.setAAD(Buffer.concat([header, Buffer.from(context)]));
    cipher.setAuthTag(wrapped.subarray(wrapped.length - tagBytes));
    try {
      const plain = [cipher.update(wrapped.subarray(headerBytes, -tagBytes)), cipher.final()];
      return new Secret(new Uint8Array(Buffer.concat(plain)));
    } catch (cause) {
      throw new SpaceError("key-wrapping/refused", { problem: "not authentic" }, { cause });
    }
  }

  async isNewest(wrapped: Uint8Array): Promise<boolean> {
    const id = idIn(wrapped);
    const ids = this.ids;
    if (!ids.includes(id)) throw new SpaceError("key-wrapping/unknown", { wrappingKey: id });
    return ids[0] === id;
  }

  #newKey(): EncryptionKey {
    return {
      id: Buffer.from(this.#random.bytes(idBytes)).toString("hex"),
      secret: new Secret(this.#random.bytes(keyBytes)),
    };
  }

  #read(): readonly EncryptionKey[] {
    if (!existsSync(this.#path)) throw unfit(`${this.#path} is not there`);
    requirePrivate(this.#path);
    const lines = readFileSync(this.#path, "utf8").trimEnd().split("\n");
    return lines.map((line) => {
      const [, id, key] = lineForm.exec(line) ?? [];
      if (id === undefined || key === undefined) throw unfit(`${this.#path} holds a line that is no key`);
      return { id, secret: new Secret(new Uint8Array(Buffer.from(key, "hex"))) };
    });
  }

  #write(keys: readonly EncryptionKey[]): void {
    const lines = keys.map(({ id, secret }) => `${id} ${Buffer.from(secret.reveal()).toString("hex")}\n`);
    replaceFileNow(this.#path, lines.join(""));
  }
}

function idIn(wrapped: Uint8Array): string {
  if (wrapped.length < headerBytes + tagBytes || wrapped[0] !== version)
    throw new SpaceError("key-wrapping/refused", { problem: "form" });
  return Buffer.from(wrapped.subarray(1, 1 + idBytes)).toString("hex");
}

function unfit(problem: string): SpaceError {
  return new SpaceError("host/unfit", {
    problem,
    remedy: "put the file of key-encryption keys back from a copy: snapshots cannot be read without it",
  });
}
