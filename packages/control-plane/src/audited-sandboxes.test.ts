// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { ChangeReason } from "@space/model";
import type { ReasonedChange } from "./audited-sandboxes.ts";

it("a change without a reason, or with one that is in no list, does not compile", () => {
  const on = { sandboxId: "i" as never, revision: 1 };
  // @ts-expect-error: it does not say why
  const silent: ReasonedChange = { on, change: { kind: "abort-pause" } };
  // @ts-expect-error: no reason of ours
  const other: ChangeReason = "felt like it";
  assert.ok(!("why" in silent) && other.length > 0);
});
