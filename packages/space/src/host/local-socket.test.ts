// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { FrameLink } from "@space/wire";
import { connectLocal } from "./local-socket.ts";

async function withServer(
  serve: (socket: Socket) => void,
  use: (path: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "space-local-"));
  const path = join(folder, "socket");
  const server = createServer(serve).listen(path);
  await once(server, "listening");
  try {
    await use(path);
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
}

it("carries bytes both ways, each piece in memory of its own, and tells the other side's end", async () => {
  const sent = randomBytes(1_000_000);
  await withServer(
    (socket) => socket.once("data", (bytes) => socket.end(Buffer.concat([bytes, sent]))),
    async (path) => {
      const socket = connectLocal(path);
      const pieces: Buffer[] = [];
      socket.on("data", (bytes: Buffer) => pieces.push(bytes));
      socket.write("hello");
      await once(socket, "end");
      assert.ok(Buffer.concat(pieces).equals(Buffer.concat([Buffer.from("hello"), sent])));
      await once(socket, "close");
    },
  );
});

it("carries a link, which hears when the other side is gone", async () => {
  await withServer(
    (socket) => {
      const link: FrameLink = new FrameLink(socket, {
        dialled: false,
        onOpen: (stream) => {
          stream.sendHead("fine", true);
          return { onData: () => undefined, onEnd: () => link.destroy(undefined), onReset: () => undefined };
        },
      });
    },
    async (path) => {
      const socket = connectLocal(path);
      await once(socket, "connect");
      const closed = Promise.withResolvers<unknown>();
      const head = Promise.withResolvers<string>();
      const link = new FrameLink(socket, { dialled: true, onClose: closed.resolve });
      const stream = link.open(
        "",
        {
          onHead: (bytes) => head.resolve(bytes.toString()),
          onData: () => undefined,
          onEnd: () => undefined,
          onReset: () => undefined,
        },
        false,
      );
      assert.equal(await head.promise, "fine");
      stream.end();
      await closed.promise;
      assert.equal(socket.destroyed, true);
    },
  );
});

it("ends when bytes come that nobody listens for", async () => {
  await withServer(
    (socket) => socket.on("error", () => undefined).write("too early"),
    async (path) => {
      const socket = connectLocal(path);
      await once(socket, "close");
      assert.equal(socket.destroyed, true);
    },
  );
});
