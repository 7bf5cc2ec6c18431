// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Server } from "node:tls";
import { listenMesh, type MeshMember, type MeshServing, portOf } from "../host/mesh-sockets.ts";

export interface KeptPort {
  readonly host: string;
  /** 0: the port of the last start where it is free, otherwise whichever is. */
  readonly port: number;
  /** Where the choice is remembered, so that gateways find a daemon that started again where it was. */
  readonly file: string;
}

/** Listens where the last start of this worker listened, when that is possible. */
export async function listenOnKeptPort(
  member: MeshMember,
  wanted: KeptPort,
  serving: MeshServing,
): Promise<Server> {
  const { host, file } = wanted;
  const kept = wanted.port === 0 && existsSync(file) ? Number(readFileSync(file, "utf8")) : wanted.port;
  const server = await listenMesh(member, { host, port: kept }, serving).catch((error: unknown) => {
    if (kept === wanted.port) throw error;
    return listenMesh(member, { host, port: 0 }, serving);
  });
  writeFileSync(file, String(portOf(server)));
  return server;
}
