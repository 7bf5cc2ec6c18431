// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import { launchFenceContract } from "./launch-fence.ts";
import { launchProtocolContract } from "./launch-protocol.ts";

if (existsSync(nativeLauncherPath)) {
  launchProtocolContract("native");
  launchFenceContract("native");
} else
  describe("launch protocol, native", () =>
    it("is built", { skip: "no C compiler built the native launcher" }));

launchProtocolContract("portable");
launchFenceContract("portable");
