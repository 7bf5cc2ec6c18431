// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of one plain Node proxy hop, with or without the real check in front of it.

import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { newWorkerId } from "@space/model";
import { SqliteWorkerStore } from "@space/store-sqlite";
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
  const agent = new Agent({ keepAlive: true, maxSockets: 128 });
  const server = createServer((incoming, response) => {
    if (admits !== undefined && !admits(capabilityOf(incoming))) {
      response.writeHead(403, { "content-length": 0 });
      response.end();
    } else pass(incoming, response, { socketPath, agent });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return portOf(server);
}

function capabilityOf({ headers }: IncomingMessage): string {
  const text = headers["x-capability"];
  return typeof text === "string" ? text : "";
}

function pass(
  incoming: IncomingMessage,
  response: ServerResponse,
  to: { readonly socketPath: string; readonly agent: Agent },
): void {
  const { method, url: path } = incoming;
  const outgoing = request({ ...to, method, path, headers: { host: "agent" } }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(response);
  });
  outgoing.on("error", () => void response.destroy());
  outgoing.end();
}
