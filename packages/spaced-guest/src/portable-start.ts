// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The first stage of everything that the portable launcher starts: the host's root, in fresh namespaces. It assembles
// the file tree and becomes the next program, by exec, so that the process that was started stays the one that runs.

import { openSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { PayloadReader } from "./frames.ts";
import { decodeHost, decodeStart } from "./launch-protocol.ts";
import { enterBridgeRoot } from "./portable/bridge-root.ts";
import {
  ControlFd,
  ControlFrame,
  failStart,
  receiveOrders,
  reportReady,
} from "./portable/control-channel.ts";
import { keepOverExec, raiseLoopback, replaceDescriptor, setHostName } from "./portable/descriptors.ts";
import { buildGuestRoot } from "./portable/guest-root.ts";
import { during } from "./portable/libc.ts";

import {
  applyFilter,
  becomeUser,
  dieWithParent,
  dropBoundingSet,
  forbidNewPrivileges,
  guestRootCapabilities,
  setCapabilities,
  withoutIoUring,
} from "./portable/privileges.ts";
import { becomeProgram, findProgram, toolPath } from "./portable/program.ts";
import { stage } from "./portable/stage.ts";

// Each counts against the guest's limit of processes; a stuck file operation holds one.
const fileThreads = 4;
const compilerThreads = 1;

function startGuest(payload: PayloadReader): void {
  const record = decodeStart(payload);
  raiseLoopback();
  // The network namespace is not the guest's own, so its root could bind no low port without this.
  during("loopback", () => writeFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
  setHostName(record.hostname);
  buildGuestRoot(record, ControlFd.userNamespace);
  // The guests' filter refuses io_uring, and Node cannot go on without what it has begun with: it must not begin.
  applyFilter(withoutIoUring);
  for (const fd of Object.values(ControlFd)) keepOverExec(fd);
  // Through the guest's user namespace into a mount namespace that it owns, for the change of root and nothing else.
  const capabilities = [...Object.keys(guestRootCapabilities), "sys_admin"].map((name) => `+${name}`);
  const enter = [`--user=/proc/self/fd/${ControlFd.userNamespace}`, "--setuid", "0", "--setgid", "0", "--"];
  const confine = [
    "--no-new-privs",
    "--inh-caps",
    "-all",
    "--bounding-set",
    ["-all", ...capabilities].join(","),
  ];
  const node = [
    join(stage.node, basename(process.execPath)),
    "--disable-sigusr1",
    `--v8-pool-size=${compilerThreads}`,
  ];
  becomeProgram(
    [
      ...[findProgram("nsenter", toolPath), ...enter],
      ...[findProgram("unshare", toolPath), "--mount", "--propagation", "private", "--"],
      ...[findProgram("setpriv", toolPath), ...confine, "--"],
      ...[...node, join(stage.code, "src/portable-guest.js")],
    ],
    [`PATH=${toolPath}`, `UV_THREADPOOL_SIZE=${fileThreads}`],
  );
}

function startBridge(payload: PayloadReader): void {
  const record = decodeHost(payload);
  const { uid, gid, argv, env, stderrPath, binds } = record;
  const log = during("log", () => openSync(stderrPath, "a", 0o640));
  const nothing = openSync("/dev/null", "r+");
  if (binds.length > 0) enterBridgeRoot(binds);
  process.umask(0o077);
  dropBoundingSet([]);
  becomeUser(uid, gid);
  setCapabilities([]);
  forbidNewPrivileges();
  dieWithParent();
  process.chdir("/");
  for (const fd of [0, 1]) replaceDescriptor(nothing, fd);
  replaceDescriptor(log, 2);
  reportReady(); // what is said after it is a failed exec; a silent end is success
  becomeProgram(
    argv,
    Object.entries(env).map(([name, value]) => `${name}=${value}`),
  );
}

try {
  const payload = receiveOrders(ControlFrame.record);
  payload.u32(); // the request's number
  if (process.argv[2] === "guest") startGuest(payload);
  else startBridge(payload);
} catch (error) {
  failStart(error);
}
