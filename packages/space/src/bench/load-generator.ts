// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { UnsoundRun } from "./unsound.ts";
import { type LoadReport, parseWrkOutput, reportMark } from "./wrk-report.ts";

/** Where load goes: a loopback address only. */
export interface LoadTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Values of one more header; request by request the next one, from the beginning after the last. */
  readonly rotated?: { readonly header: string; readonly values: readonly string[] };
}

export interface LoadShape {
  readonly connections: number;
  readonly seconds: number;
}

const startLimitMs = 20_000;
const outputLimitChars = 64 * 1024;

/** wrk with one thread and a small script; headers go by file, since arguments are for everybody to read. */
export class LoadGenerator {
  readonly #folder: string;
  readonly #running = new Set<() => void>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** One run. Throws {@link UnsoundRun} when wrk fails; errors of the target are counted in the report. */
  async run(target: LoadTarget, { connections, seconds }: LoadShape): Promise<LoadReport> {
    const script = join(this.#folder, "load.lua");
    const values = join(this.#folder, "values");
    writeFileSync(script, luaScript(target), { mode: 0o600 });
    writeFileSync(values, (target.rotated?.values ?? [""]).join("\n"), { mode: 0o600 });
    const options = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "5s", "-s", script];
    const output = await this.#wrk([...options, target.url, "--", values], seconds);
    try {
      return parseWrkOutput(output);
    } catch (cause) {
      throw new UnsoundRun(`the load generator failed: ${output.slice(-500)}`, { cause });
    }
  }

  /** Ends a run that is under way. */
  close(): void {
    for (const end of this.#running) end();
  }

  #wrk(args: readonly string[], seconds: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn("wrk", args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
      let output = "";
      const take = (bytes: Buffer): void => {
        if (output.length < outputLimitChars) output += bytes.toString("utf8");
      };
      const end = (): void => void child.kill("SIGKILL");
      const late = setTimeout(end, startLimitMs + seconds * 1000);
      this.#running.add(end);
      child.stdout.on("data", take);
      child.stderr.on("data", take);
      child.once("error", (cause) => reject(new UnsoundRun("wrk cannot be started", { cause })));
      child.once("close", () => {
        clearTimeout(late);
        this.#running.delete(end);
        resolve(output);
      });
    });
  }
}

/** Requests are put together before the run, so that each costs the generator the same whatever its headers. */
function luaScript({ headers, rotated }: LoadTarget): string {
  const fixed = Object.entries(headers).map(([name, value]) => `  wrk.headers[${lua(name)}] = ${lua(value)}`);
  const changing = rotated === undefined ? "" : `    wrk.headers[${lua(rotated.header)}] = value`;
  return `local requests, count, at = {}, 0, 0

function init(args)
${fixed.join("\n")}
  for value in io.lines(args[1]) do
${changing}
    count = count + 1
    requests[count] = wrk.format()
  end
  if count == 0 then
    count = 1
    requests[1] = wrk.format()
  end
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '${reportMark}{"requests":%d,"bytes":%d,"microseconds":%d,"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},"latency":{"p50":%d,"p90":%d,"p99":%d,"max":%d,"mean":%.2f}}\\n',
    summary.requests, summary.bytes, summary.duration, e.connect, e.read, e.write, e.status, e.timeout,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max, latency.mean))
end
`;
}

/** A Lua string: every byte that is not plain is written by its number. */
export function lua(text: string): string {
  const escaped = Buffer.from(text)
    .toString("latin1")
    .replaceAll(/[^\x20-\x7e]|["\\]/g, (char) => `\\${char.charCodeAt(0).toString().padStart(3, "0")}`);
  return `"${escaped}"`;
}
