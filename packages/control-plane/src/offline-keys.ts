// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ChainExport } from "@space/capability";
import type { CheckpointSigner, SandboxId } from "@space/model";
import { exportChain } from "./export-chain.ts";
import { KeyAdministration } from "./key-administration.ts";
import { KeyRotation } from "./key-rotation.ts";
import { defaultControlLimits } from "./limits.ts";
import type { ControlPlanePorts } from "./parts.ts";
import { Signer } from "./signer.ts";
import { SigningKeys } from "./signing-keys.ts";

/** What can be done with an installation's keys while nothing of it runs. */
export interface OfflineKeys {
  readonly keys: KeyAdministration;
  readonly auditCheckpoint: CheckpointSigner;
  chain(sandboxId: SandboxId): Promise<ChainExport | undefined>;
}

/**
 * Opens the keys of a control plane that does not run. The caller holds its store, so nobody is served: there is no
 * receiver to wait for, and each gets the newest bundle before anything else when it comes. Changes no sandbox.
 */
export async function openOfflineKeys(
  issuer: string,
  ports: Pick<
    ControlPlanePorts,
    "sandboxes" | "signingKeys" | "privateKeys" | "rootKey" | "clock" | "random" | "audit"
  >,
): Promise<OfflineKeys> {
  const { sandboxes, clock, random, audit } = ports;
  const { rootKey: root, privateKeys: vault, signingKeys: store } = ports;
  const keys = await SigningKeys.open({ root, vault, store, clock, audit });
  const signer = new Signer({ issuer, keys, clock, random, audit });
  const limits = defaultControlLimits;
  const receivers = { deliver: () => Promise.resolve(true) };
  const rotation = new KeyRotation({ keys, receivers, clock, audit, limits });
  return {
    keys: new KeyAdministration({ keys, rotation }),
    auditCheckpoint: signer.auditCheckpoint,
    chain: (sandboxId) => exportChain({ sandboxes, keys, signer }, sandboxId),
  };
}
