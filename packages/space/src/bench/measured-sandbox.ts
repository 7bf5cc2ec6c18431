// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import type { CreatedSandbox, SandboxClient } from "./sandbox-client.ts";
import { UnsoundRun } from "./unsound.ts";

const lifeSeconds = 3600;
const placedSchema = v.object({
  space: v.object({
    workerID: v.string(),
    snapshot: v.nullable(v.object({ sizeBytes: v.number(), memory: v.string() })),
  }),
});
const forkedSchema = v.tuple([v.object({ sandbox: v.object({ sandboxID: v.string() }) })]);

export interface SandboxPlace {
  readonly workerId: string;
  /** Of the newest snapshot, files and memory together; undefined while there is none. */
  readonly snapshotBytes: number | undefined;
}

/** Holds random data and says its digest when it is asked, by a signal, with the count of its life. */
const holder = (megabytes: number): string => `
import hashlib, os, signal, time
held = os.urandom(${megabytes} << 20)
def tell(*_):
    with open("/tmp/said.new", "w") as said: said.write(hashlib.sha256(held).hexdigest())
    os.rename("/tmp/said.new", "/tmp/said")
signal.signal(signal.SIGUSR1, tell)
with open("/tmp/holder.new", "w") as me: me.write(str(os.getpid()))
os.rename("/tmp/holder.new", "/tmp/holder")
while True: time.sleep(3600)
`;

/** The script ends when the process is there; without one, nothing is printed. */
const hold = (megabytes: number): string =>
  `rm -f /tmp/holder; setsid python3 -c '${holder(megabytes)}' </dev/null >/dev/null 2>&1 & until test -s /tmp/holder; do sleep 0.05; done`;
const ask = `rm -f /tmp/said; if kill -USR1 "$(cat /tmp/holder)" 2>/dev/null; then until test -s /tmp/said; do sleep 0.02; done; cat /tmp/said; fi`;

/** One sandbox through its life, with a process that holds data, or with the agent alone. */
export class MeasuredSandbox {
  readonly #client: SandboxClient;
  readonly #sandbox: CreatedSandbox;
  readonly #megabytes: number;
  #digest = "";

  static async create(client: SandboxClient, megabytes: number): Promise<MeasuredSandbox> {
    const measured = new MeasuredSandbox(client, await client.create(), megabytes);
    await measured.load();
    return measured;
  }

  private constructor(client: SandboxClient, sandbox: CreatedSandbox, megabytes: number) {
    this.#client = client;
    this.#sandbox = sandbox;
    this.#megabytes = megabytes;
  }

  /** Begins to hold the data. */
  async load(): Promise<void> {
    if (this.#megabytes === 0) return this.#client.runTrue(this.#sandbox);
    await this.#client.shell(this.#sandbox, hold(this.#megabytes));
    this.#digest = await this.#client.shell(this.#sandbox, ask);
    if (this.#digest.length !== 64) throw new UnsoundRun("the data was not held");
  }

  /** Throws {@link UnsoundRun} unless it runs and its memory is what it was; where memory is not `kept`, holds it anew. */
  async check(kept: boolean): Promise<void> {
    if (this.#megabytes === 0) return this.#client.runTrue(this.#sandbox);
    const digest = await this.#client.shell(this.#sandbox, ask);
    if (kept ? digest !== this.#digest : digest !== "")
      throw new UnsoundRun(`memory was to be ${kept ? "kept" : "gone"}, and the digest is "${digest}"`);
    if (!kept) await this.load();
  }

  async place(): Promise<SandboxPlace> {
    const answer = await this.#client.ask("GET", `/sandboxes/${this.#sandbox.sandboxId}`, 200);
    const { workerID, snapshot } = v.parse(placedSchema, answer).space;
    return { workerId: workerID, snapshotBytes: snapshot?.sizeBytes };
  }

  async pause(): Promise<void> {
    await this.#client.ask("POST", `/sandboxes/${this.#sandbox.sandboxId}/pause`, 204, {});
  }

  async resume(workerID: string): Promise<void> {
    const path = `/v2/sandboxes/${this.#sandbox.sandboxId}/connect`;
    await this.#client.ask("POST", path, 201, { timeout: lifeSeconds, workerID });
  }

  async move(workerID: string): Promise<void> {
    await this.#client.ask("POST", `/sandboxes/${this.#sandbox.sandboxId}/move`, 204, { workerID });
  }

  /** Resolves with what ends the child. */
  async fork(): Promise<() => Promise<void>> {
    const path = `/sandboxes/${this.#sandbox.sandboxId}/fork`;
    const answer = await this.#client.ask("POST", path, 201, { count: 1, timeout: lifeSeconds });
    const [child] = v.parse(forkedSchema, answer);
    return () => this.#client.kill({ sandboxId: child.sandbox.sandboxID });
  }

  kill(): Promise<void> {
    return this.#client.kill(this.#sandbox);
  }
}
