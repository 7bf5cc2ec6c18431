// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of `spaced-host`: confined, one per worker, outlives the worker daemon. Started by the launcher.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { SpaceError } from "@space/model";
import { peerCredentials, peerProcess, processStartTime } from "@space/platform-linux";
import { type ConnectedGuest, createSpacedHost, type PeerEvidence } from "@space/spaced-host";
import { errorLog } from "../host/error-log.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { readDaemonNote } from "../worker/daemon-note.ts";
import { readBridgeConfig } from "./bridge-config.ts";

const config = readBridgeConfig(process.argv[2] ?? "");
const log = errorLog();

const host = createSpacedHost(
  { daemon: { uid: 0 } },
  { clock: systemClock, random: systemRandom, connectGuest, onOrphaned },
);

const server = createServer((socket) => {
  socket.on("error", () => undefined); // the link reports its end
  try {
    host.serve(socket, daemonBehind(socket));
  } catch {
    socket.destroy(); // the bridge has told why, for the worker's audit log
  }
});
server.listen(config.socket);

/** No daemon is left to be told; the next one finds another bridge. */
function onOrphaned(): void {
  log.warn({ event: "bridge orphaned" });
  process.exit(0);
}

/** the kernel's word on who listens at the guest's socket, read on every new connection. */
async function connectGuest(path: string): Promise<ConnectedGuest> {
  const socket = connect({ path, allowHalfOpen: true });
  try {
    await once(socket, "connect");
    return { socket, peer: evidenceOf(socket) };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function evidenceOf(socket: Socket): PeerEvidence {
  const { pid, uid } = peerCredentials(socket);
  const living = peerProcess(socket);
  // A pid is still reported after its process has died, and then may be anybody's.
  if (living !== pid && living !== "unsupported")
    throw new SpaceError("endpoint/unverifiable", { problem: "the peer has ended" });
  return { pid, uid, startTime: processStartTime(pid) ?? "" };
}

/** The peer, when it is the very process that root has noted as the daemon; otherwise nobody. */
function daemonBehind(socket: Socket): PeerEvidence | undefined {
  try {
    const peer = evidenceOf(socket);
    const noted = readDaemonNote(config.daemonNote);
    return noted.pid === peer.pid && noted.startTime === peer.startTime ? peer : undefined;
  } catch {
    return undefined; // it has ended, or nothing is noted: refused, and told, as nobody
  }
}
