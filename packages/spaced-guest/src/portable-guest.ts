// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A portable guest's pid 1, as the guest's root in namespaces that `portable-start.ts` has prepared. It changes into the
// guest's tree itself: nothing that the guest could have planted there is loaded before the guest's own confinement.

import { closeSync, openSync } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import {
  ControlFd,
  ControlFrame,
  decodeGuestOrders,
  failStart,
  type GuestOrders,
  receiveOrders,
  reportReady,
} from "./portable/control-channel.ts";
import { replaceDescriptor } from "./portable/descriptors.ts";
import { GuestService } from "./portable/guest-service.ts";
import { changeRoot, MountFlag, mountAt } from "./portable/mount-calls.ts";
import { adoptOrphans } from "./portable/orphans.ts";
import {
  applyFilter,
  dieWithParent,
  dropBoundingSet,
  forbidNewPrivileges,
  guestRootCapabilities,
  hideMemory,
  limitFiles,
  setCapabilities,
} from "./portable/privileges.ts";
import { stage } from "./portable/stage.ts";

const maxConnections = 1024;
const backlog = 128;

function confine(orders: GuestOrders): void {
  // A copy of the tree, because what this mount namespace inherited cannot become a root.
  const copy = MountFlag.bind | MountFlag.recursive;
  mountAt({ type: null, source: stage.root, target: stage.root, flags: copy }, "pivot");
  changeRoot(stage.root);
  const nothing = openSync("/dev/null", "r+");
  for (const fd of [0, 1, 2]) replaceDescriptor(nothing, fd);
  closeSync(nothing);
  closeSync(ControlFd.userNamespace);
  const capabilities = Object.values(guestRootCapabilities);
  limitFiles(orders.fileLimitBytes);
  dropBoundingSet(capabilities);
  setCapabilities(capabilities);
  forbidNewPrivileges();
  hideMemory();
  applyFilter(orders.filter);
  process.umask(0o022);
  process.title = "space-guest";
  dieWithParent();
}

function serve({ activationId, secret }: GuestOrders): void {
  const service = new GuestService(activationId, secret);
  const server = createServer({ allowHalfOpen: true }, (socket) => void service.serve(socket));
  server.maxConnections = maxConnections;
  server.on("error", failStart);
  // Who calls listen is whom SO_PEERCRED names at the other end: this process, as the guest's mapped root.
  server.listen({ fd: ControlFd.listener, backlog }, () => {
    reportReady();
    closeSync(ControlFd.channel);
  });
}

try {
  const orders = decodeGuestOrders(receiveOrders(ControlFrame.guest));
  confine(orders);
  adoptOrphans();
  await stat("/"); // starts the threads for file operations, while the guest's limit has room for them
  serve(orders);
} catch (error) {
  failStart(error);
}
