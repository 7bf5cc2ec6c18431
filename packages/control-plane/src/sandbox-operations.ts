// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type ConnectedSandbox,
  type ConnectSandbox,
  type CreateSandbox,
  type ForkedSandbox,
  type ForkSandbox,
  type ListSandboxes,
  type ListSnapshots,
  type MovedSandbox,
  type MoveSandbox,
  type SandboxId,
  type SandboxService,
  type SandboxView,
  type Secret,
  type SnapshotService,
  type SnapshotView,
  SpaceError,
} from "@space/model";
import { authenticate } from "./api-keys.ts";
import { connectSandbox } from "./connect-sandbox.ts";
import { createSandbox } from "./create-sandbox.ts";
import { forkSandbox } from "./fork-sandbox.ts";
import { killSandbox } from "./kill-sandbox.ts";
import { moveSandbox } from "./move-sandbox.ts";
import type { ControlParts } from "./parts.ts";
import { pauseSandbox } from "./pause-sandbox.ts";
import { viewOf } from "./sandbox-view.ts";
import { setSandboxTimeout } from "./set-timeout.ts";
import { deleteSnapshot, listSnapshots, takeSnapshot } from "./snapshot-operations.ts";
import { ownSandbox } from "./turns.ts";

/** The use-cases as callers reach them. After {@link refuseFromNowOn} nothing that changes a sandbox is begun. */
export class SandboxOperations implements SandboxService, SnapshotService {
  readonly #parts: ControlParts;
  #isOpen = true;

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  refuseFromNowOn(): void {
    this.#isOpen = false;
  }

  authenticate(apiKey: Secret<string> | undefined): Promise<ApiCaller> {
    return authenticate(this.#parts, apiKey);
  }

  async create(caller: ApiCaller, request: CreateSandbox): Promise<ConnectedSandbox> {
    this.#requireOpen();
    return createSandbox(this.#parts, caller, request);
  }

  async connect(caller: ApiCaller, sandboxId: SandboxId, request: ConnectSandbox): Promise<ConnectedSandbox> {
    this.#requireOpen();
    return connectSandbox(this.#parts, { caller, sandboxId, request, ifRunning: "extend" });
  }

  async resume(caller: ApiCaller, sandboxId: SandboxId, request: ConnectSandbox): Promise<ConnectedSandbox> {
    this.#requireOpen();
    return connectSandbox(this.#parts, { caller, sandboxId, request, ifRunning: "refuse" });
  }

  async get(caller: ApiCaller, sandboxId: SandboxId): Promise<SandboxView> {
    return viewOf(await ownSandbox(this.#parts, caller, sandboxId));
  }

  async list(caller: ApiCaller, request: ListSandboxes): Promise<readonly SandboxView[]> {
    const records = await this.#parts.sandboxes.list(caller.tenantId, request);
    return records.map(viewOf);
  }

  async pause(caller: ApiCaller, sandboxId: SandboxId, keepMemory: boolean): Promise<SandboxView> {
    this.#requireOpen();
    return pauseSandbox(this.#parts, { caller, sandboxId, keepMemory });
  }

  async move(caller: ApiCaller, sandboxId: SandboxId, request: MoveSandbox): Promise<MovedSandbox> {
    this.#requireOpen();
    return moveSandbox(this.#parts, { caller, sandboxId }, request);
  }

  async setTimeout(caller: ApiCaller, sandboxId: SandboxId, timeoutMs: number): Promise<void> {
    this.#requireOpen();
    await setSandboxTimeout(this.#parts, { caller, sandboxId, timeoutMs });
  }

  async kill(caller: ApiCaller, sandboxId: SandboxId): Promise<void> {
    this.#requireOpen();
    await killSandbox(this.#parts, { caller, sandboxId });
  }

  async snapshot(caller: ApiCaller, sandboxId: SandboxId, name: string | undefined): Promise<SnapshotView> {
    this.#requireOpen();
    return takeSnapshot(this.#parts, { caller, sandboxId }, name);
  }

  listSnapshots(caller: ApiCaller, request: ListSnapshots): Promise<readonly SnapshotView[]> {
    return listSnapshots(this.#parts, caller, request);
  }

  async deleteSnapshot(caller: ApiCaller, template: string): Promise<void> {
    this.#requireOpen();
    await deleteSnapshot(this.#parts, caller, template);
  }

  async fork(
    caller: ApiCaller,
    sandboxId: SandboxId,
    request: ForkSandbox,
  ): Promise<readonly ForkedSandbox[]> {
    this.#requireOpen();
    const requireOpen = (): void => this.#requireOpen();
    return forkSandbox(this.#parts, { caller, sandboxId, requireOpen }, request);
  }

  #requireOpen(): void {
    if (!this.#isOpen) throw new SpaceError("worker/none-free", {});
  }
}
