// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { type SigningKey, signHandOverGrant } from "@space/capability";
import {
  type ActivateRequest,
  type ExecutionIdentity,
  type HandOverGrant,
  longestHandOverSeconds,
  parseWorkerId,
} from "@space/model";
import { createAuthority, dialPeer, issuePeer, peerName, serverOptions, type TlsIdentity } from "@space/mtls";
import { MemoryByteStore, snapshotStore } from "@space/snapshot";
import { FrameLink, type LinkStream } from "@space/wire";
import { testTenantKey } from "./sealed-objects.ts";
import { SeededRandom } from "./seeded-random.ts";
import { WorkerRig } from "./worker-rig.ts";
import { working } from "./working-worker.ts";

export type Source = NonNullable<ActivateRequest["from"]>;

/** What one request of a raw peer came to. */
export interface PeerAnswer {
  readonly head: unknown;
  readonly bytes: Buffer;
  readonly reset: string | undefined;
}

/** What a hostile giver does with one request. `sealed` is what an honest one would send. */
export type Giving = (stream: LinkStream, sealed: Buffer, socket: TLSSocket) => void;

/** Two real workers with one store, whose node-apis meet over real mutual TLS on loopback. */
export class PeerRig {
  readonly store = new MemoryByteStore();
  readonly a = new WorkerRig("giving worker", this.store);
  readonly b = new WorkerRig("asking worker", this.store);
  /** The keys that were read from the store since they were last cleared. */
  readonly read: string[] = [];
  readonly #mesh = createAuthority({ commonName: "mesh", nowMs: Date.now() });
  readonly #foreign = createAuthority({ commonName: "mesh", nowMs: Date.now() });
  #port = 0;
  #running: ExecutionIdentity | undefined;
  readonly #giving: Giving | undefined;
  readonly #givingAs: string | undefined;

  private constructor({ giving, givingAs }: { readonly giving?: Giving; readonly givingAs?: string }) {
    this.#giving = giving;
    this.#givingAs = givingAs;
    const get = this.store.get.bind(this.store);
    this.store.get = (key, limitBytes) => {
      this.read.push(key);
      return get(key, limitBytes);
    };
  }

  static async open(
    context: TestContext,
    options: { readonly giving?: Giving; readonly givingAs?: string } = {},
  ): Promise<PeerRig> {
    const rig = new PeerRig(options);
    await rig.#listen(context);
    rig.b.disk.bundle = { version: 1, token: rig.a.authority.bundle() };
    rig.b.leasedBy = rig.a.authority;
    await rig.b.boot({
      worker: { rootPublicKey: rig.a.authority.rootPublicKey },
      ports: {
        peers: {
          dial: ({ workerId, host, port }, signal) =>
            PeerRig.#dialAs(rig, rig.identity(rig.b.workerId), { workerId, host, port }, signal),
        },
      },
    });
    context.after(() => rig.b.worker.close("stopAll"));
    return rig;
  }

