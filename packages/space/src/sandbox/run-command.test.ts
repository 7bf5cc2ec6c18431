// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import { ApiRefusal } from "./api-refusal.ts";
import { enveloped } from "./message-stream.ts";
import { type CommandStreams, runCommand } from "./run-command.ts";

interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

let server: Server | undefined;
let asked: Asked[] = [];
let onInput: () => void = () => undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  asked = [];
  onInput = () => undefined;
});

/** An agent that starts with these events, and then does as it is told. */
async function agent(status: number, events: readonly unknown[], rest: "ends" | "breaks" | "waits") {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (bytes: Buffer) => chunks.push(bytes));
    request.on("end", () => {
      const { url: path = "", headers } = request;
      asked.push({ path, headers, body: Buffer.concat(chunks) });
      if (!path.endsWith("/Start")) {
        response.end("{}");
        onInput();
        return;
      }
      response.writeHead(status);
      if (status !== 200) {
        response.end(JSON.stringify({ code: "not_found", message: "no such user" }));
        return;
      }
      for (const event of events) response.write(enveloped({ event }));
      if (rest === "ends") response.end();
      if (rest === "breaks") setImmediate(() => response.destroy());
      onInput = () => {
        if (asked.some(({ path: last }) => last.endsWith("/CloseStdin")))
          response.end(enveloped({ event: { end: { exitCode: 3, status: "exit status 3" } } }));
      };
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // cast: it listens on TCP
  return { sandboxUrl: `http://127.0.0.1:${port}`, sandboxId: "i1", accessToken: "secret" };
}

function collected(input?: AsyncIterable<Uint8Array>): CommandStreams & { readonly out: string[] } {
  const out: string[] = [];
  const add =
    (name: string) =>
    (bytes: Uint8Array): Promise<void> => {
      out.push(`${name}:${Buffer.from(bytes).toString("hex")}`);
      return Promise.resolve();
    };
  return { out, input, stdout: add("1"), stderr: add("2"), started: () => undefined };
}

const command = { argv: ["printf", "%s", "a b"], user: "root", cwd: "/tmp", variables: { A: "1" } } as const;
const ended = (end: unknown) => [{ start: { pid: 7 } }, { end }];

describe("a command in a sandbox", () => {
  it("gives its bytes as they are, in order, and its exit code", async () => {
    const bytes = Buffer.from([0, 0xff, 0xfe, 10]);
    const streams = collected();
    const door = await agent(
      200,
      [
        { start: { pid: 7 } },
        { data: { stdout: bytes.toString("base64") } },
        { keepalive: {} },
        { data: { stderr: "eA==" } },
        { end: { exitCode: 42, exited: true, status: "exit status 42" } },
      ],
      "ends",
    );
    assert.equal(await runCommand(door, command, streams), 42);
    assert.deepEqual(streams.out, ["1:00fffe0a", "2:78"]);
  });

  it("is started as it was written, by its user, at its owner's word", async () => {
    const door = await agent(200, ended({ exited: true, status: "exit status 0" }), "ends");
    assert.equal(await runCommand(door, command, collected()), 0);
    const [start] = asked;
    assert.deepEqual(JSON.parse(start?.body.toString("utf8", 5) ?? ""), {
      process: { cmd: "printf", args: ["%s", "a b"], envs: { A: "1" }, cwd: "/tmp" },
      stdin: false,
    });
    assert.equal(start?.headers["authorization"], `Basic ${Buffer.from("root:").toString("base64")}`);
    assert.equal(start?.headers["x-access-token"], "secret");
    assert.equal(start?.headers["e2b-sandbox-id"], "i1");
  });

  it("that a signal ended has the code that a shell gives it", async () => {
    for (const [status, code] of [
      ["signal: killed", 137],
      ["signal: terminated", 143],
      ["signal: signal 64", 192],
    ] as const) {
      const door = await agent(200, ended({ exitCode: -1, status }), "ends");
      assert.equal(await runCommand(door, command, collected()), code);
      server?.close();
    }
  });

  it("gets its input in order and then the end of it", async () => {
    const input = (async function* () {
      yield Buffer.alloc(40_000, "a");
      yield Buffer.from("b");
    })();
    const door = await agent(200, [{ start: { pid: 7 } }], "waits");
    assert.equal(await runCommand(door, command, collected(input)), 3);
    const sent = asked.slice(1).map(({ path, body }) => {
      const { process, input: given } = JSON.parse(body.toString());
      assert.deepEqual(process, { pid: 7 });
      return path.endsWith("/CloseStdin") ? "end" : Buffer.from(given.stdin, "base64").toString();
    });
    assert.deepEqual(sent.slice(-1), ["end"]);
    assert.equal(sent.slice(0, -1).join(""), `${"a".repeat(40_000)}b`);
  });

  it("that cannot be started is told in the agent's words", async () => {
    const door = await agent(404, [], "ends");
    await assert.rejects(runCommand(door, command, collected()), (error) => {
      assert.ok(error instanceof ApiRefusal);
      assert.deepEqual([error.status, error.message], [404, "no such user"]);
      return true;
    });
  });

  it("whose stream breaks off, or ends without its end, is never taken for one that ended well", async () => {
    const cut = await agent(200, [{ start: { pid: 7 } }], "ends");
    await assert.rejects(runCommand(cut, command, collected()), (error) =>
      isSpaceError(error, "link/closed"),
    );
    server?.close();
    const broken = await agent(200, [{ start: { pid: 7 } }], "breaks");
    await assert.rejects(runCommand(broken, command, collected()));
  });
});
