// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

test("a log file on a full disk does not end the process that logs", () => {
  const program = `
    import { errorLog } from ${JSON.stringify(join(import.meta.dirname, "error-log.ts"))};
    const log = errorLog();
    for (let turn = 0; turn < 3; turn++) {
      log.info({ turn });
      await new Promise((settle) => setImmediate(settle));
    }
    process.stdout.write("alive");
  `;
  const run = spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    stdio: ["ignore", "pipe", openSync("/dev/full", "w")],
    timeout: 20_000,
    encoding: "utf8",
  });
  assert.deepEqual([run.status, run.stdout], [0, "alive"]);
});
