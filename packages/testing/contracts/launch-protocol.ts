// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, describe, it, type TestContext } from "node:test";
import { peerCredentials, processStartTime } from "@space/platform-linux";
import {
  encodeFrame,
  GuestConnectionError,
  GuestError,
  type HostRecord,
  LaunchClient,
  type LaunchExit,
  LaunchFrame,
  portableDifferences,
  type RunRecord,
  type StartRecord,
} from "@space/spaced-guest";
import type { LauncherKind } from "@space/substrate-namespace";
import { eventually } from "../src/guest-host.ts";
import { LaunchRig } from "../src/launch-rig.ts";
import { needsRoot } from "../src/needs-root.ts";

/** The launch protocol (PROTOCOL.md section 2), against one of the launchers. */
export function launchProtocolContract(kind: LauncherKind): void {
  describe(`launch protocol, ${kind}`, { skip: needsRoot, timeout: 120_000 }, () => {
    let rig: LaunchRig;
    before(async () => {
      rig = await LaunchRig.open(kind);
    });
    afterEach(async () => {
      for (const { name } of await rig.client.list()) await rig.client.kill(name);
    });
    after(() => rig.close());
    peerCases(() => rig);
    guestCases(() => rig);
    bridgeCases(() => rig);
    runtimeCases(() => rig, kind === "native" || portableDifferences.runsRuntimes);
  });
  describe(`the end of a launcher, ${kind}`, { skip: needsRoot, timeout: 120_000 }, () => endCases(kind));
}

function launchError(code: string, step: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof GuestError, String(error));
    assert.deepEqual([error.code, error.step], [code, step]);
    return true;
  };
}

function nextExit(client: LaunchClient): Promise<LaunchExit> {
  return new Promise((resolve) => {
    const forget = client.onExit((exit) => {
      forget();
      resolve(exit);
    });
  });
}

function peerCases(rig: () => LaunchRig): void {
  it("serves root only, whatever the mode of its socket", async () => {
    assert.equal(statSync(rig().socketPath).mode & 0o777, 0o600);
    chmodSync(rig().socketPath, 0o666);
    const code = `use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "refused: $!";
      my $n = sysread($s, my $b, 1); print defined $n ? "end" : "reset";`;
    const stranger = spawnSync("perl", ["-e", code, rig().socketPath], {
      uid: 65_534,
      gid: 65_534,
      encoding: "utf8",
    });
    chmodSync(rig().socketPath, 0o600);
    assert.match(stranger.stdout, /^(end|reset)$/, stranger.stderr);
    assert.deepEqual(await rig().client.list(), []);
  });

  it("drops a client that breaks the framing or asks for what there is not, and keeps the others", async () => {
    const tooLong = Buffer.from([255, 255, 255, 255, 1]);
    for (const bytes of [tooLong, encodeFrame(200, Buffer.alloc(4)), encodeFrame(LaunchFrame.list)]) {
      const socket = connect(rig().socketPath);
      socket.on("error", () => undefined); // a reset is as good as an end
      socket.resume();
      socket.write(bytes);
      await once(socket, "close");
    }
    assert.deepEqual(await rig().client.list(), []);
  });
}

