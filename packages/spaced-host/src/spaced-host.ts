// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { type BootClock, isSpaceError, type Random } from "@space/model";
import {
  decodeJson,
  FrameLink,
  hostControlHandlers,
  type LinkStream,
  parseHostOperationHead,
  type RpcHandler,
  resetReason,
  rpcMethod,
  type StreamHandlers,
  serveRpc,
} from "@space/wire";
import { ActivationRegistry } from "./activation-registry.ts";
import { type BridgeAudit, BridgeEvents } from "./bridge-events.ts";
import { type DaemonEvidence, type DaemonRule, judgeDaemon } from "./daemon-gate.ts";
import { Exchange } from "./exchange.ts";
import type { GuestConnector } from "./guest-endpoint.ts";
import { answerJson } from "./json-answer.ts";
import { GatedStream, LeaseGate } from "./lease-gate.ts";
import { serveOperation } from "./serve-operation.ts";

export const defaultOrphanLimitMs = 120_000;

export interface SpacedHostOptions {
  /** Who may command this process. */
  readonly daemon: DaemonRule;
  /** How long sandboxes live on without a daemon. Default 120 s. */
  readonly orphanLimitMs?: number;
  readonly defaultUser?: string;
  readonly workdir?: string;
}

export interface SpacedHostPorts {
  readonly clock: BootClock;
  readonly random: Random;
  readonly connectGuest: GuestConnector;
  /** No daemon has come for the whole orphan limit: the process should end, and with it everything it serves. */
  readonly onOrphaned: () => void;
}

/** The bridge: serves the guests of one worker to that worker's daemon, and outlives it. */
export interface SpacedHost {
  /**
   * Takes over a connection of the daemon, whose process `peer` describes (undefined: it could not be read). An earlier
   * daemon's link ends. Throws `endpoint/mismatch` or `endpoint/unverifiable` and closes the socket, of which nothing has
   * been read, when it is not the daemon.
   */
  serve(socket: Duplex, peer: DaemonEvidence | undefined): void;
  /** Ends the link, every stream and every process. */
  close(): void;
}

const rpcBeginning = Buffer.from('{"rpc":');

export function createSpacedHost(options: SpacedHostOptions, ports: SpacedHostPorts): SpacedHost {
  const { defaultUser = "user", workdir = "/home/user", orphanLimitMs = defaultOrphanLimitMs } = options;
  const events = new BridgeEvents(ports);
  const gate = new LeaseGate(ports.clock, events);
  const registry = new ActivationRegistry({ defaultUser, workdir }, { ...ports, gate, audit: events });
  const commands = hostControlHandlers(registry);
  const onOpen = (stream: LinkStream, head: Buffer): StreamHandlers =>
    open(stream, head, { registry, gate, audit: events, commands });
  let link: FrameLink | undefined;
  let cancelOrphanTimer = ports.clock.after(orphanLimitMs, ports.onOrphaned);

  return {
    serve(socket, peer) {
      admit(socket, peer, options.daemon, events);
      cancelOrphanTimer();
      const previous = link;
      const current: FrameLink = new FrameLink(socket, {
        dialled: false,
        onOpen,
        onClose: () => {
          if (link !== current) return;
          link = undefined;
          cancelOrphanTimer = ports.clock.after(orphanLimitMs, ports.onOrphaned);
        },
      });
      link = current;
      previous?.destroy(undefined);
    },
    close() {
      cancelOrphanTimer();
      const last = link;
      link = undefined;
      last?.destroy(undefined);
      gate.close();
      registry.close();
      events.close();
    },
  };
}

/** the gate stays shut, and the socket unread, until the peer is verified. */
function admit(socket: Duplex, peer: DaemonEvidence | undefined, rule: DaemonRule, audit: BridgeAudit): void {
  try {
    judgeDaemon(peer, rule);
  } catch (error) {
    socket.destroy();
    if (isSpaceError(error, "endpoint/mismatch") || isSpaceError(error, "endpoint/unverifiable")) {
      audit.record("bridge/daemon-refused", { problem: error.details.problem });
    }
    throw error;
  }
  audit.record("bridge/daemon-accepted", { pid: peer?.pid ?? 0 });
}

interface Serving {
  readonly registry: ActivationRegistry;
  readonly gate: LeaseGate;
  readonly audit: BridgeAudit;
  readonly commands: ReadonlyMap<string, RpcHandler>;
}

function open(stream: LinkStream, head: Buffer, serving: Serving): StreamHandlers {
  try {
    if (head.subarray(0, rpcBeginning.length).equals(rpcBeginning))
      return command(stream, head, serving.commands);
    return operation(stream, head, serving);
  } catch {
    stream.reset("bad head");
    return { onData: () => undefined, onEnd: () => undefined, onReset: () => undefined };
  }
}

function command(
  stream: LinkStream,
  head: Buffer,
  commands: ReadonlyMap<string, RpcHandler>,
): StreamHandlers {
  const value = decodeJson(head.toString("utf8"));
  const rpc = rpcMethod(value) ?? "";
  const params = typeof value === "object" && value !== null && "params" in value ? value.params : undefined;
  return serveRpc(stream, { rpc, params }, commands);
}

function operation(stream: LinkStream, head: Buffer, { registry, gate, audit }: Serving): StreamHandlers {
  const gated = new GatedStream(gate, stream);
  const exchange = new Exchange(gated, parseHostOperationHead(JSON.parse(head.toString("utf8"))));
  const activationId = exchange.head.activation;
  const activation = registry.find(activationId);
  if (!gate.isOpen) {
    audit.record("bridge/operation-refused", { activationId, reason: "no lease" });
    stream.reset(resetReason.leaseEnded); // nothing is begun
    exchange.onReset(resetReason.leaseEnded);
    return exchange;
  }
  if (activation === undefined) {
    audit.record("bridge/operation-refused", { activationId, reason: "not adopted" });
    answerJson(exchange, 503, { code: 503, message: "The sandbox is not served here at present" });
  } else serveOperation(activation, exchange);
  return gated.handle(exchange);
}