  static #dialAs(
    rig: PeerRig,
    identity: TlsIdentity,
    { workerId, host, port }: { readonly workerId: string; readonly host: string; readonly port: number },
    signal: AbortSignal,
  ): Promise<TLSSocket> {
    const authorityCertificate = rig.#mesh.certificate;
    return dialPeer({ host, port, expectedName: workerId, identity, authorityCertificate }, signal);
  }

  identity(name: string, authority: "ours" | "foreign" = "ours"): TlsIdentity {
    return issuePeer(authority === "ours" ? this.#mesh : this.#foreign, {
      commonName: name,
      nowMs: Date.now(),
    });
  }

  get endpoint(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.#port };
  }

  /** A sandbox on worker a is snapshotted to be moved, and its execution retired. */
  async leave(how: { readonly handsOver?: boolean; readonly retired?: boolean } = {}): Promise<Source> {
    const { handsOver = true, retired = true } = how;
    this.#running ??= await this.begin();
    const identity = this.#running;
    const follows = await this.a.chains.seal(identity.sandboxId);
    const taken = await this.a.worker.control.snapshot(identity, { ...follows, handsOver }, testTenantKey);
    const from = this.a.sourceOf(taken);
    if (retired) await this.a.worker.control.retire(this.a.authority.retirement(identity), null);
    this.read.length = 0;
    return from;
  }

  /** A sandbox runs on worker a. */
  async begin(): Promise<ExecutionIdentity> {
    const { identity } = await working(this.a);
    this.#running = identity;
    return identity;
  }

  /** The control plane's grant for this snapshot, unless it is changed. */
  grant(
    { manifest, digest }: Source,
    change: Partial<HandOverGrant> = {},
    key: SigningKey = this.a.authority.key,
  ): string {
    const issuedAtSeconds = Math.floor(this.a.clock.wallMs() / 1000);
    return signHandOverGrant(key, {
      identity: manifest.identity,
      manifest: digest,
      target: this.b.workerId,
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + longestHandOverSeconds,
      ...change,
    });
  }

  names({ manifest }: Source): readonly string[] {
    const store = snapshotStore({ store: this.store, random: new SeededRandom("names") });
    return store.open(testTenantKey).archives.names(manifest.filesystem);
  }

  sealed(name: string): Buffer {
    const [, held] = [...this.store.held].find(([key]) => key.endsWith(name)) ?? [];
    if (held === undefined) throw new TypeError("no such chunk");
    return Buffer.from(held.bytes);
  }

  /** Starts it on worker b. What its files are there. */
  async arrive(from: Source, grant = this.grant(from), port = this.#port): Promise<string | undefined> {
    const { sandboxId, generation } = from.manifest.identity;
    const next = this.b.identity({ sandboxId, generation: Number(generation) + 1 });
    const peer = { host: "127.0.0.1", port, grant };
    await this.b.worker.control.activate(this.b.request(next, { from: { ...from, peer } }));
    return this.b.machine.processes.get(next.activation.id)?.files;
  }

  /** One request to worker a over a connection of this component's own. */
  async ask(as: TlsIdentity, head: unknown): Promise<PeerAnswer> {
    const socket = await PeerRig.#dialAs(
      this,
      as,
      { workerId: this.a.workerId, ...this.endpoint },
      AbortSignal.timeout(10_000),
    );
    const link = new FrameLink(socket, { dialled: true });
    const answer = await request(link, head);
    link.destroy(undefined);
    return answer;
  }

  async link(as: TlsIdentity): Promise<FrameLink> {
    const target = { workerId: this.a.workerId, ...this.endpoint };
    return new FrameLink(await PeerRig.#dialAs(this, as, target, AbortSignal.timeout(10_000)), {
      dialled: true,
    });
  }

  async #listen(context: TestContext): Promise<void> {
    const identity = this.identity(this.#givingAs ?? this.a.workerId);
    const sockets = new Set<Socket>();
    const server = createTlsServer(serverOptions(identity, this.#mesh.certificate), (socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      const giving = this.#giving;
      if (giving === undefined) return this.a.worker.acceptPeer(socket, parseWorkerId(peerName(socket)));
      new FrameLink(socket, {
        dialled: false,
        onOpen: (stream, head) => {
          const { chunk } = JSON.parse(head.toString()) as { chunk: string }; // cast: our own worker's
          giving(stream, this.sealed(chunk), socket);
          return { onData: () => undefined, onEnd: () => undefined, onReset: () => undefined };
        },
      });
    });
    server.on("tlsClientError", () => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port; // cast: it listens on TCP
    context.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
  }
}

/** A port where nobody listens. */
export async function deafPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // cast: it listens on TCP
  server.close();
  await once(server, "close");
  return port;
}

export function request(link: FrameLink, head: unknown): Promise<PeerAnswer> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let answered: unknown;
    const finish = (reset?: string): void => resolve({ head: answered, bytes: Buffer.concat(pieces), reset });
    const stream = link.open(
      typeof head === "string" ? head : JSON.stringify(head),
      {
        onHead: (bytes) => {
          answered = JSON.parse(bytes.toString());
        },
        onData: (piece) => {
          pieces.push(piece);
          stream.consumed(piece.length);
        },
        onEnd: () => finish(),
        onReset: (reason) => finish(reason),
      },
      true,
    );
  });
}

/** Says the usual number of bytes. */
export function sayHead(stream: LinkStream, sizeBytes: number): void {
  stream.sendHead(JSON.stringify({ sizeBytes }), false);
}
