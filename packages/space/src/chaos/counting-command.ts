// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import type { SandboxAddress } from "../drill/caller.ts";
import { countOne } from "../drill/named-sandboxes.ts";
import { enveloped, readMessages } from "../sandbox/message-stream.ts";
import { Counting } from "./counting.ts";
import { problemOf } from "./door.ts";
import { countLine, countScript } from "./guest-scripts.ts";
import type { Violation } from "./ledger.ts";
import type { Stage } from "./stage.ts";
import type { Told } from "./told.ts";

const base64 = v.pipe(
  v.string(),
  v.transform((text) => Buffer.from(text, "base64").toString("utf8")),
);
const eventSchema = v.object({
  event: v.object({
    data: v.optional(v.object({ stdout: v.optional(base64, "") })),
    end: v.optional(v.looseObject({ status: v.optional(v.string(), "") })),
  }),
});
const errorSchema = v.object({ code: v.string() });
const headLimitMs = 120_000;

/** A program that counts in a sandbox, and its one stream, followed to its end. */
export class CountingCommand {
  readonly #address: SandboxAddress;
  readonly #number: number;
  readonly #stage: Stage;
  readonly #counting: Counting;
  readonly #cancel = new AbortController();
  #isOver = false;

  constructor(address: SandboxAddress, number: number, stage: Stage) {
    this.#address = address;
    this.#number = number;
    this.#stage = stage;
    this.#counting = new Counting(countLine(address.sandboxId, number));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get numbers(): number {
    return this.#counting.numbers;
  }

  get violation(): Violation<string> | undefined {
    return this.#counting.violation;
  }

  /** Starts the program; resolves once its stream has begun, or is refused. */
  async begin(): Promise<Told> {
    const { installation } = this.#stage;
    const before = installation.outages;
    const { sandboxId, accessToken } = this.#address;
    const script = countScript(sandboxId, this.#number);
    const late = setTimeout(() => this.#cancel.abort(), headLimitMs);
    try {
      const answer = await fetch(`${installation.apiUrl}/process.Process/Start`, {
        method: "POST",
        headers: {
          "content-type": "application/connect+json",
          "connect-protocol-version": "1",
          "x-access-token": accessToken,
          "e2b-sandbox-id": sandboxId,
          "e2b-sandbox-port": "49983",
          "keepalive-ping-interval": "10",
        },
        body: enveloped({ process: { cmd: "/bin/sh", args: ["-c", script], envs: {} }, stdin: false }),
        signal: this.#cancel.signal,
      });
      if (answer.ok && answer.body !== null) {
        void this.#follow(answer.body, before);
        return { kind: "served", text: "", memoryMoved: false };
      }
      const text = await answer.text();
      this.#isOver = true;
      if (answer.status === 502 || answer.status === 503)
        return { kind: "again", what: `${answer.status}`, nothingHappened: false };
      if (answer.status === 410) return { kind: "lost", canReturn: true };
      if (answer.status === 404) return { kind: "missing" };
      return { kind: "error", what: `${answer.status} ${text.slice(0, 120)}` };
    } catch (error) {
      this.#isOver = true;
      return this.#broken(before, problemOf(error));
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    this.#cancel.abort();
  }

  async #follow(body: AsyncIterable<Uint8Array>, before: { downs: number; isUp: boolean }): Promise<void> {
    let how = "broke off";
    try {
      for await (const item of readMessages(body)) {
        if (item.kind === "end") {
          const failure = v.safeParse(errorSchema, item.error);
          how = failure.success ? failure.output.code : "ended without an end";
          break;
        }
        const parsed = v.safeParse(eventSchema, item.message);
        if (!parsed.success) continue;
        const { data, end } = parsed.output.event;
        if (data !== undefined) this.#counting.take(data.stdout);
        if (end !== undefined) how = `its program ended: ${end.status}`;
      }
    } catch (error) {
      const told = this.#broken(before, `broke off: ${problemOf(error)}`);
      how = told.kind === "again" || told.kind === "error" ? told.what : how;
    }
    this.#isOver = true;
    countOne(this.#stage.tally.streamEnds, this.#cancel.signal.aborted ? "closed by its client" : how);
  }

  #broken({ downs, isUp }: { downs: number; isUp: boolean }, what: string): Told {
    const now = this.#stage.installation.outages;
    const isOutage = !isUp || !now.isUp || now.downs !== downs;
    return isOutage
      ? { kind: "again", what: "no control plane", nothingHappened: false }
      : { kind: "error", what };
  }
}
