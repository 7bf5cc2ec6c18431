// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { nativeLauncherPath, portableDifferences } from "@space/spaced-guest";
import { guestProtocolContract } from "./guest-protocol.ts";

const common = {
  confinement: "CapAmb: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n",
  tooLong: "E2BIG",
  quick: false,
};

if (existsSync(nativeLauncherPath))
  guestProtocolContract("native", { ...common, terminals: true, watches: true, oomScore: 100 });
else
  describe("guest protocol, native", () =>
    it("is built", { skip: "no C compiler built the native launcher" }));

guestProtocolContract("portable", {
  ...common,
  terminals: portableDifferences.pty,
  watches: portableDifferences.watch,
  oomScore: portableDifferences.oomScoreAdjustment,
});
