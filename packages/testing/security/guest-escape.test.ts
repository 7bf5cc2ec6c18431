// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Written as the guest: untrusted code with every right that a guest can have, trying to reach the host, its neighbours,
// or its own keeper. Each attempt must be refused and leave the guest's keeper serving.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { after, before, describe, it } from "node:test";
import { GuestError, nativeLauncherPath } from "@space/spaced-guest";
import {
  asRoot,
  asUser,
  GuestHost,
  type GuestHostKind,
  type TestGuest,
  WatchedProcess,
} from "../src/guest-host.ts";
import { needsFor } from "../src/needs-host.ts";

const launchers: readonly GuestHostKind[] = existsSync(nativeLauncherPath)
  ? ["native", "criu", "portable"]
  : ["portable"];
const perl = (code: string): readonly string[] => ["perl", "-e", code];

/** Makes a system call from perl and prints its errno's name, or "ok". */
function systemCall(number: number, ...args: readonly (number | string)[]): string {
  // Strings lie in variables: perl passes no pointer to a constant.
  const words = args.map((arg, at) =>
    typeof arg === "string" ? `(my $a${at} = ${JSON.stringify(arg)})` : arg,
  );
  const list = [number, ...words].join(", ");
  return `my $r = syscall(${list}); print $r < 0 ? join(",", grep { $!{$_} } qw(EPERM ENOSYS EAFNOSUPPORT EACCES EINVAL EFAULT)) : "ok";`;
}

for (const launcher of launchers) {
  describe(`a hostile guest, ${launcher}`, { skip: needsFor(launcher), timeout: 180_000 }, () => {
    let host: GuestHost;
    let guest: TestGuest;
    before(async () => {
      host = await GuestHost.open(launcher);
      guest = await host.start();
    });
    after(() => host.close());
    hostFiles(() => ({ host, guest }), launcher);
    kernel(() => guest, launcher);
    keeper(() => guest);
    network(() => guest);
  });
}

interface Scene {
  readonly host: GuestHost;
  readonly guest: TestGuest;
}

