// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { AuditSink, WorkerId } from "@space/model";
import { type Authority, loadOrCreatePeer, type TlsIdentity } from "@space/mtls";
import { MeshDialler } from "../host/mesh-dialler.ts";
import type { MeshMember } from "../host/mesh-sockets.ts";
import { systemClock } from "../host/system-clock.ts";
import { controlPlaneName, gatewayName } from "../worker/component-names.ts";
import type { EdgeAddress } from "./edge-servers.ts";

export interface MeshOptions {
  /** Where the components' keys are kept. */
  readonly tls: string;
  readonly authority: Authority;
  readonly nowMs: number;
  readonly audit: AuditSink;
}

/** The components of this process on the private mesh. */
export class Mesh {
  readonly controlPlane: MeshMember;
  readonly #options: MeshOptions;
  readonly #dialler: MeshDialler;
  #gateway: TlsIdentity;

  private constructor(options: MeshOptions, controlPlane: TlsIdentity, gateway: TlsIdentity) {
    this.#options = options;
    this.controlPlane = { identity: controlPlane, authorityCertificate: options.authority.certificate };
    this.#dialler = new MeshDialler({ audit: options.audit, clock: systemClock });
    this.#gateway = gateway;
  }

  static async join(options: MeshOptions): Promise<Mesh> {
    const [controlPlane, gateway] = [
      await identity(options, controlPlaneName),
      await identity(options, gatewayName),
    ];
    return new Mesh(options, controlPlane, gateway);
  }

  /** with which the gateway's links are dialled now. */
  get presenter(): string {
    return this.#gateway.thumbprint;
  }

  /** Connects to a worker's node-api as the gateway. */
  dial(workerId: WorkerId, { host, port }: EdgeAddress, signal?: AbortSignal): Promise<Duplex> {
    const authorityCertificate = this.#options.authority.certificate;
    return this.#dialler.dial(
      { identity: this.#gateway, authorityCertificate },
      { host, port, name: workerId },
      signal,
    );
  }

  /** A certificate for the gateway that has enough time left: the one there is, unless `anew`. Whether it is another now. */
  async renewGateway(nowMs: number, anew: boolean): Promise<boolean> {
    const { tls } = this.#options;
    if (anew) rmSync(join(tls, `${gatewayName}.pem`), { force: true });
    const gateway = await identity({ ...this.#options, nowMs }, gatewayName);
    const isAnother = gateway.thumbprint !== this.#gateway.thumbprint;
    this.#gateway = gateway;
    return isAnother;
  }
}

function identity({ tls, authority, nowMs }: MeshOptions, name: string): Promise<TlsIdentity> {
  return loadOrCreatePeer({ directory: tls, nowMs, authority, name });
}
