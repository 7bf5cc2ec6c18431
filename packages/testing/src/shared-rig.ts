// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { EmbeddedOptions } from "@space/space";
import { type EmbeddedRig, startRig } from "./embedded-rig.ts";
import { hostResources, leftBehind } from "./host-resources.ts";
import { needsRoot } from "./needs-root.ts";

/**
 * One whole system for all tests of the file that calls it: started before them, and after them stopped, with nothing left
 * on the host. To be asked for in tests only, which skip where {@link needsRoot} says why.
 */
export function sharedRig(options: Partial<EmbeddedOptions>): () => EmbeddedRig {
  const resourcesBefore = hostResources();
  let rig: EmbeddedRig | undefined;
  before(async () => {
    if (needsRoot === false) rig = await startRig(options);
  });
  after(async () => {
    if (needsRoot !== false) return;
    await rig?.end();
    assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
  });
  return () => {
    if (rig === undefined) throw new TypeError("the system has not started");
    return rig;
  };
}
