// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { Duplex } from "node:stream";
import {
  type ApiHandler,
  createGateway,
  createWorkerLinks,
  defaultWorkerLinkLimits,
  type Gateway,
  type GatewayLimits,
  type HeldKeys,
  plainServerOptions,
  secureServerOptions,
} from "@space/gateway";
import type { AuditEventName, AuditFields, AuditSink, WorkerEndpoint } from "@space/model";
import { createAuthority, edgeOptions, issueServer } from "@space/mtls";
import { FakeRouteSource, fakeSandboxId } from "./fake-route-source.ts";
import { FakeWorker } from "./fake-worker-link.ts";
import { VirtualClock } from "./virtual-clock.ts";

const settleTurns = 50;

export interface RigOptions {
  readonly limits?: Partial<GatewayLimits>;
  /** Serve HTTP/2 and HTTP/1 over TLS instead of plain HTTP/1. */
  readonly secure?: boolean;
  readonly api?: ApiHandler;
  /** Time that it shares with another rig. */
  readonly clock?: VirtualClock;
  /** How far ahead the gateway's own wall clock is. */
  readonly skewMs?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Bundles are texts `version: kid kid …` here; before the first, every key counts. */
export class FakeKeys implements HeldKeys {
  version = 0;
  #kids: readonly string[] | undefined;

  replace(bundle: string): boolean {
    const [version = "", kids = ""] = bundle.split(": ");
    if (Number(version) <= this.version) return false;
    this.version = Number(version);
    this.#kids = kids.split(" ");
    return true;
  }

  holds(kid: string): boolean {
    return this.#kids?.includes(kid) ?? true;
  }
}

/** A gateway on a real loopback port between a fake control plane and a fake worker. */
export class GatewayRig implements AsyncDisposable {
  readonly clock: VirtualClock;
  readonly routes: FakeRouteSource;
  readonly worker = new FakeWorker();
  readonly keys = new FakeKeys();
  readonly audited: { readonly name: AuditEventName; readonly fields: unknown }[] = [];
  readonly dialled: WorkerEndpoint[] = [];
  /** What happens to a dial; by default the fake worker answers. */
  dial: (endpoint: WorkerEndpoint) => Promise<Duplex> = () => this.worker.dial();
  readonly gateway: Gateway;
  readonly authorityCertificate: string;
  readonly #server: Server | Http2SecureServer;
  readonly #sockets = new Set<Duplex>();

  private constructor(options: RigOptions) {
    this.clock = options.clock ?? new VirtualClock();
    this.routes = new FakeRouteSource(this.clock);
    const clock = this.clock.aheadBy(options.skewMs ?? 0);
    const audit: AuditSink = {
      record: <N extends AuditEventName>(name: N, fields: AuditFields[N]) =>
        void this.audited.push({ name, fields }),
    };
    const links = createWorkerLinks(defaultWorkerLinkLimits, {
      dial: (endpoint) => {
        this.dialled.push(endpoint);
        return this.dial(endpoint);
      },
      clock,
    });
    this.gateway = createGateway(
      { presenter: "thumbprint", limits: options.limits ?? {} },
      {
        routes: this.routes,
        links,
        api: options.api ?? ((_request, response) => void response.end("api")),
        clock,
        random: { bytes: (length) => randomBytes(length) },
        audit,
        keys: this.keys,
      },
    );
    const nowMs = Date.now();
    const authority = createAuthority({ commonName: "test", nowMs });
    const names = ["*.sbx.test", "127.0.0.1"];
    const edge = edgeOptions(issueServer(authority, { commonName: "sbx.test", names, nowMs }));
    this.authorityCertificate = authority.certificate;
    this.#server =
      options.secure === true
        ? createSecureServer({ ...edge, ...secureServerOptions(this.gateway.limits) })
        : createServer(plainServerOptions(this.gateway.limits));
    this.#server.on(options.secure === true ? "secureConnection" : "connection", (socket: Duplex) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    this.gateway.attach(this.#server);
  }

  static async start(options: RigOptions = {}): Promise<GatewayRig> {
    const rig = new GatewayRig(options);
    rig.#server.listen(0, "127.0.0.1");
    await once(rig.#server, "listening");
    return rig;
  }

  get port(): number {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new TypeError("the server does not listen");
    return address.port;
  }

  /** Client connections open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.gateway.close();
    this.worker.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Lets everything under way between caller, gateway and worker arrive: many turns there and back, no length of time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < settleTurns; turn += 1) {
      const live = this.worker.links.filter(({ closed }) => !closed);
      await Promise.all(live.map((link) => link.ping().catch(() => undefined))); // one that ends has arrived too
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Headers by which a request on the plain port reaches the agent of the sandbox. */
  routing(port = 49_983): Record<string, string> {
    return { "e2b-sandbox-id": fakeSandboxId, "e2b-sandbox-port": String(port), "x-access-token": "token" };
  }

  /** One whole request over plain HTTP/1. */
  async fetch(
    path: string,
    options: {
      readonly method?: string;
      readonly headers?: Record<string, string>;
      readonly body?: string | Buffer;
    } = {},
  ): Promise<Answer> {
    const { method = "GET", headers = this.routing(), body } = options;
    const sent = request({ host: "127.0.0.1", port: this.port, method, path, headers, agent: false });
    sent.end(body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (response === undefined) throw new TypeError("no response");
    return { status: response.statusCode ?? 0, headers: response.headers, body: await textOf(response) };
  }
}

export async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
