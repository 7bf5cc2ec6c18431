// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { guestProtocolContract } from "./guest-protocol.ts";

guestProtocolContract("gvisor", {
  terminals: true,
  watches: true,
  oomScore: 100,
  // Its kernel is its own: neither a filter nor a bar to setuid programs stands between the two.
  confinement: "Seccomp: 0\n",
  tooLong: "ENAMETOOLONG",
  quick: true,
});
