// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import {
  encodeFrame,
  GuestConnection,
  GuestConnectionError,
  GuestError,
  maxFrameBytes,
  type ProcessExit,
} from "@space/spaced-guest";
import {
  asRoot,
  asUser,
  eventually,
  GuestHost,
  type GuestHostKind,
  type TestGuest,
  WatchedProcess,
} from "../src/guest-host.ts";
import { needsFor } from "../src/needs-host.ts";
import { fileCases, guestError, treeCases } from "./guest-files.ts";
import { identityCases } from "./guest-identity.ts";
import { poolCases } from "./guest-pools.ts";
import { pressureCases } from "./guest-pressure.ts";
import { terminalCases } from "./guest-terminals.ts";
import { crowdedWatchCases, watchCases } from "./guest-watches.ts";

/** What differs between the ways in which a guest may run. */
export interface GuestDifferences {
  readonly terminals: boolean;
  readonly watches: boolean;
  readonly oomScore: number;
  /** The last lines of a process's status, of those that are looked at. */
  readonly confinement: string;
  /** The error for an argument that is too long. */
  readonly tooLong: string;
  /** Another suite holds what is the same program's everywhere, and slow here. */
  readonly quick: boolean;
}

/** For all cases together, on one slow and busy processor: each case has limits of its own. */
const suiteLimitMs = 300_000;

/** The guest protocol (PROTOCOL.md section 1), against a real guest started in one of the ways. */
export function guestProtocolContract(kind: GuestHostKind, differences: GuestDifferences): void {
  const skip = needsFor(kind);
  describe(`guest protocol, ${kind}`, { skip, timeout: suiteLimitMs }, () => {
    let host: GuestHost;
    let guest: TestGuest;
    before(async () => {
      host = await GuestHost.open(kind);
      guest = await host.start();
    });
    after(() => host.close());
    const run = () => guest;
    const { terminals, watches, quick } = differences;
    helloCases(run, kind === "gvisor" || kind === "criu");
    fileCases(run);
    processCases(run, differences);
    streamCases(run);
    identityCases(() => host);
    watchCases(run, watches);
    terminalCases(() => host, run, terminals);
    if (quick) return;
    treeCases(run);
    poolCases(run);
    pressureCases(run);
    crowdedWatchCases(run, watches);
  });
}

function helloCases(guest: () => TestGuest, inside: boolean): void {
  it("proves the activation, and closes on a wrong secret", async () => {
    await guest().using((connection) => connection.stat("/"));
    const { activationId } = guest();
    const wrong = { activationId, secret: randomBytes(32) };
    await assert.rejects(
      GuestConnection.connect(guest().evidence.socketPath, wrong),
      (error) => error instanceof GuestConnectionError && error.fault === "unverified",
    );
  });

  it("closes a connection that begins with anything but HELLO, or breaks the framing, and goes on serving", async () => {
    const tooLong = Buffer.alloc(5);
    tooLong.writeUInt32LE(maxFrameBytes + 1);
    const rude = [
      encodeFrame(32, Buffer.from("\u0001\0\0\0/")),
      encodeFrame(1, Buffer.alloc(31)),
      tooLong,
      randomBytes(4096),
    ];
    for (const bytes of rude) {
      await new Promise<void>((resolve) => {
        const socket = connect(guest().evidence.socketPath);
        socket.on("error", () => undefined); // reset is as good as closed
        socket.on("close", () => resolve());
        socket.write(bytes);
        if (bytes.length === 4096) socket.end();
        socket.resume();
      });
    }
    await guest().using((connection) => connection.stat("/"));
  });

  it("lets go of its socket only where it can be saved", async (t) => {
    if (inside) return t.skip("it can; what follows is in substrate-memory.ts");
    await guest().using(async (connection) => {
      await assert.rejects(connection.quiesce(), guestError("ENOSYS"));
      assert.equal((await connection.stat("/")).type, "directory");
    });
  });

  it("closes on unknown operations and on payloads that lie about their lengths", async () => {
    const lies = [
      encodeFrame(99),
      encodeFrame(32, Buffer.from([255, 255, 255, 255, 47])),
      encodeFrame(32, Buffer.from([2, 0, 0, 0, 47, 0])), // a NUL in a path
      encodeFrame(41, randomBytes(64)),
    ];
    for (const bytes of lies) {
      const connection = await guest().connect();
      const closed = new Promise<void>((resolve) => connection.onClose(resolve));
      connection.socket.write(bytes);
      if (bytes[4] === 41) connection.destroy();
      await closed;
    }
    await guest().using((connection) => connection.stat("/"));
  });
}

