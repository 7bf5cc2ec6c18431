// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of the smallest HTTP server that Node has: the unit in which internal hops are measured.

import { createServer } from "node:http";
import { portOf } from "../host/mesh-sockets.ts";
import { serveBenchmark } from "./bench-child.ts";

const body = Buffer.alloc(1024, "x");

serveBenchmark(async () => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": body.length });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { ready: portOf(server) };
});
