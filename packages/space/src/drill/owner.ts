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
const healthSchema = v.object({
  state: v.string(),
  space: v.object({ recoveredFrom: v.nullable(v.string()) }),
});
const lifeSeconds = 3600;

export interface Placed {
  readonly state: string;
  readonly generation: number;
  readonly workerId: string;
}

/** The owner's side of a drill: the API that creates, pauses and resumes. Anything unexpected is an {@link UnsoundRun}. */
export class Owner {
  readonly #system: Pick<EmbeddedSystem, "apiUrl" | "apiKey">;

  constructor(system: Pick<EmbeddedSystem, "apiUrl" | "apiKey">) {
    this.#system = system;
  }

  async create(metadata: Readonly<Record<string, string>> = {}): Promise<SandboxAddress> {
    const body = { templateID: "base", timeout: lifeSeconds, metadata };
    const answer = await this.#ask("POST", "/sandboxes", 201, body);
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

  /** Whether the sandbox is lost, or runs again from an older snapshot. */
  async health({ sandboxId }: SandboxAddress): Promise<"as-it-was" | "lost" | "recovered"> {
    const path = `/sandboxes/${sandboxId}`;
    const { status, text } = await this.#send("GET", path);
    if (status === 410) return "lost";
    if (status !== 200) throw new UnsoundRun(`GET ${path}: ${status} ${text}`);
    const { state, space } = v.parse(healthSchema, JSON.parse(text));
    if (space.recoveredFrom === null) return "as-it-was";
    return state === "running" ? "recovered" : "lost";
  }

  async #ask(method: string, path: string, wanted: number, body?: object): Promise<unknown> {
    const { status, text } = await this.#send(method, path, body);
    if (status !== wanted) throw new UnsoundRun(`${method} ${path}: ${status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  async #send(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${this.#system.apiUrl}${path}`, {
      method,
      headers: { "x-api-key": this.#system.apiKey.reveal(), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  }
}
