// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { claimedKeyId, KeyRing } from "@space/capability";
import type { KeyBundleReceiver, SigningKeyState } from "@space/model";
import { ControlRig } from "./control-rig.ts";
import type { FakeWorker } from "./fake-worker.ts";

/** A gateway's side: takes bundles, or is told not to. */
export class FakeGateway implements KeyBundleReceiver {
  readonly versions: number[] = [];
  readonly #root;
  problem: Error | undefined;
  gate: Promise<void> = Promise.resolve();

  constructor(rig: ControlRig) {
    this.#root = rig.root.publicKey;
  }

  async replaceKeys(bundle: string): Promise<void> {
    await this.gate;
    if (this.problem !== undefined) throw this.problem;
    this.versions.push(KeyRing.fromBundle(bundle, this.#root).version);
  }
}

/** A control plane whose signing keys are looked at. */
export class KeyRig {
  readonly rig: ControlRig;
  readonly workers: readonly [FakeWorker, FakeWorker];

  constructor(rig: ControlRig, workers: readonly [FakeWorker, FakeWorker]) {
    this.rig = rig;
    this.workers = workers;
  }

  states(): readonly SigningKeyState[] {
    return this.rig.control.keys.view().keys.map(({ state }) => state);
  }

  kid(at: number): string {
    return this.rig.control.keys.view().keys[at]?.kid ?? assert.fail(`there is no key ${at}`);
  }

  /** The key that signs now, as what it signs shows it. */
  async signs(): Promise<string | undefined> {
    const { sandboxId, accessToken } = await this.rig.create();
    const answer = await this.rig.control.routes.resolve({
      sandboxId,
      credential: { kind: "access-token", token: accessToken },
      wanted: { purpose: "control", scope: "files:read" },
      presenter: Buffer.alloc(32, 1).toString("base64url"),
    });
    assert.equal(answer.kind, "entry");
    return claimedKeyId(answer.entry.capability);
  }
}

/** Upkeep that has nothing to do here is rare, so that hours pass in moments. */
const quiet = { reaperTickMs: 60_000, recoveryTickMs: 60_000 };

export async function openKeyRig(
  context: TestContext,
  { workers: connected = 2, limits = {} }: Parameters<typeof ControlRig.open>[1] = {},
): Promise<KeyRig> {
  const options = { workers: connected, limits: { ...quiet, ...limits } };
  const { rig, workers } = await ControlRig.open(context, options);
  return new KeyRig(rig, workers);
}
