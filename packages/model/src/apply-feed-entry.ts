// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unreachable } from "./brand.ts";
import type { FeedEntry } from "./ports/receiver-feed.ts";
import type { RecordReceiver } from "./ports/worker-control.ts";

/** Has the receiver do what an entry of its feed says. Throws what it throws. */
export function applyFeedEntry(receiver: RecordReceiver, entry: FeedEntry): Promise<void> {
  switch (entry.kind) {
    case "install":
      return receiver.install(entry.certificate);
    case "retire":
      return receiver.retire(entry.retirement, entry.keepFrozen);
    case "discard":
      return receiver.discard(entry.sandboxId, entry.manifest);
    case "keys":
      return receiver.replaceKeys(entry.bundle);
    case "lease":
      return receiver.takeLease(entry.grant);
    default:
      return unreachable(entry);
  }
}
