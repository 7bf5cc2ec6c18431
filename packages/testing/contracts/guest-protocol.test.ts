// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { nativeLauncherPath, portableDifferences } from "@space/spaced-guest";
import { guestProtocolContract } from "./guest-protocol.ts";

if (existsSync(nativeLauncherPath))
  guestProtocolContract("native", { terminals: true, watches: true, oomScore: 100 });
else
  describe("guest protocol, native", () =>
    it("is built", { skip: "no C compiler built the native launcher" }));

guestProtocolContract("portable", {
  terminals: portableDifferences.pty,
  watches: portableDifferences.watch,
  oomScore: portableDifferences.oomScoreAdjustment,
});
