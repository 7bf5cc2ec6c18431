// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ActivationId,
  type EndpointEvidence,
  type ExecutionLimits,
  newActivationId,
  newSandboxId,
  Secret,
  type StartRequest,
  type Substrate,
} from "@space/model";
import {
  GuestConnection,
  type GuestCredentials,
  type GuestProcess,
  type LaunchClient,
  type ProcessExit,
  type SpawnRequest,
} from "@space/spaced-guest";
import { GvisorSubstrate, requireRunsc } from "@space/substrate-gvisor";
import {
  type LauncherKind,
  NamespaceSubstrate,
  type NamespaceSubstrateOptions,
  requireCriu,
} from "@space/substrate-namespace";
import { runscTools } from "./needs-runsc.ts";

const random = { bytes: (length: number): Uint8Array => randomBytes(length) };

/** What guests are started by. */
export type GuestHostKind = LauncherKind | "gvisor" | "criu";
type HostSubstrate = Substrate & { readonly launchClient: LaunchClient };

interface HostOptions extends Pick<NamespaceSubstrateOptions, "orphanSeconds"> {
  /** A second host in one process. */
  readonly beside?: boolean;
}

export const testLimits: ExecutionLimits = {
  memoryBytes: 256 * 1024 * 1024,
  cpus: 1,
  processes: 64,
  diskBytes: 512 * 1024 * 1024,
};

/** Host user ids of this test process's guests: far from any worker's, and apart for tests that run at once. */
export const testUids: { readonly first: number; readonly ranges: number } = {
  first: 0x2400_0000 + (process.pid % 2000) * 16 * 65_536,
  ranges: 16,
};

export interface RunOptions extends Partial<Omit<SpawnRequest, "argv">> {
  /** Written to stdin, which is then closed. */
  readonly input?: string;
}

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit: ProcessExit;
}

/** One running guest. */
export class TestGuest {
  readonly activationId: ActivationId;
  readonly secret: Buffer;
  readonly evidence: EndpointEvidence;
  /** What it must prove to know now; a test that gives it another identity sets them. */
  credentials: GuestCredentials;

  constructor(activationId: ActivationId, secret: Buffer, evidence: EndpointEvidence) {
    this.activationId = activationId;
    this.secret = secret;
    this.evidence = evidence;
    this.credentials = { activationId, secret };
  }

  connect(): Promise<GuestConnection> {
    return GuestConnection.connect(this.evidence.socketPath, this.credentials);
  }

  /** Runs one operation on a connection of its own. */
  async using<T>(operation: (connection: GuestConnection) => Promise<T>): Promise<T> {
    const connection = await this.connect();
    try {
      return await operation(connection);
    } finally {
      connection.destroy();
    }
  }

  async run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const connection = await this.connect();
    let stdout = "";
    let stderr = "";
    const { input, ...rest } = options;
    try {
      const exit = await new Promise<ProcessExit>((onExit, onLost) => {
        const handlers = {
          onStdout: (chunk: Buffer): void => {
            stdout += chunk.toString();
          },
          onStderr: (chunk: Buffer): void => {
            stderr += chunk.toString();
          },
          onPty: (chunk: Buffer): void => {
            stdout += chunk.toString();
          },
          onExit,
          onLost,
        };
        connection
          .spawn({ ...asUser, stdin: input !== undefined, ...rest, argv }, handlers)
          .then((process) => {
            if (input === undefined) return;
            process.writeStdin(Buffer.from(input));
            process.closeStdin();
          }, onLost);
      });
      return { stdout, stderr, exit };
    } finally {
      connection.destroy();
    }
  }

  /** A shell script's output; fails the caller when it does not end with 0. */
  async shell(script: string, options: RunOptions = {}): Promise<string> {
    const { stdout, stderr, exit } = await this.run(["/bin/sh", "-c", script], options);
    if (exit.kind === "exited" && exit.code === 0) return stdout;
    throw new Error(`${script}: ${JSON.stringify(exit)} ${stderr}`);
  }
}

export const asUser: Omit<SpawnRequest, "argv"> = {
  env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/home/user" },
  cwd: "/home/user",
  uid: 1000,
  gid: 1000,
};

export const asRoot: Omit<SpawnRequest, "argv"> = {
  env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root" },
  cwd: "/",
  uid: 0,
  gid: 0,
};

/** A substrate with folders, user ids and control groups of its own, which `close` removes. */
export class GuestHost {
  readonly folder: string;
  readonly launcher: GuestHostKind;
  readonly #options: HostOptions;
  readonly #substrate: HostSubstrate;
  #current: HostSubstrate;