function processCases(guest: () => TestGuest, { oomScore, confinement, tooLong }: GuestDifferences): void {
  it("runs a process with its user, folder, environment and output", async () => {
    const script = "id -u; id -g; pwd; echo $X; umask; cat /proc/self/oom_score_adj; echo oops >&2; exit 7";
    const result = await guest().run(["sh", "-c", script], { env: { PATH: "/bin", X: "y z" }, cwd: "/tmp" });
    assert.deepEqual(result, {
      stdout: `1000\n1000\n/tmp\ny z\n0022\n${oomScore}\n`,
      stderr: "oops\n",
      exit: { kind: "exited", code: 7 },
    });
  });

  it("gives groups, and no capabilities to anybody but root", async () => {
    const status =
      "grep -E '^(Cap(Eff|Prm|Amb)|Groups|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t ' ' '";
    const none = "0000000000000000";
    assert.equal(
      await guest().shell(status, { groups: [27, 100] }),
      `Groups: 27 100 \nCapPrm: ${none}\nCapEff: ${none}\n${confinement}`,
    );
    assert.match(await guest().shell(status, asRoot), /CapEff: 00000000000005fb\n/);
  });

  it("takes the next request on the connection of a process that has ended, and drops what came too late for it", async () => {
    await guest().using(async (connection) => {
      for (const code of [3, 4]) {
        const { promise: exit, resolve: onExit, reject: onLost } = Promise.withResolvers<ProcessExit>();
        const argv = ["sh", "-c", `read line; exit ${code}`];
        const process = await connection.spawn({ ...asUser, argv, stdin: true }, { onExit, onLost });
        assert.equal(connection.usable, false);
        process.writeStdin(Buffer.from("go\nmore that is read by nobody\n"));
        assert.deepEqual(await exit, { kind: "exited", code });
        const late = [
          encodeFrame(66, Buffer.from([9, 0, 0, 0])),
          encodeFrame(64, Buffer.from("x")),
          encodeFrame(65),
        ];
        connection.socket.write(Buffer.concat(late));
        assert.equal(connection.usable, true);
        assert.equal((await connection.stat("/tmp")).type, "directory");
        process.destroy(); // it has ended: the connection is not its own any more
        assert.equal(connection.usable, true);
      }
    });
  });

  it("reports signals as such", async () => {
    const { exit } = await guest().run(["sh", "-c", "kill -TERM $$"]);
    assert.deepEqual(exit, { kind: "signalled", signal: 15 });
  });

  it("reports why a process could not be started, and stays usable", async () => {
    await guest().using(async (connection) => {
      const handlers = { onExit: () => assert.fail("it ran"), onLost: () => undefined };
      const refuse = (argv: string[], more: object, code: string, step: string) =>
        assert.rejects(
          connection.spawn({ ...asUser, ...more, argv }, handlers),
          (error) => error instanceof GuestError && error.code === code && error.step === step,
        );
      await refuse(["no-such-program"], {}, "ENOENT", "exec");
      await refuse(["/etc/passwd"], {}, "EACCES", "exec");
      await refuse(["true"], { cwd: "/missing" }, "ENOENT", "chdir");
      await refuse(["true"], { cwd: "/root" }, "EACCES", "chdir");
      await refuse(["true", "x".repeat(200_000)], {}, tooLong, "exec");
      await refuse(["true", "x".repeat(2_000_000)], {}, "E2BIG", "exec");
      assert.equal((await connection.stat("/")).type, "directory");
    });
  });

  it("keeps output that a background child still writes for a moment, and does not wait for it", async () => {
    const started = performance.now();
    const { stdout, exit } = await guest().run(["sh", "-c", "sleep 600 & echo first"]);
    assert.deepEqual([stdout, exit], ["first\n", { kind: "exited", code: 0 }]);
    assert.ok(performance.now() - started < 5_000);
    await guest().using((connection) => connection.killAll(9));
  });

  it("signals one process, and kills it with its group when the connection ends", async () => {
    const connection = await guest().connect();
    const trap = "trap 'echo caught' USR1; echo ready; while :; do sleep 0.02; done";
    const watched = await WatchedProcess.spawn(connection, { ...asUser, argv: ["sh", "-c", trap] });
    await watched.until(({ output }) => output.includes("ready"));
    watched.process?.signal(10);
    await watched.until(({ output }) => output.includes("caught"));
    const pid = watched.process?.pid ?? 0;
    connection.destroy();
    await eventually("the process to end", async () => !(await exists(guest(), `/proc/${pid}`)));
  });

  it("ends every process but pid 1", async () => {
    const connection = await guest().connect();
    const watched = await WatchedProcess.spawn(connection, { ...asUser, argv: ["sleep", "600"] });
    await guest().using((other) => other.killAll(9));
    await watched.until(({ exit }) => exit !== undefined);
    assert.deepEqual(watched.exit, { kind: "signalled", signal: 9 });
    await guest().using((other) => other.stat("/"));
  });

  it("reaps orphans", async () => {
    await guest().shell("for i in 1 2 3 4 5; do (sleep 0.01 &) ; done");
    await eventually("no zombies", async () => !(await guest().shell("ps -eo stat || true")).includes("Z"));
  });
}

