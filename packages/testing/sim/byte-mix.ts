// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

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
