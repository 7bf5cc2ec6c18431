// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import type { SandboxAddress } from "./caller.ts";

const createdSchema = v.object({ sandboxID: v.string(), envdAccessToken: v.string() });
const inspectedSchema = v.object({
  state: v.string(),
  space: v.object({ generation: v.string(), workerID: v.string() }),
});
const lifeSeconds = 3600;

export interface Placed {
  readonly state: string;
  readonly generation: number;
  readonly workerId: string;
}

/** The owner's side of a drill: the API that creates, pauses and resumes. Anything unexpected is an {@link UnsoundRun}. */
export class Owner {
  readonly #system: EmbeddedSystem;

  constructor(system: EmbeddedSystem) {
    this.#system = system;
  }

  async create(): Promise<SandboxAddress> {
    const answer = await this.#ask("POST", "/sandboxes", 201, { templateID: "base", timeout: lifeSeconds });
    const { sandboxID: sandboxId, envdAccessToken: accessToken } = v.parse(createdSchema, answer);
    return { sandboxId, accessToken };
  }

  async inspect({ sandboxId }: SandboxAddress): Promise<Placed> {
    const { state, space } = v.parse(inspectedSchema, await this.#ask("GET", `/sandboxes/${sandboxId}`, 200));
    return { state, generation: Number(space.generation), workerId: space.workerID };
  }

  async pause({ sandboxId }: SandboxAddress): Promise<void> {
    await this.#ask("POST", `/sandboxes/${sandboxId}/pause`, 204, {});
  }

  /** Resumes it; on this worker, when one is named. */
  async resume({ sandboxId }: SandboxAddress, workerId?: string): Promise<void> {
    const body = { timeout: lifeSeconds, ...(workerId === undefined ? {} : { workerID: workerId }) };
    await this.#ask("POST", `/v2/sandboxes/${sandboxId}/connect`, 201, body);
  }

  async kill({ sandboxId }: SandboxAddress): Promise<void> {
    await this.#ask("DELETE", `/sandboxes/${sandboxId}`, 204);
  }

  async #ask(method: string, path: string, wanted: number, body?: object): Promise<unknown> {
    const answer = await fetch(`${this.#system.apiUrl}${path}`, {
      method,
      headers: { "x-api-key": this.#system.apiKey.reveal(), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.status !== wanted) throw new UnsoundRun(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }
}
