// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The S3 store against servers that this file starts: always the one that npm brings, and versitygw where it is installed.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { isSpaceError, Secret } from "@space/model";
import { S3ByteStore, type S3Options } from "@space/object-store";
import { endServer, type S3Server, startS3rver } from "../src/s3-server.ts";
import { byteStoreContract } from "./byte-store.ts";

const region = "us-east-1";
const bucket = "snapshots";
const startLimitMs = 30_000;
const failed = (error: unknown): boolean => isSpaceError(error, "store/failed");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // cast: it listens on TCP
  server.close();
  await once(server, "close");
  return port;
}

async function startVersity(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "versitygw-"));
  mkdirSync(join(directory, bucket));
  const port = await freePort();
  const credentials = { access: "the-access-key", secret: "the-secret-key" };
  const child: ChildProcess = spawn(
    "versitygw",
    [
      "--port",
      `127.0.0.1:${port}`,
      "--access",
      credentials.access,
      "--secret",
      credentials.secret,
      "--quiet",
      "posix",
      directory,
    ],
    { stdio: "ignore" },
  );
  const options: S3Options = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket,
    region,
    accessKeyId: credentials.access,
    secretAccessKey: new Secret(credentials.secret),
    tries: 1,
  };
  const limit = AbortSignal.timeout(startLimitMs);
  for (let isUp = false; !isUp; ) {
    limit.throwIfAborted();
    isUp = await S3ByteStore.open(options).then(
      () => true,
      () => false,
    );
  }
  return {
    options: { ...options, tries: 4 },
    stop: () => endServer(child, directory),
  };
}

const hasVersity = spawnSync("versitygw", ["--version"]).status === 0;
const servers = [
  { name: "s3rver", start: startS3rver, skip: false as const },
  {
    name: "versitygw",
    start: startVersity,
    skip: hasVersity ? (false as const) : "versitygw is not installed",
  },
];

for (const { name, start, skip } of servers) {
  byteStoreContract(
    `S3 at ${name}`,
    async () => {
      const { options, stop } = await start();
      const open = (): Promise<S3ByteStore> => S3ByteStore.open(options);
      return { store: await open(), again: open, dispose: stop };
    },
    skip,
  );

  describe(`S3 at ${name}: what is refused`, { skip }, () => {
    let server: S3Server;
    before(async () => {
      server = await start();
    });
    after(() => server.stop());

    test("does not open with wrong credentials, or without its bucket", async () => {
      const { options } = server;
      await assert.rejects(S3ByteStore.open({ ...options, secretAccessKey: new Secret("wrong") }), failed);
      await assert.rejects(S3ByteStore.open({ ...options, accessKeyId: "nobody" }), failed);
      await assert.rejects(S3ByteStore.open({ ...options, bucket: "another-bucket" }), failed);
    });
  });
}

/** A server that answers as it is told; the requests that it got. */
async function answering(
  answers: readonly { readonly status: number; readonly body?: string }[],
): Promise<{ readonly options: S3Options; readonly asked: string[]; readonly stop: () => void }> {
  const asked: string[] = [];
  const left = [...answers];
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      asked.push(`${request.method} ${request.url}`);
      const { status, body = "" } = left.shift() ?? { status: 500 };
      if (status === 0) return void request.socket.destroy();
      response.writeHead(status, { "content-type": "application/xml" }).end(body);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // cast: it listens on TCP
  return {
    asked,
    options: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket,
      region,
      accessKeyId: "key",
      secretAccessKey: new Secret("secret"),
      backoffMs: 1,
    },
    stop: () => void server.close(),
  };
}

describe("S3: answers that no healthy server gives", () => {
  const up = { status: 200 };
  const error = (code: string): string => `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`;

  async function withAnswers(
    answers: readonly { readonly status: number; readonly body?: string }[],
    work: (store: S3ByteStore, asked: readonly string[]) => Promise<void>,
  ): Promise<void> {
    const { options, asked, stop } = await answering([up, ...answers]);
    try {
      await work(await S3ByteStore.open(options), asked);
    } finally {
      stop();
    }
  }

  test("a request is repeated while the store is busy or breaks off, and no longer than it says", async () => {
    await withAnswers(
      [{ status: 503 }, { status: 0 }, { status: 429 }, { status: 200 }],
      async (store, asked) => {
        await store.put("a", Buffer.from("bytes"));
        assert.equal(asked.length, 5);
      },
    );
    await withAnswers([], async (store, asked) => {
      await assert.rejects(store.put("a", Buffer.from("bytes")), failed);
      assert.equal(asked.length, 5);
    });
  });

  test("a store that is not there, or is gone in the middle, is a failure and no bug", async () => {
    const { options, stop } = await answering([up]);
    const store = await S3ByteStore.open(options);
    stop();
    await assert.rejects(store.get("a", 100), failed);
    await assert.rejects(S3ByteStore.open({ ...options, endpoint: "http://127.0.0.1:9" }), failed);
  });

  test("only the store's word that there is no such key means absent", async () => {
    const answers = [
      { status: 404, body: error("NoSuchKey") },
      { status: 404, body: error("NoSuchBucket") },
      { status: 404 },
      { status: 403, body: error("AccessDenied") },
    ];
    await withAnswers(answers, async (store) => {
      assert.equal(await store.get("a", 100), undefined);
      for (let at = 1; at < answers.length; at += 1) await assert.rejects(store.get("a", 100), failed);
    });
    await withAnswers(answers, async (store) => {
      assert.equal(await store.has("a"), false);
      for (let at = 1; at < answers.length; at += 1) await assert.rejects(store.has("a"), failed);
    });
  });

  test("a copy that fails on its way removes nothing", async () => {
    await withAnswers([{ status: 200, body: error("InternalError") }], async (store, asked) => {
      await assert.rejects(store.move("a", "b"), failed);
      assert.deepEqual(asked.slice(1), ["PUT /snapshots/b"]);
    });
  });

  test("a listing that is cut off, or goes in a circle, is a failure and not an end", async () => {
    const page = (rest: string): string =>
      `<ListBucketResult><Contents><Key>a/b</Key><LastModified>2026-11-30T00:00:00Z</LastModified><Size>1</Size></Contents>${rest}</ListBucketResult>`;
    const circle = page("<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>");
    const wrong = [
      [{ status: 200, body: "" }],
      [{ status: 200, body: page("") }],
      [{ status: 200, body: page("<IsTruncated>true</IsTruncated>") }],
      [{ status: 200, body: circle.slice(0, -5) }],
      [
        { status: 200, body: circle },
        { status: 200, body: circle },
      ],
    ];
    for (const answers of wrong)
      await withAnswers(answers, async (store) => {
        await assert.rejects(async () => {
          for await (const { key } of store.list("a/")) assert.equal(key, "a/b");
        }, failed);
      });
  });
});
