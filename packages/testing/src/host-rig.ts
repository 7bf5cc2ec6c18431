// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { duplexPair } from "node:stream";
import {
  type AdoptRequest,
  type BridgeEvent,
  type HostControl,
  newActivationId,
  parseSandboxId,
  Secret,
  type SeenReport,
} from "@space/model";
import { createSpacedHost, type DaemonEvidence, type SpacedHost } from "@space/spaced-host";
import {
  FrameLink,
  type HostOperationHead,
  headerValue,
  hostControlOver,
  type LinkStream,
  parseAnswerHead,
  type StreamHandlers,
} from "@space/wire";
import { FakeGuest } from "./fake-guest.ts";
import { SeededRandom } from "./seeded-random.ts";
import { settle, VirtualClock } from "./virtual-clock.ts";

export interface RigRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  readonly target?: HostOperationHead["target"];
  readonly activation?: HostOperationHead["activation"];
}

/** An answer as far as it has come. */
export class RigAnswer {
  status = 0;
  headers: readonly string[] = [];
  portClosed = false;
  streamLost = false;
  chunks: Buffer[] = [];
  ended = false;
  reset: string | undefined;
  /** False: received bytes are kept from the sender's window, as a client that does not read. */
  reading = true;
  readonly stream: LinkStream;
  #unread = 0;

  constructor(open: (answer: RigAnswer) => LinkStream) {
    this.stream = open(this);
  }

  get body(): Buffer {
    return Buffer.concat(this.chunks);
  }

  get text(): string {
    return this.body.toString();
  }

  json(): unknown {
    return JSON.parse(this.text);
  }

  header(name: string): string | undefined {
    return headerValue(this.headers, name);
  }

  #finish: () => void = () => undefined;
  /** Resolves when the answer is complete or reset. */
  readonly done: Promise<void> = new Promise((resolve) => {
    this.#finish = resolve;
  });

  readonly handlers: StreamHandlers = {
    onHead: (bytes) => {
      const { status, headers, portClosed, streamLost } = parseAnswerHead(JSON.parse(bytes.toString()));
      this.status = status;
      this.headers = headers;
      this.portClosed = portClosed === true;
      this.streamLost = streamLost === true;
    },
    onData: (chunk) => {
      this.chunks.push(chunk);
      if (this.reading) this.stream.consumed(chunk.length);
      else this.#unread += chunk.length;
    },
    onEnd: () => {
      this.ended = true;
      this.#finish();
    },
    onReset: (reason) => {
      this.reset = reason;
      this.#finish();
    },
  };

  /** Reads what was kept, and goes on reading. */
  read(): void {
    this.reading = true;
    const bytes = this.#unread;
    this.#unread = 0;
    if (bytes > 0) this.stream.consumed(bytes);
  }

  /** The messages of a Connect stream, the end of the stream last as `{end: …}`. */
  messages(): unknown[] {
    const found: unknown[] = [];
    const bytes = this.body;
    for (let at = 0; at + 5 <= bytes.length; ) {
      const length = bytes.readUInt32BE(at + 1);
      if (at + 5 + length > bytes.length) break;
      const message: unknown = JSON.parse(bytes.toString("utf8", at + 5, at + 5 + length));
      found.push((bytes[at] ?? 0) === 2 ? { end: message } : message);
      at += 5 + length;
    }
    return found;
  }
}

export const daemon: DaemonEvidence = { pid: 77, uid: 0, startTime: "1" };

/** A bridge with one fake guest, and the worker's end of its link. Nothing in it needs a kernel, a clock or a network. */
export class HostRig {
  readonly clock = new VirtualClock();
  readonly random = new SeededRandom("host");
  readonly secret = new Secret<Uint8Array>(this.random.bytes(32));
  readonly activationId = newActivationId(this.random);
  readonly sandboxId = parseSandboxId(`i${"s".repeat(20)}`);
  readonly guest: FakeGuest = new FakeGuest({
    activationId: this.activationId,
    secret: this.secret.reveal(),
  });
  /** Other guests of the same bridge, by the paths of their sockets. */
  readonly neighbours = new Map<string, FakeGuest>();
  readonly host: SpacedHost;
  orphaned = 0;
  #seen: SeenReport | null = null;
  link: FrameLink;
  control: HostControl;

