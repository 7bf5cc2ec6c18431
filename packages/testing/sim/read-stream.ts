// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What a caller got of a program's output. */
export interface ReadStream {
  /** The process that spoke; undefined before its first word. */
  readonly uid: number | undefined;
  /** `whole`: to its end; `told`: it ended with a typed error; `cut`: it just stopped. */
  readonly ending: "whole" | "told" | "cut";
  /** pieces that were missing, came twice, or out of order. */
  readonly disorder: string | undefined;
}

const headerBytes = 5;

/** Reads the answer of a start, as Connect frames it; what keeps it alive meanwhile is passed over. */
export function readStream(body: string): ReadStream {
  const bytes = Buffer.from(body, "latin1");
  let uid: number | undefined;
  let pieces = 0;
  let disorder: string | undefined;
  for (let at = 0; bytes.length - at >= headerBytes; ) {
    const end = at + headerBytes + bytes.readUInt32BE(at + 1);
    const text = bytes.subarray(at + headerBytes, end).toString("utf8");
    const isLast = (bytes.readUInt8(at) & 2) !== 0;
    if (isLast) return { uid, ending: text === "{}" ? "whole" : "told", disorder };
    if (text.startsWith("#")) {
      pieces += 1;
      if (text !== `#${pieces}`) disorder ??= `piece ${text} came where #${pieces} was due`;
    } else if (!text.startsWith("{")) {
      if (uid !== undefined) disorder ??= "the beginning came twice";
      uid = Number(text.slice(0, text.indexOf("|")));
    }
    at = end;
  }
  return { uid, ending: "cut", disorder };
}
