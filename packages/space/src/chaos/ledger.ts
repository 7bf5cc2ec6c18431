// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";

/** Files that a sandbox keeps: each write removes what is older than the newest so many. */
export const filesKept = 16;

/** One file that was to be written. What it holds follows from these and nothing else. */
export interface Writing {
  readonly run: string;
  /** The sandbox that wrote it: a fork has its source's files too. */
  readonly owner: string;
  readonly n: number;
  /** The generation that its owner was last known to have. */
  readonly generation: number;
}

/** A file as a sandbox shows it. */
export interface SeenFile {
  readonly n: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly firstLine: string;
}

/** All of a sandbox's files at one time; `head` names the one that was written last. */
export interface Seen {
  readonly files: readonly SeenFile[];
  readonly head: number;
}

export type ViolationKind =
  /** An acknowledged write is not there. */
  | "lost file"
  /** What another sandbox wrote, or nobody. */
  | "wrong delivery"
  /** Neither what was written nor what another wrote. */
  | "torn file"
  /** Files of more than one state at once: removed ones are back, or ones that were given up with their generation. */
  | "mixed state";

export interface Violation<Kind extends string = ViolationKind> {
  readonly kind: Kind;
  readonly what: string;
}

interface Entry extends Writing {
  /** Unknown: nobody told whether it was done. Gone: it was lost with a worker, as declared. */
  state: "acknowledged" | "unknown" | "gone";
  /** Whether the client was told how it ended. */
  told: boolean;
}

/** What each line of a file says. */
export function lineOf({ run, owner, n, generation }: Writing): string {
  return `space-chaos ${run} ${owner} ${generation} ${n}`;
}

/** From a hundred bytes to some of the chunks that snapshots are made of. */
export function sizeOf(n: number): number {
  if (n % 7 === 0) return 300_000 + n;
  return n % 3 === 0 ? 9000 + n : 100 + n;
}

export function contentOf(writing: Writing): Buffer {
  const line = `${lineOf(writing)}\n`;
  const size = sizeOf(writing.n);
  return Buffer.from(line.repeat(Math.ceil(size / line.length)).slice(0, size));
}

/**
 * What one sandbox must hold, told by who writes there, one write after the other. Nothing of SPACE's is asked: a write
 * counts once the program that wrote and flushed it has said so to the client.
 *
 * All files together must be one state: the newest {@link filesKept} of the writes that were done. Only while a worker may be
 * given up ({@link mayLose}) may the acknowledged end be missing, as one piece, and nothing of what the newest acknowledged
 * snapshot holds.
 */
export class Ledger {
  readonly sandboxId: string;
  readonly #run: string;
  readonly #entries: Entry[];
  /** Up to this number everything acknowledged is in a snapshot. */
  #saved = 0;
  #lossFloor: number | undefined;
  #gone = 0;

  constructor(run: string, sandboxId: string, inherited: readonly Entry[] = []) {
    this.#run = run;
    this.sandboxId = sandboxId;
    this.#entries = inherited.map((entry) => ({ ...entry }));
  }

  /** The last acknowledged write that has to be there; 0: none. */
  get newest(): number {
    return this.#entries.findLast(({ state }) => state === "acknowledged")?.n ?? 0;
  }

  /** Acknowledged writes that were given up with a worker. */
  get gone(): number {
    return this.#gone;
  }

  get mayLose(): boolean {
    return this.#lossFloor !== undefined;
  }

