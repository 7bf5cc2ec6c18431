// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Writes the vectors anew: `node packages/testing/src/make-vectors.ts`.

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { capabilityVectorsText } from "./capability-vectors.ts";

writeFileSync(resolve(import.meta.dirname, "../vectors/capability.json"), capabilityVectorsText());
