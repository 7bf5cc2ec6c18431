// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { guestProtocolContract } from "./guest-protocol.ts";

guestProtocolContract("criu", {
  terminals: true,
  watches: true,
  oomScore: 100,
  confinement: "CapAmb: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n",
  tooLong: "E2BIG",
  quick: false,
});
