// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret } from "@space/model";
import type { S3Options } from "@space/object-store";

const startLimitMs = 30_000;
const bucket = "snapshots";

/** One server with one empty bucket. */
export interface S3Server {
  readonly options: S3Options;
  readonly stop: () => Promise<void>;
}

/** In a process of its own, that names its port: its tokens of listings need an old cipher that Node has to be asked for. */
const s3rverProgram = `
  const Program = require("@20minutes/s3rver");
  const [directory, bucket] = process.argv.slice(1);
  const options = { address: "127.0.0.1", port: 0, silent: true, directory, configureBuckets: [{ name: bucket }] };
  new Program(options).run().then(({ port }) => console.log(port));
`;

/** The server that npm brings. */
export async function startS3rver(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "s3rver-"));
  const child = spawn(
    process.execPath,
    ["--openssl-legacy-provider", "-e", s3rverProgram, directory, bucket],
    { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "inherit"] },
  );
  const [line] = (await once(child.stdout, "data", { signal: AbortSignal.timeout(startLimitMs) })) as [
    Buffer,
  ]; // cast: bytes
  return {
    options: {
      endpoint: `http://127.0.0.1:${Number(line.toString())}`,
      bucket,
      region: "us-east-1",
      accessKeyId: "S3RVER",
      secretAccessKey: new Secret("S3RVER"),
    },
    stop: () => endServer(child, directory),
  };
}

/** Ends a server and removes what it kept. */
export async function endServer(child: ChildProcess, directory: string): Promise<void> {
  const ended = once(child, "exit");
  child.kill();
  await ended;
  rmSync(directory, { recursive: true, force: true });
}
