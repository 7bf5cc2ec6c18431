// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { parseArgs } from "node:util";
import { prepareLoading } from "./loader.ts";
import { mutants } from "./mutants.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    executions: { type: "string", default: "1000" },
    world: { type: "string" },
    mutant: { type: "string" },
    trace: { type: "boolean", default: false },
  },
});
const mutant = values.mutant === undefined ? undefined : mutants.find(({ name }) => name === values.mutant);
prepareLoading(mutant);
const { runShard } = await import("./shard.ts");
runShard({
  seed: values.seed,
  executions: Number(values.executions),
  world: values.world,
  trace: values.trace,
});
