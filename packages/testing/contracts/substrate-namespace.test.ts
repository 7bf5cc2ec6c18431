// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import { substrateContract } from "./substrate.ts";

if (existsSync(nativeLauncherPath)) substrateContract("native");
else
  describe("substrate, native launcher", () =>
    it("is built", { skip: "no C compiler built the native launcher" }));

substrateContract("portable");
