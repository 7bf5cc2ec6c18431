// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of one plain Node proxy hop, with or without the real check in front of it. Its client is undici's
// dispatch, the leanest that Node has; SPACE's own hops are frames, and leaner still.

import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { newWorkerId } from "@space/model";
import { SqliteWorkerStore } from "@space/store-sqlite";
import { type Dispatcher, Pool } from "undici";
import * as v from "valibot";
import { portOf } from "../host/mesh-sockets.ts";
import { systemRandom } from "../host/system-random.ts";
import { serveBenchmark } from "./bench-child.ts";
import { CapabilityCheck, checkFactsSchema, recordOf } from "./capability-check.ts";

const configSchema = v.strictObject({
  /** Sockets of the agents; one port is opened before each. */
  agents: v.array(v.string()),
  /** Null: nothing is checked, and no capability is asked for. */
  check: v.nullable(v.strictObject({ facts: checkFactsSchema, store: v.string() })),
});

/** As many as the most connections that are measured, and as nginx may keep. */
const agentConnections = 128;
/** A body below this leaves as text, in one piece with the head. */
const joinedLimitBytes = 4096;

/** Whether a request may pass, by its capability. */
type Admits = (capability: string) => boolean;

serveBenchmark(async (given) => {
  const { agents, check } = v.parse(configSchema, given);
  const admits = check === null ? undefined : openCheck(check);
  const ports: number[] = [];
  for (const agent of agents) ports.push(await open(agent, admits));
  return {
    ready: ports,
    // Remembers tokens before they are measured. Answers how many of them pass.
    answer: (tokens) =>
      Promise.resolve(v.parse(v.array(v.string()), tokens).filter((token) => admits?.(token)).length),
  };
});

/** The check against a record in a durable store, as a worker's is. */
function openCheck({ facts, store }: NonNullable<v.InferOutput<typeof configSchema>["check"]>): Admits {
  const records = new SqliteWorkerStore(store, () => newWorkerId(systemRandom));
  records.replace(undefined, recordOf(facts));
  const check = new CapabilityCheck(facts, (sandboxId) => records.read(sandboxId));
  return (token) => check.admits(token);
}

async function open(socketPath: string, admits: Admits | undefined): Promise<number> {
  const agents = new Pool("http://agent", { socketPath, connections: agentConnections });
  const server = createServer((incoming, response) => {
    if (admits !== undefined && !admits(capabilityOf(incoming))) {
      response.writeHead(403, { "content-length": 0 });
      response.end();
    } else pass(incoming, response, agents);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return portOf(server);
}

function capabilityOf({ headers }: IncomingMessage): string {
  const text = headers["x-capability"];
  return typeof text === "string" ? text : "";
}

function pass({ url = "/" }: IncomingMessage, response: ServerResponse, agents: Pool): void {
  agents.dispatch({ method: "GET", path: url }, new Passing(response));
}

/** One answer on its way to the caller, at his pace. A short one leaves in one write, as the gateway's do. */
class Passing implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  #kept: Buffer | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {
    // Nothing is known yet.
  }

  onResponseStart(_agent: unknown, status: number, headers: OutgoingHttpHeaders): void {
    this.#response.writeHead(status, headers);
  }

  onResponseData(agent: Dispatcher.DispatchController, chunk: Buffer): void {
    const kept = this.#kept;
    this.#kept = chunk;
    if (kept === undefined || this.#response.write(kept)) return;
    agent.pause();
    this.#response.once("drain", () => agent.resume());
  }

  onResponseEnd(): void {
    const kept = this.#kept;
    if (kept !== undefined && kept.length <= joinedLimitBytes) {
      this.#response.end(kept.toString("latin1"), "latin1");
    } else this.#response.end(kept);
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}