async function exists(guest: TestGuest, path: string): Promise<boolean> {
  return guest.using((connection) =>
    connection.stat(path).then(
      () => true,
      () => false,
    ),
  );
}

function streamCases(guest: () => TestGuest): void {
  it("feeds stdin beyond every buffer and ends it", async () => {
    const connection = await guest().connect();
    const content = randomBytes(5_000_000);
    let received = 0;
    let drain: (() => void) | undefined;
    const exited = new Promise<number>((resolve, reject) => {
      void connection
        .spawn(
          { ...asUser, argv: ["cat"], stdin: true },
          {
            onStdout: (chunk) => {
              assert.ok(content.subarray(received, received + chunk.length).equals(chunk));
              received += chunk.length;
            },
            onStdinDrain: () => drain?.(),
            onExit: () => resolve(received),
            onLost: reject,
          },
        )
        .then(async (process) => {
          for (let at = 0; at < content.length; at += 100_000) {
            const wait = new Promise<void>((next) => {
              drain = next;
            });
            if (!process.writeStdin(content.subarray(at, at + 100_000))) await wait;
          }
          process.closeStdin();
        });
    });
    assert.equal(await exited, content.length);
  });

  it("drops stdin that nobody reads any more", async () => {
    const { exit } = await guest().run(["sh", "-c", "exec <&-; sleep 0.05; exit 3"], {
      input: "x".repeat(1_000_000),
    });
    assert.deepEqual(exit, { kind: "exited", code: 3 });
  });

  it("takes signals while a process does not read its stdin and nobody reads its output", async () => {
    const connection = await guest().connect();
    connection.pause();
    const started = WatchedProcess.spawn(connection, {
      ...asUser,
      argv: ["sh", "-c", "yes; :"],
      stdin: true,
    });
    connection.resume();
    const watched = await started;
    watched.process?.pause();
    watched.process?.writeStdin(randomBytes(1_000_000));
    watched.process?.signal(9);
    await guest().using((other) => other.stat("/"));
    watched.process?.resume();
    await watched.until(({ exit }) => exit !== undefined);
    await guest().using((other) => other.killAll(9));
  });

  it("lets one flood and another speak", async () => {
    const script = "(yes flood | head -c 3000000) & (sleep 0.05; echo spoke >&2); wait";
    const { stdout, stderr } = await guest().run(["sh", "-c", script]);
    assert.deepEqual([stdout.length, stderr], [3_000_000, "spoke\n"]);
  });

  it("dials a port of the guest, passes half-closes on, and refuses closed ports", async () => {
    const server = await guest().connect();
    const perl = `use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 80, Listen => 1) or die $!;
      $| = 1; print "listening\\n"; my $c = $s->accept; local $/; my $all = <$c>; print $c "got ", length($all); close $c;`;
    const watched = await WatchedProcess.spawn(server, { ...asUser, argv: ["perl", "-e", perl] });
    await watched.until(({ output }) => output.includes("listening"));
    const connection = await guest().connect();
    const pipe = await connection.dial(80);
    let answer = "";
    pipe.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    pipe.resume();
    pipe.end(randomBytes(1_234_567));
    await new Promise((resolve) => pipe.once("close", resolve));
    assert.equal(answer, "got 1234567");
    await guest().using(async (other) => {
      await assert.rejects(other.dial(9), guestError("ECONNREFUSED"));
      assert.equal((await other.stat("/")).type, "directory");
    });
  });
}
