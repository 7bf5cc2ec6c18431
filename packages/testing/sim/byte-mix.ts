// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The same as {@link withBytes} of a text's bytes, when all of it is ASCII. */
export function withText(
  [first, second]: readonly [number, number],
  text: string,
): readonly [number, number] {
  let [a, b] = [first, second];
  const words = text.length & ~3;
  for (let at = 0; at < words; at += 4) {
    const word =
      text.charCodeAt(at) |
      (text.charCodeAt(at + 1) << 8) |
      (text.charCodeAt(at + 2) << 16) |
      (text.charCodeAt(at + 3) << 24);
    a = Math.imul(a ^ word, 0x01000193);
    b = Math.imul((b << 5) ^ (b >>> 27) ^ word, 0x9e3779b1);
  }
  for (let at = words; at < text.length; at += 1) {
    const byte = text.charCodeAt(at);
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul((b << 5) ^ (b >>> 27) ^ byte, 0x9e3779b1);
  }
  return [a, b];
}

/** Two words that depend on every byte, and on what they were before; for who is no attacker. */
export function withBytes(
  [first, second]: readonly [number, number],
  bytes: Buffer,
): readonly [number, number] {
  let [a, b] = [first, second];
  const words = bytes.length & ~3;
  for (let at = 0; at < words; at += 4) {
    const word = bytes.readInt32LE(at);
    a = Math.imul(a ^ word, 0x01000193);
    b = Math.imul((b << 5) ^ (b >>> 27) ^ word, 0x9e3779b1);
  }
  for (let at = words; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul((b << 5) ^ (b >>> 27) ^ byte, 0x9e3779b1);
  }
  return [a, b];
}
