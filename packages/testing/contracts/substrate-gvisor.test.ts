// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { substrateContract } from "./substrate.ts";

substrateContract("gvisor", {
  rounds: 2,
  layers: false,
  spares: false,
  killed: /^the sandbox's kernel ended with [0-9]+$/,
});
