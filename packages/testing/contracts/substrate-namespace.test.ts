// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import { substrateContract } from "./substrate.ts";

const common = { rounds: 5, layers: true, killed: /^killed by signal 9$/ };

if (existsSync(nativeLauncherPath)) substrateContract("native", { ...common, spares: true });
else
  describe("substrate, native launcher", () =>
    it("is built", { skip: "no C compiler built the native launcher" }));

substrateContract("portable", { ...common, spares: false });
