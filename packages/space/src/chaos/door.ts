// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { Caller, type SandboxAddress } from "../drill/caller.ts";
import { type Outcome, readOutcome, runOutcome } from "../drill/outcome.ts";
import { pathOf } from "./guest-scripts.ts";
import type { Installation } from "./installation.ts";
import type { Told } from "./told.ts";

const answerLimitMs = 180_000;

/** One client: the API with its key, and sandboxes with their tokens. */
export class Door {
  readonly #installation: Installation;
  readonly #caller: Caller;

  constructor(installation: Installation) {
    this.#installation = installation;
    this.#caller = new Caller(installation.apiUrl);
  }

  /** One request to the API. `key` makes a repetition get the first answer. */
  async api(method: "GET" | "POST" | "DELETE", path: string, body?: object, key?: string): Promise<Told> {
    const { downs, isUp } = this.#installation.outages;
    const headers = {
      "x-api-key": this.#installation.apiKey,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    };
    const signal = AbortSignal.timeout(answerLimitMs);
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    try {
      const answer = await fetch(`${this.#installation.apiUrl}${path}`, {
        method,
        headers,
        signal,
        ...content,
      });
      return toldBy(answer, await answer.text());
    } catch (error) {
      return this.#broken({ downs, isUp }, problemOf(error));
    }
  }

  /** Runs a shell's program; served: what it wrote. */
  async run(sandbox: SandboxAddress, script: string): Promise<Told> {
    const before = this.#installation.outages;
    return this.#told(runOutcome(await this.#caller.start(sandbox, "/bin/sh", ["-c", script])), before);
  }

  /** Served: the file's content, which is ASCII. */
  async file(sandbox: SandboxAddress, n: number): Promise<Told> {
    const before = this.#installation.outages;
    const path = `/files?path=${encodeURIComponent(pathOf(n))}&username=user`;
    return this.#told(readOutcome(await this.#caller.get(sandbox, path)), before);
  }

  close(): void {
    this.#caller.close();
  }

  #told(outcome: Outcome, before: Installation["outages"]): Told {
    switch (outcome.kind) {
      case "served":
        return { kind: "served", text: outcome.text, memoryMoved: false };
      case "try-again": {
        const nothingHappened = outcome.what === "503 try again" || outcome.what === "502 paused";
        return { kind: "again", what: outcome.what, nothingHappened };
      }
      case "error": {
        if (/^status 404:/.test(outcome.what)) return { kind: "missing" };
        if (/^status 410:/.test(outcome.what)) return { kind: "lost", canReturn: true };
        if (/^(status|ended|stream)/.test(outcome.what)) return { kind: "error", what: outcome.what };
        return this.#broken(before, outcome.what);
      }
    }
  }

  /** No answer came: as it has to be where the process that answers was killed or stood still meanwhile, and an error otherwise. */
  #broken({ downs, isUp }: Installation["outages"], what: string): Told {
    const now = this.#installation.outages;
    const isOutage = !isUp || !now.isUp || now.downs !== downs;
    return isOutage
      ? { kind: "again", what: "no control plane", nothingHappened: false }
      : { kind: "error", what };
  }
}

function toldBy({ status, headers }: Response, text: string): Told {
  if (status >= 200 && status <= 299)
    return { kind: "served", text, memoryMoved: headers.get("space-memory-moved") === "true" };
  if ((status === 503 || status === 429) && headers.has("retry-after"))
    return { kind: "again", what: `${status} try again`, nothingHappened: false };
  if (status === 409)
    return { kind: "again", what: "409 its state does not allow it", nothingHappened: false };
  if (status === 410) return { kind: "lost", canReturn: !/has no snapshot/.test(text) };
  if (status === 404) return { kind: "missing" };
  return { kind: "error", what: `${status} ${text.slice(0, 120)}` };
}

/** What a failed request says of itself. */
export function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : `${error.name}: ${error.message}`;
}