function guestCases(rig: () => LaunchRig): void {
  it("starts a guest whose pid 1 is the one that listens", async () => {
    const record = rig().record();
    const started = await rig().client.start(record);
    const connection = await rig().connect(record);
    const { pid, uid } = peerCredentials(connection.socket);
    assert.deepEqual([pid, uid], [started.hostPid, record.uidBase]);
    assert.equal(processStartTime(pid), String(started.startTime));
    assert.match(readFileSync(`/proc/${pid}/status`, "utf8"), /^NSpid:\t\d+\t1$/m);
    assert.deepEqual(
      [statSync(record.socketPath).uid, statSync(record.socketPath).mode & 0o777],
      [record.socketUid, 0o600],
    );
    const expected = { name: record.activationId, running: true, ...started };
    assert.deepEqual(await rig().client.list(), [expected]);
    connection.destroy();
  });

  it("gives the guest what the record says", async () => {
    const data = join(rig().folder, "data");
    mkdirSync(data, { recursive: true });
    const record = rig().record({ fileLimitBytes: 4096 });
    const target = join(rig().folder, "lower/run/data");
    mkdirSync(target, { recursive: true });
    const binds = [...record.binds, { source: data, target: "run/data", readOnly: false }];
    await rig().client.start({ ...record, binds });
    const connection = await rig().connect(record);
    const read = async (path: string): Promise<string> => (await connection.readFile(path, 4096)).toString();
    assert.equal(await read("/proc/sys/kernel/random/boot_id"), `${record.bootId}\n`);
    assert.equal(await read("/proc/sys/kernel/hostname"), `${record.hostname}\n`);
    assert.equal((await connection.stat("/")).uid, 0);
    assert.equal((await connection.stat("/run/data")).uid, 0); // id-mapped: the host's root is the guest's
    await connection.writeFile("/run/data/kept", { uid: 0, gid: 0 }, Buffer.from("x"));
    assert.equal(statSync(join(data, "kept")).uid, 0);
    const large = Buffer.alloc(8192);
    await assert.rejects(
      connection.writeFile("/tmp/large", { uid: 0, gid: 0 }, large),
      launchError("EFBIG", "write"),
    );
    const memory = connection.writeFile("/dev/shm/large", { uid: 0, gid: 0 }, Buffer.alloc(4096));
    assert.equal((await memory).sizeBytes, 4096);
    assert.ok(!(await read("/proc/net/unix")).includes(record.socketPath));
    connection.destroy();
  });

  it("says at which step a start failed, and forgets it", async () => {
    const refusals: readonly (readonly [Partial<StartRecord>, string, string])[] = [
      [{ activationId: "" }, "EINVAL", "name"],
      [{ activationId: "x".repeat(257) }, "EINVAL", "name"],
      [{ uidBase: 65_535 }, "EINVAL", "record"],
      [{ uidBase: 0xffff_ffff }, "EINVAL", "record"],
      [{ socketPath: join(rig().folder, "x".repeat(120)) }, "ENAMETOOLONG", "socket"],
      [{ socketPath: "/missing/guest" }, "ENOENT", "socket"],
      [{ binds: [{ source: "/missing", target: "usr", readOnly: true }] }, "ENOENT", "bind"],
      [{ binds: [{ source: "/usr", target: "missing", readOnly: true }] }, "ENOENT", "bind-target"],
      [{ binds: [{ source: "/usr", target: "bin", readOnly: true }] }, "EINVAL", "bind-target"],
      [{ binds: [{ source: "/usr", target: "bin/sub", readOnly: true }] }, "ELOOP", "bind-target"],
      [{ lowerDir: "/missing" }, "ENOENT", "lower"],
      [{ upperDir: "/missing" }, "ENOENT", "layers"],
      [{ hostname: "x".repeat(65) }, "EINVAL", "hostname"],
    ];
    for (const [changes, code, step] of refusals) {
      await assert.rejects(rig().client.start(rig().record(changes)), launchError(code, step));
      await eventually("it to be forgotten", async () => (await rig().client.list()).length === 0);
    }
    const missingGroup = rig().record({ cgroupFiles: ["/sys/fs/cgroup/missing/cgroup.procs"] });
    await assert.rejects(
      rig().client.start(missingGroup),
      (error) => error instanceof GuestError && error.step === "cgroup",
    );
  });

  it("gives a name to one guest at a time, and again after its end", async () => {
    const record = rig().record();
    const results = await Promise.allSettled([rig().client.start(record), rig().client.start(record)]);
    const refused = results.find(({ status }) => status === "rejected");
    assert.ok(refused?.status === "rejected" && launchError("EEXIST", "name")(refused.reason));
    await rig().client.kill(record.activationId);
    await rig().client.start({ ...rig().record(), activationId: record.activationId });
  });

  it("kills a guest with all it runs, and tells every client", async () => {
    const other = await LaunchClient.connect(rig().socketPath);
    const record = rig().record();
    const { hostPid } = await rig().client.start(record);
    const connection = await rig().connect(record);
    const lost = Promise.withResolvers<void>();
    await connection.spawn(
      { argv: ["sleep", "600"], env: { PATH: "/usr/bin" }, cwd: "/", uid: 1000, gid: 1000 },
      { onExit: () => undefined, onLost: () => lost.resolve() },
    );
    const exits = Promise.all([nextExit(rig().client), nextExit(other)]);
    await rig().client.kill(record.activationId);
    const expected = { name: record.activationId, hostPid, waitStatus: 9 };
    assert.deepEqual(await exits, [expected, expected]);
    await lost.promise;
    assert.ok(!existsSync(`/proc/${hostPid}`));
    assert.ok(!ownedBy(record.uidBase));
    await Promise.all([rig().client.kill(record.activationId), rig().client.kill("never-was")]);
    other.close();
  });
}