function hostFiles(scene: () => Scene, launcher: GuestHostKind): void {
  it("reads no secret of the host through paths, symlinks or /proc", async () => {
    const { host, guest } = scene();
    const marker = `${host.folder}/marker`;
    writeFileSync(marker, "the host's secret", { mode: 0o644 });
    await guest.shell(
      `ln -sf ../../../../../../etc/shadow l1; ln -sf ${marker} l2; ln -sf /proc/1/root${marker} l3; ln -sf /proc/self/cwd/../../../..${marker} l4`,
    );
    const paths = [marker, `/../../../..${marker}`, "/home/user/l2", "/home/user/l3", "/home/user/l4"];
    for (const path of [
      ...paths,
      `/proc/1/root${marker}`,
      `/proc/1/cwd${marker}`,
      `/proc/self/root/..${marker}`,
    ]) {
      await guest.using((c) => assert.rejects(c.readFile(path, 1000), GuestError, path));
      assert.notDeepEqual((await guest.run(["cat", path], asRoot)).exit, { kind: "exited", code: 0 }, path);
    }
    const shadow = (await guest.using((c) => c.readFile("/home/user/l1", 10_000))).toString();
    assert.doesNotMatch(shadow, /\$/); // no password hash
    assert.deepEqual(
      (await guest.using((c) => c.list("/root")))
        .map((e) => e.path)
        .filter((p) => !/\.(bashrc|profile|bash_logout|cache)$/.test(p)),
      [],
    );
  });

  it("sees none of the host's paths, devices, keys or other users' processes", async () => {
    const { host, guest } = scene();
    const told = await guest.shell(
      "cat /proc/self/mountinfo /proc/mounts /proc/1/cmdline /proc/net/unix /proc/self/cgroup /proc/keys 2>/dev/null; ls -l /proc/[0-9]*/cwd /proc/[0-9]*/exe 2>/dev/null; ls /sys; env",
      asRoot,
    );
    assert.ok(!told.includes(host.folder) && !told.includes("/space-"), told);
    assert.doesNotMatch(told, /build\/native/);
    const readable = await guest.shell(
      "for f in /proc/kcore /proc/kmsg /proc/timer_list /proc/slabinfo /proc/vmallocinfo /proc/1/environ /proc/1/maps /proc/1/mem /proc/1/stack; do head -c1 $f >/dev/null 2>&1 && echo $f; done; true",
      asRoot,
    );
    assert.equal(readable, "");
    assert.doesNotMatch(
      await guest.shell("grep -v '^0*0 ' /proc/kallsyms 2>/dev/null | head -1 || true", asRoot),
      /\w/,
    );
    const pids = (await guest.shell("ls /proc | grep '^[0-9]' | wc -l")).trim();
    assert.ok(Number(pids) < 10);
    const devices = (await guest.using((c) => c.list("/dev"))).map((entry) => entry.path.slice(5));
    assert.deepEqual(
      devices.sort(),
      [
        "fd",
        "full",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
      ].sort(),
    );
  });

  it("changes nothing outside its own layer", async () => {
    const { guest } = scene();
    const targets = [
      "/usr/bin/evil",
      "/usr/local/evil",
      "/proc/sys/kernel/hostname",
      "/proc/sys/kernel/core_pattern",
      "/proc/sys/vm/drop_caches",
      "/proc/sys/net/ipv4/ip_forward",
      "/proc/sysrq-trigger",
      "/proc/sys/kernel/random/boot_id",
      "/dev/evil",
      "/proc/1/oom_score_adj",
      "/proc/1/comm",
      "/sys/evil",
    ];
    for (const path of targets) {
      const script = `echo 1 > ${path}`;
      const { exit } = await guest.run(["sh", "-c", script], asRoot);
      if (path === "/sys/evil") continue; // an empty folder of its own
      // The guest's root may rename such a pid 1 or offer it to the memory killer: only that guest suffers.
      if (path.startsWith("/proc/1/") && launcher !== "native") continue;
      // Its network is its own then, and leads nowhere.
      if (path.startsWith("/proc/sys/net/") && launcher === "criu") continue;
      assert.notDeepEqual(exit, { kind: "exited", code: 0 }, path);
      await guest.using((c) =>
        assert.rejects(c.writeFile(path, { uid: 0, gid: 0 }, Buffer.from("1")), GuestError, path),
      );
    }
    for (const script of [
      "mknod /tmp/sda b 254 0",
      "mknod /tmp/mem c 1 1",
      "ln /usr/bin/sh /tmp/sh",
      "chmod 4755 /usr/bin/sh",
      "hostname evil",
      "date -s 2001-01-01",
    ]) {
      assert.notDeepEqual(
        (await guest.run(["sh", "-c", script], asRoot)).exit,
        { kind: "exited", code: 0 },
        script,
      );
    }
    assert.ok(!existsSync("/usr/bin/evil"));
  });

  it("gains nothing from set-user-id programs or file capabilities", async () => {
    const { guest } = scene();
    await guest.shell("cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id", asRoot);
    assert.match(await guest.shell("/tmp/id -u"), /^1000\n$/);
    assert.notDeepEqual((await guest.run(["su", "-c", "id"], { input: "\n" })).exit, {
      kind: "exited",
      code: 0,
    });
  });
}

