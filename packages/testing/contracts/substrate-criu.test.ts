// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { substrateContract } from "./substrate.ts";

substrateContract("criu", { rounds: 3, layers: true, spares: true, killed: /^killed by signal 9$/ });