/** Whether any process of the host has one of these user ids. */
function ownedBy(first: number, count = 65_536): boolean {
  return readdirSync("/proc").some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const uid = Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
      return uid >= first && uid < first + count;
    } catch {
      return false; // it has ended
    }
  });
}

function bridgeCases(rig: () => LaunchRig): void {
  const log = (): string => readFileSync(join(rig().folder, "bridge.log"), "utf8");
  const start = async (script: string, changes: Partial<HostRecord> = {}): Promise<string> => {
    const exit = nextExit(rig().client);
    const before = existsSync(join(rig().folder, "bridge.log")) ? log().length : 0;
    await rig().client.host(rig().bridge(script, changes));
    assert.equal((await exit).name, "bridge");
    return log().slice(before);
  };

  it("starts a bridge as its user, with nothing of root's and no network", async () => {
    const script = `exec >&2; id -u; id -g; id -G; echo "$GREETING"; grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs):' /proc/self/status | tr -s '\\t' ' ';
      tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo session; umask; readlink /proc/$$/fd/0; pwd`;
    const none = "0000000000000000";
    assert.equal(
      await start(script),
      `64123\n64124\n64124\nhello there\nCapPrm: ${none}\nCapEff: ${none}\nCapBnd: ${none}\nCapAmb: ${none}\nNoNewPrivs: 1\nlo\nsession\n0077\n/dev/null\n/\n`,
    );
  });

  it("shows a bridge nothing but its binds, each at its own place", async () => {
    const shared = join(rig().folder, "shared");
    mkdirSync(shared, { mode: 0o777, recursive: true });
    chmodSync(shared, 0o777);
    const binds = [
      { path: "/usr", readOnly: true },
      { path: "/proc", readOnly: true },
      { path: shared, readOnly: false },
    ];
    const script = `exec >&2; ls -A / | tr '\\n' ' '; echo; echo made > ${shared}/made; mkdir /new || echo sealed; ls -A ${rig().folder}`;
    const seen = await start(script, { binds });
    const top = rig().folder.split("/")[1] ?? "";
    const refusal = "mkdir: cannot create directory '/new': Read-only file system";
    assert.match(
      seen.replaceAll(/[‘’]/g, "'"),
      new RegExp(`^bin lib lib64 proc sbin ${top} usr \n${refusal}\nsealed\nshared\n$`),
    );
    assert.equal(readFileSync(join(shared, "made"), "utf8"), "made\n");
  });

  it("hands no descriptor on", async () => {
    assert.equal(await start("ls /proc/self/fd >&2"), "0\n1\n2\n3\n");
  });

  it("says why a bridge could not be started", async () => {
    const refusals: readonly (readonly [Partial<HostRecord>, string, string])[] = [
      [{ uid: 0 }, "EINVAL", "record"],
      [{ gid: 0 }, "EINVAL", "record"],
      [{ argv: [] }, "EINVAL", "record"],
      [{ argv: ["/missing/program"] }, "ENOENT", "exec"],
      [{ stderrPath: "/missing/log" }, "ENOENT", "log"],
      [{ binds: [{ path: "/missing", readOnly: true }] }, "ENOENT", "bind"],
    ];
    for (const [changes, code, step] of refusals) {
      await assert.rejects(rig().client.host(rig().bridge("true", changes)), launchError(code, step));
    }
  });

  it("kills a bridge by its name", async () => {
    const { hostPid } = await rig().client.host(rig().bridge("exec sleep 600"));
    const exit = nextExit(rig().client);
    await rig().client.kill("bridge");
    assert.deepEqual(await exit, { name: "bridge", hostPid, waitStatus: 9 });
  });
}

