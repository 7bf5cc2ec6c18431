// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

const keyForm = /^[a-z0-9_-]{1,100}(\/[a-z0-9_-]{1,100}){0,9}$/;
const prefixForm = /^([a-z0-9_-]{1,100}\/){1,9}$/;

/** Whether this is a key of a byte store: up to ten words of `[a-z0-9_-]`, joined by slashes. */
export function isObjectKey(text: string): boolean {
  return keyForm.test(text);
}

/** For stores: what is no key has been made by mistake. Throws `TypeError`. */
export function requireObjectKey(key: string): void {
  if (!isObjectKey(key)) throw new TypeError("this is not the key of an object");
}

/** Whole words, each with its slash. Throws `TypeError`. */
export function requireKeyPrefix(prefix: string): void {
  if (!prefixForm.test(prefix)) throw new TypeError("this is not the beginning of keys");
}