function kernel(guest: () => TestGuest, launcher: GuestHostKind): void {
  const refused: readonly (readonly [
    name: string,
    expected: string,
    number: number,
    ...args: (number | string)[],
  ])[] = [
    ["mount", "EPERM", 165, "none", "/tmp", "tmpfs", 0, 0],
    ["umount2", "EPERM", 166, "/proc", 2],
    ["pivot_root", "EPERM", 155, "/tmp", "/tmp"],
    ["chroot", "EPERM", 161, "/tmp"],
    ["open_tree", "EPERM", 428, -100, "/", 1],
    ["fsopen", "EPERM", 430, "tmpfs", 0],
    ["unshare user", "EPERM", 272, 0x1000_0000],
    ["unshare net", "EPERM", 272, 0x4000_0000],
    ["clone user", "EPERM", 56, 0x1000_0011, 0, 0, 0, 0],
    ["setns", "EPERM", 308, 0, 0],
    ["clone3", "ENOSYS", 435, 0, 0],
    ["io_uring_setup", "ENOSYS", 425, 1, 0],
    ["bpf", "EPERM", 321, 0, 0, 0],
    ["perf_event_open", "EPERM", 298, 0, 0, 0, 0, 0],
    ["userfaultfd", "EPERM", 323, 0],
    ["keyctl", "EPERM", 250, 0, 0],
    ["add_key", "EPERM", 248, "user", "a", "b", 1, -3],
    ["request_key", "EPERM", 249, "user", "a", 0, 0],
    ["init_module", "EPERM", 175, 0, 0, ""],
    ["kexec_load", "EPERM", 246, 0, 0, 0, 0],
    ["swapon", "EPERM", 167, "/tmp/x", 0],
    ["reboot", "EPERM", 169, 0, 0, 0, 0],
    ["settimeofday", "EPERM", 164, 0, 0],
    ["open_by_handle_at", "EPERM", 304, 0, 0, 0],
    ["x32 getpid", "ENOSYS", 0x4000_0027],
    ["unknown call", "ENOSYS", 999],
    ["vsock", "EAFNOSUPPORT", 41, 40, 1, 0],
    ["alg", "EAFNOSUPPORT", 41, 38, 5, 0],
    ["packet", "EAFNOSUPPORT", 41, 17, 3, 0],
    ["netfilter netlink", "EAFNOSUPPORT", 41, 16, 3, 12],
    ["raw", "EPERM", 41, 2, 3, 1],
    ["trace pid 1", "EPERM", 101, 16, 1, 0, 0],
    ["seize pid 1", "EPERM", 101, 0x4206, 1, 0, 0],
    ["read pid 1's memory", "EPERM", 310, 1, 0, 0, 0, 0, 0],
  ];
  const x64Only = process.arch === "x64" ? false : "the numbers are x86-64's";
  it("is refused the kernel's dangerous calls, as its root too", { skip: x64Only }, async () => {
    for (const user of [asRoot, asUser]) {
      for (const [name, expected, number, ...args] of refused) {
        const { stdout } = await guest().run(perl(`use Errno; ${systemCall(number, ...args)}`), user);
        const allowed = name === "read pid 1's memory" ? [expected, "ok"] : [expected];
        assert.ok(allowed.includes(stdout), `${name}: ${stdout}`);
      }
    }
  });

  it("cannot type into a terminal", { skip: launcher === "portable" }, async () => {
    const code = 'my $x = "x"; ioctl(STDIN, 0x5412, $x) and print "typed\\n"; print "errno $!{EPERM}\\n"';
    const connection = await guest().connect();
    const watched = await WatchedProcess.spawn(connection, {
      ...asUser,
      argv: perl(`use Errno; ${code}`),
      pty: { cols: 80, rows: 24 },
    });
    await watched.until(({ exit }) => exit !== undefined);
    assert.match(watched.output, /errno 1/);
    assert.doesNotMatch(watched.output, /typed/);
  });

  it("has no capability beyond the guest-root set, even as root", async () => {
    const caps = await guest().shell("grep ^Cap /proc/self/status | sort | tr -d '\\t'", asRoot);
    assert.equal(
      caps,
      "CapAmb:0000000000000000\nCapBnd:00000000000005fb\nCapEff:00000000000005fb\nCapInh:0000000000000000\nCapPrm:00000000000005fb\n",
    );
  });
}

function keeper(guest: () => TestGuest): void {
  it("cannot kill, stop or confuse its pid 1", async () => {
    const signals =
      "for s in KILL STOP TERM INT HUP SEGV USR1 CHLD 32 33 34 64; do kill -$s 1; done; kill -KILL -- -1";
    await guest().run(["sh", "-c", signals], asRoot);
    await guest().run(["sh", "-c", "kill -STOP 1; kill -KILL -1"], asUser);
    assert.equal((await guest().using((c) => c.stat("/"))).type, "directory");
    assert.equal(await guest().shell("echo alive"), "alive\n");
  });

  it("reaches no process outside", async () => {
    for (const pid of [process.pid, guest().evidence.guest.pid]) {
      assert.notDeepEqual((await guest().run(["sh", "-c", `kill -0 ${pid}`], asRoot)).exit, {
        kind: "exited",
        code: 0,
      });
    }
  });

  it("holds none of its keeper's descriptors", async () => {
    assert.equal(await guest().shell("ls /proc/self/fd", asRoot), "0\n1\n2\n3\n");
    const all = await guest().shell("readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2");
    assert.match(all, /^\/dev\/null\npipe:\[\d+\]\npipe:\[\d+\]\n$/);
  });
}

function network(guest: () => TestGuest): void {
  it("has a loopback and nothing else", async () => {
    const interfaces = await guest().shell("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
    assert.equal(interfaces, "lo\n");
    const connect =
      'use IO::Socket::INET; print IO::Socket::INET->new(PeerAddr => "1.1.1.1:53", Timeout => 2) ? "connected" : "no"';
    assert.equal((await guest().run(perl(connect))).stdout, "no");
  });

  it("reaches none of the host's abstract sockets", async () => {
    const name = `space-test-${process.pid}`;
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`\0${name}`, resolve));
    const code = `use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; print connect($s, pack("S a*", 1, "\\0${name}")) ? "connected" : "no"`;
    assert.equal((await guest().run(perl(code), asRoot)).stdout, "no");
    server.close();
  });
}
