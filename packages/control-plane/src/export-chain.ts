// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChainExport,
  certificateDigest,
  claimedKeyId,
  manifestDigest,
  verifyCountersigned,
} from "@space/capability";
import type { SandboxId } from "@space/model";
import type { ControlParts } from "./parts.ts";

/**
 * everything that was signed about a sandbox, under a head signed now, with the newest bundle and one for each key
 * that signed a link. undefined for a sandbox that is unknown or has never run.
 */
export async function exportChain(
  { sandboxes, keys, signer }: Pick<ControlParts, "sandboxes" | "keys" | "signer">,
  sandboxId: SandboxId,
): Promise<ChainExport | undefined> {
  const record = await sandboxes.read(sandboxId);
  if (record === undefined || record.certificateHead === null) return undefined;
  const { certificateHead, snapshot } = record;
  const chain = await sandboxes.chain(sandboxId);
  // Links that were added since the row was read are left to the next export.
  const certificates = from(chain.certificates, (token) => certificateDigest(token) === certificateHead);
  const manifests = from(
    chain.manifests,
    (token) => manifestDigest(verifyCountersigned(token, keys.archive)) === snapshot?.digest,
  );
  const head = signer.chainHead(record, "export");
  const kids = new Set([head, ...certificates, ...manifests].map((token) => claimedKeyId(token) ?? ""));
  const held = [...kids].flatMap((kid) => keys.archive.bundleOf(kid) ?? []);
  return { sandboxId, head, bundles: [...new Set([...held, keys.bundle.token])], certificates, manifests };
}

/** The tokens from the first one that is the head. */
function from(tokens: readonly string[], isHead: (token: string) => boolean): readonly string[] {
  const at = tokens.findIndex(isHead);
  return at < 0 ? [] : tokens.slice(at);
}
