// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  GuestConnection,
  type HostRecord,
  LaunchClient,
  nativeLauncherPath,
  portableLauncherPath,
  type StartRecord,
} from "@space/spaced-guest";
import { type LauncherKind, seccompProgram } from "@space/substrate-namespace";

const folders = ["usr", "proc", "dev", "tmp", "etc", "run"];
const links = ["bin", "lib", "lib64", "sbin"];

/** A launcher alone, without a driver: what PROTOCOL.md section 2 says of it can be seen one request at a time. */
export class LaunchRig {
  readonly folder: string;
  readonly socketPath: string;
  readonly process: ChildProcess;
  readonly client: LaunchClient;
  readonly uidBase: number;
  #started = 0;

  private constructor(folder: string, launcher: ChildProcess, client: LaunchClient) {
    this.folder = folder;
    this.socketPath = join(folder, "launch");
    this.process = launcher;
    this.client = client;
    this.uidBase = 0x3400_0000 + (process.pid % 2000) * 65_536;
  }

  static async open(kind: LauncherKind, options: readonly string[] = []): Promise<LaunchRig> {
    const folder = mkdtempSync(join(tmpdir(), "space-launch-"));
    chmodSync(folder, 0o711);
    for (const name of folders) mkdirSync(join(folder, "lower", name), { recursive: true });
    for (const name of links) symlinkSync(join("usr", name), join(folder, "lower", name));
    const filter = join(folder, "filter");
    writeFileSync(filter, seccompProgram());
    const [program = "", ...first] =
      kind === "native" ? [nativeLauncherPath] : [process.execPath, portableLauncherPath];
    const socketPath = join(folder, "launch");
    const launcher = spawn(program, [...first, "--socket", socketPath, "--seccomp", filter, ...options], {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(launcher.stdout, "data");
    return new LaunchRig(folder, launcher, await LaunchClient.connect(socketPath));
  }

  /** A whole record under a new name; any part of it replaced. */
  record(changes: Partial<StartRecord> = {}): StartRecord {
    const activationId = `act_${this.#started}`;
    const folder = join(this.folder, activationId);
    this.#started += 1;
    for (const name of ["upper", "work", "root"]) {
      mkdirSync(join(folder, name), { recursive: true });
      chownSync(join(folder, name), this.uidBase, this.uidBase);
    }
    return {
      activationId,
      secret: randomBytes(32),
      socketPath: join(folder, "guest"),
      socketUid: 1234,
      uidBase: this.uidBase,
      hostname: "rigged",
      lowerDir: join(this.folder, "lower"),
      upperDir: join(folder, "upper"),
      workDir: join(folder, "work"),
      rootDir: join(folder, "root"),
      binds: [{ source: "/usr", target: "usr", readOnly: true }],
      bootId: randomUUID(),
      cgroupFiles: [],
      tmpfsLimitBytes: 1024 * 1024,
      fileLimitBytes: 0,
      ...changes,
    };
  }

  bridge(script: string, changes: Partial<HostRecord> = {}): HostRecord {
    return {
      name: "bridge",
      uid: 64_123,
      gid: 64_124,
      argv: ["/bin/sh", "-c", script],
      env: { PATH: "/usr/bin:/bin", GREETING: "hello there" },
      stderrPath: join(this.folder, "bridge.log"),
      binds: [],
      ...changes,
    };
  }

  connect(record: StartRecord): Promise<GuestConnection> {
    return GuestConnection.connect(record.socketPath, record);
  }

  /** Ends the launcher, if it still runs, with everything it started. */
  async close(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exited = once(this.process, "exit");
      this.client.close();
      this.process.kill("SIGKILL");
      await exited;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
