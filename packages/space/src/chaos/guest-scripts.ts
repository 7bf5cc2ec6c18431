// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { filesKept, lineOf, type Seen, type SeenFile, sizeOf, type Writing } from "./ledger.ts";

const folder = "/home/user/chaos";
const written = "written";

/** Where file `n` is. */
export function pathOf(n: number): string {
  return `${folder}/${n}`;
}

/** Writes one file, flushed, removes what is older than the newest so many, and says so when all of it is done. */
export function writeScript(writing: Writing): string {
  const { n } = writing;
  return [
    `mkdir -p ${folder} && cd ${folder} || exit 3`,
    `yes '${lineOf(writing)}' | head -c ${sizeOf(n)} >.new-${n} && sync .new-${n} && mv .new-${n} ${n} || exit 4`,
    `ls | sort -n | head -n -${filesKept} | xargs -r rm -f || exit 5`,
    `printf %s ${n} >.head-${n} && sync .head-${n} && mv .head-${n} .head && sync . || exit 6`,
    `printf ${written}`,
  ].join("\n");
}

export function saysWritten(text: string): boolean {
  return text === written;
}

/** Shows all files. The last line says that it is whole. */
export const readScript = [
  `mkdir -p ${folder} && cd ${folder} || exit 3`,
  `printf 'head %s\\n' "$(cat .head 2>/dev/null)"`,
  "for n in $(ls); do",
  '  printf \'file %s %s %s %s\\n\' "$n" "$(wc -c <"$n")" "$(sha256sum <"$n" | cut -c1-64)" "$(head -n 1 "$n" | tr -d "\\0")" || exit 4',
  "done",
  "echo end",
].join("\n");

/** What {@link readScript} said; undefined when that is not its whole answer. */
export function parseSeen(text: string): Seen | undefined {
  const lines = text.split("\n");
  const [, head] = /^head (\d*)$/.exec(lines[0] ?? "") ?? [];
  if (head === undefined || lines.at(-2) !== "end" || lines.at(-1) !== "") return undefined;
  const files: SeenFile[] = [];
  for (const line of lines.slice(1, -2)) {
    const match = /^file (\d+) (\d+) ([0-9a-f]{64}) (.*)$/.exec(line);
    if (match === null) return undefined;
    const [, n, bytes, sha256 = "", firstLine = ""] = match;
    files.push({ n: Number(n), bytes: Number(bytes), sha256, firstLine });
  }
  return { files, head: Number(head) };
}

/** Counts for ever, and says whose count it is: the number is in its memory and nowhere else. */
export function countScript(sandboxId: string, stream: number): string {
  return `i=0; while :; do i=$((i+1)); echo "${countLine(sandboxId, stream)} $i"; sleep 0.1; done`;
}

export function countLine(sandboxId: string, stream: number): string {
  return `count ${sandboxId} ${stream}`;
}
