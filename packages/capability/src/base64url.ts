// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * The bytes of a base64url text without padding, or undefined when the text is not the one canonical encoding of them
 * (another alphabet, padding, white space, bits left over in the last character).
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
