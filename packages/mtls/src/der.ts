// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * Writes DER, the encoding of X.509: just the types that a certificate needs. Nothing here reads DER; whatever comes
 * from outside is parsed by Node's own OpenSSL.
 */
export type Der = Buffer;

/** One value: tag, definite length, contents. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Der {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), encodeLength(body.length), body]);
}

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...contents: readonly Uint8Array[]): Der => element(0x30, ...contents);
export const set = (...contents: readonly Uint8Array[]): Der => element(0x31, ...contents);
export const octets = (contents: Uint8Array): Der => element(0x04, contents);
export const utf8 = (text: string): Der => element(0x0c, Buffer.from(text, "utf8"));
export const yes: Der = element(0x01, Buffer.from([0xff]));

/** `[n] EXPLICIT`. */
export const explicit = (n: number, contents: Uint8Array): Der => element(0xa0 | n, contents);
/** `[n] IMPLICIT` of a primitive type. */
export const implicit = (n: number, contents: Uint8Array): Der => element(0x80 | n, contents);

/** A non-negative INTEGER from its big-endian bytes, in the shortest form. */
export function integer(bytes: Uint8Array): Der {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1;
  const digits = bytes.subarray(start);
  const sign = (digits[0] ?? 0) >= 0x80 ? Buffer.from([0]) : Buffer.alloc(0);
  return element(0x02, sign, digits);
}

/** A BIT STRING of whole bytes, or with `unused` bits at the end of the last one. */
export const bits = (contents: Uint8Array, unused = 0): Der => element(0x03, Buffer.from([unused]), contents);

/** An OBJECT IDENTIFIER from its dotted form. */
export function identifier(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const septets = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128))
      septets.unshift((left % 128) | 0x80);
    bytes.push(...septets);
  }
  return element(0x06, Buffer.from(bytes));
}

/** A time with whole seconds: UTCTime to 2049, GeneralizedTime from 2050, as RFC 5280 4.1.2.5 demands. */
export function time(atMs: number): Der {
  const digits = new Date(atMs).toISOString().replace(/\..*$/, "").replace(/[-T:]/g, "");
  return Number(digits.slice(0, 4)) < 2050
    ? element(0x17, Buffer.from(`${digits.slice(2)}Z`, "ascii"))
    : element(0x18, Buffer.from(`${digits}Z`, "ascii"));
}