  constructor() {
    this.host = createSpacedHost(
      { daemon: { uid: 0 } },
      {
        clock: this.clock,
        random: this.random,
        connectGuest: (path) => (this.neighbours.get(path) ?? this.guest).connect(),
        onOrphaned: () => {
          this.orphaned += 1;
        },
      },
    );
    this.link = this.dial();
    this.control = hostControlOver(this.link, this.clock);
  }

  /** A rig whose guest is adopted. */
  static async adopted(): Promise<HostRig> {
    const rig = new HostRig();
    await rig.control.adopt(rig.adoption());
    return rig;
  }

  /** What the bridge has told for the audit log, up to now; it is acknowledged. */
  async told(): Promise<readonly BridgeEvent[]> {
    const told: BridgeEvent[] = [];
    for (;;) {
      const asked = this.control.takeReport(this.#seen);
      await this.clock.advance(5_000);
      const report = await Promise.race([asked, settle().then(() => undefined)]);
      if (report === undefined) return told;
      this.#seen = report;
      told.push(...report.events);
    }
  }

  /** A new daemon connects. */
  dial(peer: DaemonEvidence | undefined = daemon): FrameLink {
    const [near, far] = duplexPair();
    this.host.serve(far, peer);
    this.link = new FrameLink(near, { dialled: true });
    this.control = hostControlOver(this.link, this.clock);
    return this.link;
  }

  adoption(changes: Partial<AdoptRequest> = {}): AdoptRequest {
    return {
      activationId: this.activationId,
      sandboxId: this.sandboxId,
      template: "base",
      socketPath: "/run/guest.sock",
      activationSecret: this.secret,
      guest: { pid: this.guest.peer.pid, startTime: this.guest.peer.startTime },
      isFirst: true,
      variables: { E2B_TEAM_ID: "team", GREETING: "hello" },
      ...changes,
    };
  }

  /** Opens an operation; the body is ended when one is given (also an empty one), otherwise `stream` goes on. */
  open(method: string, path: string, request: RigRequest = {}): RigAnswer {
    const head: HostOperationHead = {
      activation: request.activation ?? this.activationId,
      target: request.target ?? { purpose: "control" },
      method,
      path,
      headers: Object.entries(request.headers ?? {}).flat(),
    };
    const answer = new RigAnswer((self) =>
      this.link.open(JSON.stringify(head), self.handlers, request.body === ""),
    );
    if (request.body !== undefined && request.body !== "") {
      answer.stream.send(Buffer.from(request.body));
      answer.stream.end();
    }
    return answer;
  }

  /** The whole answer to a whole request. */
  async call(method: string, path: string, request: RigRequest = {}): Promise<RigAnswer> {
    const answer = this.open(method, path, { body: "", ...request });
    await settle();
    return answer;
  }

  /** A unary call in JSON. */
  rpc(method: string, message: unknown, headers: Readonly<Record<string, string>> = {}): Promise<RigAnswer> {
    const body = JSON.stringify(message);
    return this.call("POST", `/${method}`, {
      body,
      headers: { "content-type": "application/json", ...headers },
    });
  }

  /** A streaming call in JSON, as far as it has come. */
  async stream(
    method: string,
    message: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RigAnswer> {
    const answer = this.open("POST", `/${method}`, {
      body: enveloped(JSON.stringify(message)),
      headers: { "content-type": "application/connect+json", ...headers },
    });
    await settle();
    return answer;
  }

  close(): void {
    this.host.close();
    this.link.destroy(undefined);
  }
}

/** A message of a stream in its envelope. */
export function enveloped(message: Buffer | string): Buffer {
  const bytes = Buffer.from(message);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}

/** Basic authentication as E2B's clients send it: a username and no password. */
export function actingAs(user: string): Readonly<Record<string, string>> {
  return { authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}` };
}
