// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Socket } from "node:net";
import { type ActivationId, type Clock, isSpaceError, type Secret, SpaceError } from "@space/model";
import { GuestConnection, GuestConnectionError } from "@space/spaced-guest";
import type { BridgeAudit } from "./bridge-events.ts";

/** What the kernel says of the process behind a connected Unix socket, read after the connection was made. */
export interface PeerEvidence {
  readonly pid: number;
  readonly uid: number;
  /** Field 22 of /proc/PID/stat, as text. */
  readonly startTime: string;
}

/** A connection to a guest's socket (opened with `allowHalfOpen`) and the process that listens on it. */
export interface ConnectedGuest {
  readonly socket: Socket;
  readonly peer: PeerEvidence;
}

export type GuestConnector = (socketPath: string) => Promise<ConnectedGuest>;

/** Longest wait for a connection and the peer's credentials. */
const connectLimitMs = 10_000;

export interface EndpointIdentity {
  readonly activationId: ActivationId;
  readonly secret: Secret<Uint8Array>;
  readonly socketPath: string;
  readonly guest: { readonly pid: number; readonly startTime: string };
}

export interface EndpointPorts {
  readonly clock: Clock;
  readonly connectGuest: GuestConnector;
  readonly audit: BridgeAudit;
}

/** How to reach one activation's guest, and who must be there. */
export class GuestEndpoint {
  readonly identity: EndpointIdentity;
  readonly #ports: EndpointPorts;

  constructor(identity: EndpointIdentity, ports: EndpointPorts) {
    this.identity = identity;
    this.#ports = ports;
  }

  /** The same process under another id and secret. */
  renamed(activationId: ActivationId, secret: Secret<Uint8Array>): GuestEndpoint {
    return new GuestEndpoint({ ...this.identity, activationId, secret }, this.#ports);
  }

  /**
   * opens one connection and makes every check anew. Rejects with `endpoint/mismatch` when somebody else is
   * there, with `endpoint/unverifiable` when nobody can be asked. The refusal is audited; nothing weaker is tried.
   */
  async open(): Promise<GuestConnection> {
    try {
      return await this.#verified(await this.#connect());
    } catch (error) {
      if (isSpaceError(error, "endpoint/mismatch")) {
        const { activationId } = this.identity;
        this.#ports.audit.record("bridge/endpoint-refused", { activationId, problem: error.details.problem });
      }
      throw error;
    }
  }

  #connect(): Promise<ConnectedGuest> {
    return new Promise((resolve, reject) => {
      let late = false;
      const cancel = this.#ports.clock.after(connectLimitMs, () => {
        late = true;
        reject(unverifiable("no answer"));
      });
      this.#ports.connectGuest(this.identity.socketPath).then(
        (connected) => {
          cancel();
          if (late) connected.socket.destroy();
          else resolve(connected);
        },
        (cause: unknown) => {
          cancel();
          reject(unverifiable("no connection", cause));
        },
      );
    });
  }

  async #verified({ socket, peer }: ConnectedGuest): Promise<GuestConnection> {
    const { guest, activationId, secret } = this.identity;
    // the listener is the process recorded at activation, not one that inherited its address or its pid.
    if (peer.pid !== guest.pid || peer.startTime !== guest.startTime) {
      socket.destroy();
      throw new SpaceError("endpoint/mismatch", {
        problem: peer.pid === guest.pid ? "start time" : "pid",
      });
    }
    try {
      return await GuestConnection.over(socket, { activationId, secret: secret.reveal() });
    } catch (cause) {
      socket.destroy();
      if (cause instanceof GuestConnectionError && cause.fault === "unverified") {
        throw new SpaceError("endpoint/mismatch", { problem: "activation secret" }, { cause });
      }
      throw unverifiable("no proof", cause);
    }
  }
}

function unverifiable(problem: string, cause?: unknown): SpaceError {
  return new SpaceError("endpoint/unverifiable", { problem }, { cause });
}
