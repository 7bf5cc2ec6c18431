// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, plainServerOptions } from "@space/gateway";
import { withEnding } from "../bench/ending.ts";
import { type EmbeddedOptions, type EmbeddedSystem, startEmbedded } from "../embedded/embedded-system.ts";
import type { GatewayPart } from "../embedded/gateway-part.ts";
import { portOf } from "../host/mesh-sockets.ts";

/** A gateway beside the system's own, or of another process: its own entries, its own links to the workers. */
export interface ServedGateway {
  readonly url: string;
  readonly gateway: Gateway;
  close(): void;
}

/** One worker, on free ports of loopback, keeping everything there. */
export function drillOptions(data: string): EmbeddedOptions {
  const free = { host: "127.0.0.1", port: 0 };
  return {
    data,
    listen: free,
    tlsListen: free,
    domain: "space.localhost",
    workers: 1,
    substrate: "namespace",
    log: () => undefined,
  };
}

/** A whole system on a throw-away directory; everything of it is gone afterwards, also after an interrupt. */
export function withSystem<T>(
  workers: number,
  drill: (system: EmbeddedSystem, data: string) => Promise<T>,
  options: Partial<EmbeddedOptions> = {},
): Promise<T> {
  return withEnding(async (ending) => {
    const data = mkdtempSync(join(tmpdir(), "space-drill-"));
    ending.add(() => rmSync(data, { recursive: true, force: true }));
    const starting = startEmbedded({ ...drillOptions(data), workers, ...options });
    // An interrupt while it starts waits for that: what is half there would be left for nobody.
    ending.add(() =>
      starting.then(
        (system) => system.stop(),
        () => undefined,
      ),
    );
    return drill(await starting, data);
  });
}

/** Opens another gateway beside the system's own, on a port of its own. */
export async function openSecondGateway(system: EmbeddedSystem): Promise<ServedGateway> {
  return serve(await system.openGateway());
}

/** Serves plain HTTP with it on a free port of loopback. */
export async function serve(part: GatewayPart): Promise<ServedGateway> {
  const server = createServer(plainServerOptions(part.gateway.limits));
  part.gateway.attach(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    gateway: part.gateway,
    close() {
      part.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