  private constructor(
    folder: string,
    { launcher, options }: { readonly launcher: GuestHostKind; readonly options: HostOptions },
    substrate: HostSubstrate,
  ) {
    this.folder = folder;
    this.launcher = launcher;
    this.#options = options;
    this.#substrate = substrate;
    this.#current = substrate;
  }

  static async open(launcher: GuestHostKind, options: HostOptions = {}): Promise<GuestHost> {
    const folder = mkdtempSync(join(tmpdir(), "space-guests-"));
    chmodSync(folder, 0o711);
    return new GuestHost(folder, { launcher, options }, await openSubstrate(folder, launcher, options));
  }

  get substrate(): HostSubstrate {
    return this.#current;
  }

  start(limits: Partial<ExecutionLimits> = {}, filesystem?: AsyncIterable<Uint8Array>): Promise<TestGuest> {
    return this.startWith({
      limits: { ...testLimits, ...limits },
      ...(filesystem === undefined ? {} : { filesystem }),
    });
  }

  /** With any part of the request replaced. */
  async startWith(request: Partial<StartRequest>): Promise<TestGuest> {
    const activationId = newActivationId(random);
    const secret = randomBytes(32);
    const { evidence } = await this.#current.start({
      sandboxId: newSandboxId(random),
      activationId,
      activationSecret: new Secret<Uint8Array>(secret),
      hostname: "test-guest",
      limits: testLimits,
      ...request,
    });
    return new TestGuest(activationId, secret, evidence);
  }

  /** What a daemon's restart is: the driver goes, the launcher and its guests stay, another driver comes. */
  async restart(): Promise<void> {
    await this.#current.close("leave");
    this.#current = await openSubstrate(this.folder, this.launcher, this.#options);
  }

  async close(): Promise<void> {
    await this.#current.close("stopAll");
    if (this.#substrate !== this.#current) await this.#substrate.close("leave");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function openSubstrate(
  folder: string,
  launcher: GuestHostKind,
  { beside = false, ...options }: HostOptions,
): Promise<HostSubstrate> {
  const common = {
    ...options,
    stateDir: join(folder, "state"),
    socketDir: join(folder, "s"),
    controlGroup: `space-test-${process.pid}${beside ? "-beside" : ""}`,
    socketUid: 0,
    reserveBytes: 1024 * 1024,
  };
  if (launcher === "gvisor")
    return GvisorSubstrate.open({ ...common, runsc: await requireRunsc(runscTools) });
  const { first, ranges } = testUids;
  if (launcher === "criu") {
    const uidRanges = ranges / 2;
    const firstUid = beside ? first + uidRanges * 65_536 : first;
    const criu = await requireCriu(runscTools);
    return NamespaceSubstrate.open({ ...common, firstUid, uidRanges, launcher: "native", criu });
  }
  return NamespaceSubstrate.open({ ...common, firstUid: first, uidRanges: ranges, launcher });
}

/** A process whose output is collected and waited for. */
export class WatchedProcess {
  output = "";
  exit: ProcessExit | undefined;
  process: GuestProcess | undefined;
  /** How often its connection has ended before it did. */
  lost = 0;
  readonly #waiting = new Set<() => void>();

  static async spawn(connection: GuestConnection, request: SpawnRequest): Promise<WatchedProcess> {
    const watched = new WatchedProcess();
    watched.process = await connection.spawn(request, watched.handlers);
    return watched;
  }

  readonly handlers = {
    onStdout: (chunk: Buffer): void => this.#add(chunk),
    onStderr: (chunk: Buffer): void => this.#add(chunk),
    onPty: (chunk: Buffer): void => this.#add(chunk),
    onExit: (exit: ProcessExit): void => {
      this.exit = exit;
      this.#wake();
    },
    onLost: (): void => {
      this.lost += 1;
      this.#wake();
    },
  };

  /** Resolves when the condition holds; rejects after the deadline. */
  until(condition: (watched: WatchedProcess) => boolean, deadlineMs = 10_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (!condition(this)) return;
        this.#waiting.delete(check);
        clearTimeout(deadline);
        resolve();
      };
      const deadline = setTimeout(() => {
        this.#waiting.delete(check);
        reject(
          new Error(`never came: ${JSON.stringify({ output: this.output.slice(-500), exit: this.exit })}`),
        );
      }, deadlineMs);
      this.#waiting.add(check);
      check();
    });
  }

  #add(chunk: Buffer): void {
    this.output += chunk.toString();
    this.#wake();
  }

  #wake(): void {
    for (const check of [...this.#waiting]) check();
  }
}

const lookAgainMs = 5;

/** Resolves when the condition holds, asked again after moments in which others may use the processor; rejects after the deadline. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 10_000,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
}
