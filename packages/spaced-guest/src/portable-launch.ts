// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The portable launcher, for hosts without a C compiler: `spaced-launch` in TypeScript, with the same arguments and the
// same protocol. See PROTOCOL.md section 2.

import { openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { closeAllOnExec, lockFile, replaceDescriptor } from "./portable/descriptors.ts";
import { writeErasedProgram } from "./portable/erased-program.ts";
import { LaunchService } from "./portable/launch-service.ts";
import { runInUserNamespace } from "./portable/range-command.ts";

const usage =
  "usage: portable-launch.ts --socket PATH --seccomp FILE [--orphan-seconds N] | --in-user-namespace BASE COMMAND...\n";
const maxClients = 32;

function end(problem: unknown, step: string): never {
  process.stderr.write(
    `portable launcher: ${step}: ${problem instanceof Error ? problem.message : String(problem)}\n`,
  );
  process.exit(1);
}

function launch(socketPath: string, filterPath: string, orphanSeconds: number | undefined): void {
  const filter = readFileSync(filterPath);
  lockFile(openSync(`${socketPath}.lock`, "a", 0o600));
  rmSync(socketPath, { force: true }); // of a launcher that has died
  const programFolder = `${socketPath}.program`;
  const startProgram = join(writeErasedProgram(programFolder), "portable-start.js");
  const server = createServer();
  const service = new LaunchService({
    filter,
    startProgram,
    ...(orphanSeconds === undefined ? {} : { orphanSeconds }),
    onEnd: (lastWord) => {
      rmSync(socketPath, { force: true });
      rmSync(programFolder, { recursive: true, force: true });
      void lastWord().finally(() => process.exit(0));
    },
  });
  server.maxConnections = maxClients;
  server.on("connection", (socket) => service.accept(socket));
  server.on("error", (error) => end(error, "socket"));
  process.umask(0o177); // the socket's mode; nothing else is made here
  server.listen(socketPath, () => {
    process.umask(0o022);
    writeSync(1, "ready\n");
    const nothing = openSync("/dev/null", "r+");
    for (const fd of [0, 1]) replaceDescriptor(nothing, fd);
  });
}

const [mode, base, ...command] = process.argv.slice(2);
try {
  closeAllOnExec();
  if (mode === "--in-user-namespace" && base !== undefined && command.length > 0) {
    await runInUserNamespace(Number(base), command);
  } else {
    const { values } = parseArgs({
      options: {
        socket: { type: "string" },
        seccomp: { type: "string" },
        "orphan-seconds": { type: "string" },
      },
    });
    const { socket, seccomp, "orphan-seconds": orphan } = values;
    if (socket === undefined || seccomp === undefined) end(usage, "arguments");
    launch(socket, seccomp, orphan === undefined ? undefined : Number(orphan));
  }
} catch (error) {
  end(error, mode ?? "arguments");
}
