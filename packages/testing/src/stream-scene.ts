// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { FakeNamedStreams, positionOf } from "./fake-named-streams.ts";
import { fakeIdentity, fakeSandboxId } from "./fake-route-source.ts";
import type { FakeOperation } from "./fake-worker-link.ts";
import { GatewayRig, type RigOptions } from "./gateway-rig.ts";
import { StreamCaller } from "./stream-caller.ts";

/** Starts a process. */
export const start = "/process.Process/Start";
/** Where a stream of one goes on. */
export const connect = "/process.Process/Connect";
export const watch = "/filesystem.Filesystem/WatchDir";

/** A gateway whose caller has a stream open. */
export interface StreamScene extends AsyncDisposable {
  readonly rig: GatewayRig;
  readonly streams: FakeNamedStreams;
  readonly caller: StreamCaller;
  readonly key: string;
  /** The operation that carries the stream now. */
  current(): FakeOperation;
}

/** A stream that has begun, on an execution of generation 1. */
export async function begun(path: string = start, options: RigOptions = {}): Promise<StreamScene> {
  const rig = await GatewayRig.start(options);
  const streams = new FakeNamedStreams();
  rig.worker.serve = (operation) => streams.serve(operation);
  const caller = await StreamCaller.open(rig, path);
  const current = (): FakeOperation => rig.worker.operations.at(-1) ?? assert.fail("nothing was presented");
  const { key } = positionOf(current());
  return { rig, streams, caller, key, current, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() };
}

/** From now on the sandbox runs as this generation, and its worker refuses every other one. */
export function runsAs({ rig, streams }: StreamScene, generation: bigint): void {
  rig.routes.answer = undefined;
  rig.routes.identities.set(fakeSandboxId, fakeIdentity(generation));
  rig.worker.serve = (operation) => {
    const presented = BigInt(operation.head.capability.split(" ").at(-1) ?? "0");
    if (presented === generation) streams.serve(operation);
    else operation.refreshRoute(fakeIdentity(presented));
  };
}

/** The sandbox is paused: its streams are cut, and nobody is admitted. */
export function pause({ rig, current }: StreamScene): void {
  rig.routes.answer = () => ({ kind: "not-running" });
  rig.worker.serve = (operation) => operation.refreshRoute(fakeIdentity(1n));
  current().stream.reset("epoch-ended");
}