function runtimeCases(rig: () => LaunchRig, supported: boolean): void {
  const record = (script: string, changes: Partial<RunRecord> = {}): RunRecord => ({
    activationId: "act_runtime",
    argv: ["/bin/sh", "-c", script],
    env: { PATH: "/usr/bin:/bin", WORD: "told" },
    stderrPath: join(rig().folder, "runtime.log"),
    cgroupFiles: [],
    ...changes,
  });

  it("runs a sandbox's runtime as root, with nothing of the launcher's, and tells its end", async (t) => {
    if (!supported) return t.skip("the portable launcher runs none");
    const exit = nextExit(rig().client);
    const script =
      "id -u; echo $WORD >&2; ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status; exit 3";
    const { hostPid } = await rig().client.run(record(script));
    assert.deepEqual(await exit, { name: "act_runtime", hostPid, waitStatus: 3 << 8 });
    const none = "0000000000000000";
    assert.equal(
      readFileSync(join(rig().folder, "runtime.log"), "utf8"),
      `0\ntold\n0\n1\n2\n3\nSigBlk:\t${none}\nSigIgn:\t${none}\n`,
    );
  });

  it("lists a runtime as the activation, and kills it by that name", async (t) => {
    if (!supported) return t.skip("the portable launcher runs none");
    const started = await rig().client.run(record("exec sleep 600"));
    assert.deepEqual(await rig().client.list(), [{ name: "act_runtime", running: true, ...started }]);
    await assert.rejects(rig().client.run(record("true")), launchError("EEXIST", "name"));
    await rig().client.kill("act_runtime");
    assert.deepEqual(await rig().client.list(), []);
  });

  it("says why a runtime could not be started", async (t) => {
    if (!supported) {
      await assert.rejects(rig().client.run(record("true")), launchError("ENOSYS", "run"));
      return t.diagnostic("the portable launcher runs none, and says so");
    }
    const refusals: readonly (readonly [Partial<RunRecord>, string, string])[] = [
      [{ argv: [] }, "EINVAL", "record"],
      [{ argv: ["/missing/program"] }, "ENOENT", "exec"],
      [{ stderrPath: "/missing/log" }, "ENOENT", "log"],
      [{ cgroupFiles: ["/missing/group"] }, "ENOENT", "cgroup"],
    ];
    for (const [changes, code, step] of refusals)
      await assert.rejects(rig().client.run(record("true", changes)), launchError(code, step));
  });
}

function endCases(kind: LauncherKind): void {
  const mounts = (): string => readFileSync("/proc/self/mountinfo", "utf8");

  async function populated(
    test: TestContext,
    options: readonly string[] = [],
  ): Promise<{ rig: LaunchRig; record: StartRecord }> {
    const rig = await LaunchRig.open(kind, options);
    test.after(() => rig.close());
    const record = rig.record();
    await rig.client.start(record);
    await rig.client.host(rig.bridge("exec sleep 600"));
    return { rig, record };
  }

  const nothingLeft = (record: StartRecord): boolean =>
    !ownedBy(record.uidBase) &&
    !ownedBy(64_123, 1) &&
    !mounts().includes("space-launch-") &&
    !readFileSync("/proc/net/unix", "utf8").includes(record.socketPath);

  it("leaves nothing behind when it is told to quit", async (t) => {
    const { rig, record } = await populated(t);
    const other = await LaunchClient.connect(rig.socketPath);
    const closed = new Promise<GuestConnectionError>((resolve) => other.onClose(resolve));
    const exited = once(rig.process, "exit");
    await rig.client.quit();
    assert.deepEqual(await exited, [0, null]);
    assert.ok((await closed) instanceof GuestConnectionError);
    assert.ok(nothingLeft(record));
    const left = readdirSync(rig.folder).filter(
      (name) => name.startsWith("launch") && !name.endsWith(".lock"),
    );
    assert.deepEqual(left, []);
  });

  it("ends with all it started when no worker has come back for so long", async (t) => {
    const { rig, record } = await populated(t, ["--orphan-seconds", "1"]);
    const exited = once(rig.process, "exit");
    rig.client.close();
    assert.deepEqual(await exited, [0, null]);
    assert.ok(nothingLeft(record));
  });

  it("takes everything with it when it is killed, and its successor takes its place", async (t) => {
    const { rig, record } = await populated(t);
    rig.process.kill("SIGKILL");
    await once(rig.process, "exit");
    await eventually("everything to end", () => nothingLeft(record));
  });

  it("refuses to be the second launcher at one socket", async (t) => {
    const rig = await LaunchRig.open(kind);
    t.after(() => rig.close());
    const second = spawnSync(rig.process.spawnfile, [...rig.process.spawnargs.slice(1)], {
      encoding: "utf8",
      timeout: 10_000,
    });
    assert.equal(second.status, 1, second.stderr);
    assert.deepEqual(await rig.client.list(), []);
  });
}