  /** The next write: unknown until {@link acknowledge} or {@link refuse}. */
  begin(generation: number): Writing {
    const n = (this.#entries.at(-1)?.n ?? 0) + 1;
    const entry: Entry = {
      run: this.#run,
      owner: this.sandboxId,
      n,
      generation,
      state: "unknown",
      told: false,
    };
    this.#entries.push(entry);
    return entry;
  }

  acknowledge({ n }: Writing): void {
    const entry = this.#entry(n);
    if (entry !== undefined) Object.assign(entry, { state: "acknowledged", told: true });
  }

  /** It was said that nothing happened: its number is used again, so that a lie shows. */
  refuse({ n }: Writing): void {
    if (this.#entries.at(-1)?.n === n) this.#entries.pop();
  }

  /** A snapshot was acknowledged that was asked for when this was the newest write. */
  saved(newestThen: number): void {
    this.#saved = Math.max(this.#saved, newestThen);
  }

  /** From now on its worker may be given up, and with it what no snapshot holds. */
  openLoss(): void {
    this.#lossFloor ??= this.#saved;
  }

  /** Whatever was to be given up is: from now on everything acknowledged has to stay. */
  closeLoss(): void {
    this.#lossFloor = undefined;
  }

  /**
   * The ledger of a sandbox that begins with what this one held at some time since `newestThen` was its newest write. It has
   * no snapshot of its own yet.
   */
  forked(sandboxId: string, newestThen: number): Ledger {
    const entries = this.#entries.map((entry) =>
      entry.n > newestThen && entry.state !== "gone"
        ? { ...entry, state: "unknown" as const, told: false }
        : entry,
    );
    const child = new Ledger(this.#run, sandboxId, entries);
    if (this.#lossFloor !== undefined) child.#lossFloor = this.#lossFloor;
    return child;
  }

  /** What file `n` has to hold; undefined when it was never begun. */
  written(n: number): Writing | undefined {
    return this.#entry(n);
  }

  /** Compares everything that a sandbox shows; what is allowed to be gone is given up for good then. */
  check(seen: Seen): readonly Violation[] {
    const violations = seen.files.flatMap((file) => this.checkFile(file));
    if (violations.length > 0) return violations;
    const present = new Set(seen.files.map(({ n }) => n));
    const missing = this.#checkMissing(present);
    return missing.length > 0 ? missing : this.#checkAge(present, seen.head);
  }

  /** Compares one file with what was written there. */
  checkFile({ n, bytes, sha256, firstLine }: SeenFile): readonly Violation[] {
    const entry = this.#entry(n);
    const shown = `file ${n} of ${this.sandboxId} says ${JSON.stringify(firstLine.slice(0, 120))}`;
    if (entry === undefined) return [{ kind: "wrong delivery", what: `${shown}, and was never written` }];
    const content = contentOf(entry);
    if (bytes === content.length && sha256 === sha256Of(content)) return [];
    const isOurs = firstLine === lineOf(entry);
    const isWhole = /^space-chaos \S+ \S+ \d+ \d+$/.test(firstLine);
    const kind = !isOurs && isWhole ? "wrong delivery" : "torn file";
    return [{ kind, what: `${shown} in ${bytes} bytes instead of ${lineOf(entry)} in ${content.length}` }];
  }

  #checkMissing(present: ReadonlySet<number>): readonly Violation[] {
    // With fewer files than are kept nothing was ever removed.
    const oldest = present.size >= filesKept ? Math.min(...present) : 0;
    const acknowledged = this.#entries.filter(({ state }) => state === "acknowledged");
    const due = acknowledged.filter(({ n }) => n > oldest);
    const missing = due.filter(({ n }) => !present.has(n));
    for (const entry of this.#entries)
      if (entry.state === "unknown" && present.has(entry.n)) entry.state = "acknowledged";
    if (missing.length === 0) return [];
    if (this.#isDeclared(missing, due)) {
      for (const entry of missing) entry.state = "gone";
      this.#gone += missing.length;
      return [];
    }
    const numbers = missing.map(({ n }) => n).join(", ");
    const has = [...present].sort((a, b) => a - b).join(" ");
    const floor =
      this.#lossFloor === undefined ? "" : `, of which up to ${this.#lossFloor} are in a snapshot`;
    return [
      {
        kind: "lost file",
        what: `${this.sandboxId} has no acknowledged ${numbers}${floor}; it has ${has || "none"}`,
      },
    ];
  }

  /** one piece, and nothing of it in the newest acknowledged snapshot. */
  #isDeclared(missing: readonly Entry[], due: readonly Entry[]): boolean {
    const floor = this.#lossFloor;
    const [first] = missing;
    if (floor === undefined || first === undefined || first.n <= floor) return false;
    const from = due.indexOf(first);
    return missing.every((entry, at) => due[from + at] === entry);
  }

  #checkAge(present: ReadonlySet<number>, head: number): readonly Violation[] {
    const mixed = (what: string): readonly Violation[] => [
      { kind: "mixed state", what: `${this.sandboxId} ${what}` },
    ];
    const back = this.#entries.filter(({ n, state }) => state === "gone" && present.has(n));
    if (back.length > 0) return mixed(`has ${back.map(({ n }) => n).join(", ")} again, which were given up`);
    const newest = Math.max(0, ...present);
    // A write whose end nobody knows may have stopped before it removed the oldest, or before it said that it is the last.
    const limit = filesKept + (this.#isUntold(newest) ? 1 : 0);
    if (present.size > limit)
      return mixed(`has ${present.size} files, the oldest ${Math.min(...present)}: removed ones are back`);
    if (head === newest || (this.#isUntold(newest) && head < newest) || this.#isUntold(head)) return [];
    return mixed(`was written last in ${head}, and its newest file is ${newest}`);
  }

  /** Whether this write's end was not told: it may be done in part. */
  #isUntold(n: number): boolean {
    return this.#entry(n)?.told === false;
  }

  #entry(n: number): Entry | undefined {
    return this.#entries.find((entry) => entry.n === n);
  }
}

function sha256Of(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
