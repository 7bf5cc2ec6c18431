// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What a step of the demo found. */
export interface StepResult {
  /** One line for a person. */
  readonly text: string;
  /** Whether things were as they should be. */
  readonly ok: boolean;
  readonly verdict?: string;
  readonly generation?: string;
  readonly worker?: string;
  /** More lines, shown indented. */
  readonly detail?: readonly string[];
}

export interface StepRecord extends StepResult {
  readonly step: number;
  readonly title: string;
  readonly milliseconds: number;
}

export interface Narrator {
  /** Runs one step, times it and tells it. A step that throws is told as failed and ends the story. */
  step(title: string, run: () => Promise<StepResult>): Promise<void>;
  readonly records: readonly StepRecord[];
}

/** The story cannot go on: a step was not as it should be. */
export class StoryEnded extends Error {
  override readonly name = "StoryEnded";
}

/** Tells the steps as they happen: to a person through `write`, with colour when asked; silent when `write` is absent. */
export function createNarrator(
  write: ((text: string) => void) | undefined,
  options: { readonly colour: boolean; readonly nowMs: () => number },
): Narrator {
  const records: StepRecord[] = [];
  const paint = (code: number, text: string): string =>
    options.colour ? `\u001b[${code}m${text}\u001b[0m` : text;
  return {
    records,
    async step(title, run) {
      const startedMs = options.nowMs();
      const result = await run().catch(
        (error: unknown): StepResult => ({
          ok: false,
          text: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
        }),
      );
      const milliseconds = Math.round((options.nowMs() - startedMs) * 10) / 10;
      const record: StepRecord = { step: records.length + 1, title, ...result, milliseconds };
      records.push(record);
      write?.(tell(record, paint));
      if (!record.ok) throw new StoryEnded(title);
    },
  };
}

function tell(record: StepRecord, paint: (code: number, text: string) => string): string {
  const mark = record.ok ? paint(32, "ok") : paint(31, "NOT AS IT SHOULD BE");
  const number = String(record.step).padStart(2);
  const facts = [
    record.verdict === undefined ? "" : paint(record.verdict === "match" ? 32 : 33, record.verdict),
    record.generation === undefined ? "" : `generation ${record.generation}`,
    record.worker ?? "",
    `${record.milliseconds} ms`,
  ].filter((fact) => fact !== "");
  const lines = [
    `${number}  ${paint(1, record.title)}  ${mark}`,
    `    ${record.text}`,
    `    ${paint(2, facts.join(" · "))}`,
  ];
  for (const detail of record.detail ?? []) lines.push(`      ${detail}`);
  return `${lines.join("\n")}\n\n`;
}
