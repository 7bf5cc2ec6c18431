// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { enveloped } from "./fake-named-streams.ts";
import type { GatewayRig } from "./gateway-rig.ts";

/** A caller of a streaming operation that counts every byte it gets. */
export class StreamCaller {
  bytes = Buffer.alloc(0);
  end: "open" | "ended" | "broken" = "open";
  readonly #response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.#response = response;
    response.on("data", (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
    });
    response.on("end", () => {
      if (response.complete) this.end = "ended";
    });
    response.on("error", () => {
      this.end = "broken";
    });
  }

  static async open(
    rig: GatewayRig,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<StreamCaller> {
    const sent = request({
      host: "127.0.0.1",
      port: rig.port,
      path,
      method: "POST",
      headers: { ...rig.routing(), "content-type": "application/connect+json", ...headers },
      agent: false,
    });
    sent.end(enveloped("{}"));
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (response === undefined) throw new TypeError("no answer");
    return new StreamCaller(response);
  }

  /** Reads nothing until `readOn`. */
  stopReading(): void {
    this.#response.pause();
  }

  readOn(): void {
    this.#response.resume();
  }

  leave(): void {
    this.#response.destroy();
  }
}
