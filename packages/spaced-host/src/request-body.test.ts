// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { EnvdError } from "./envd-error.ts";
import { CallerGone, RequestBody } from "./request-body.ts";

const gone = (error: unknown) => error instanceof CallerGone;

function bodyWithCredit() {
  const credit = { bytes: 0, overflowed: false };
  const body = new RequestBody(
    (bytes) => {
      credit.bytes += bytes;
    },
    () => {
      credit.overflowed = true;
    },
  );
  return { body, credit };
}

it("gives credit for a chunk only when the next one is asked for", async () => {
  const { body, credit } = bodyWithCredit();
  body.push(Buffer.from("abc"));
  body.push(Buffer.from("de"));
  assert.equal((await body.next())?.toString(), "abc");
  assert.equal(credit.bytes, 0);
  assert.equal((await body.next())?.toString(), "de");
  assert.equal(credit.bytes, 3);
  const last = body.next();
  assert.equal(credit.bytes, 5);
  body.end();
  assert.equal(await last, undefined);
  assert.equal(body.finished, true);
});

it("collects up to a limit", async () => {
  const { body } = bodyWithCredit();
  for (const text of ["one ", "two ", "three"]) body.push(Buffer.from(text));
  body.end();
  assert.equal((await body.collect(100)).toString(), "one two three");
  const { body: long } = bodyWithCredit();
  long.push(Buffer.alloc(101));
  await assert.rejects(long.collect(100), (error) => error instanceof EnvdError && error.status === 413);
});

it("a caller that has gone is told to whoever waits, then and later", async () => {
  const { body } = bodyWithCredit();
  const waiting = body.next();
  body.abort();
  await assert.rejects(waiting, gone);
  await assert.rejects(body.next(), gone);
});

it("a body that breaks off in the turn in which something came has not ended", async () => {
  const { body } = bodyWithCredit();
  const waiting = body.next();
  body.push(Buffer.from("half of it"));
  body.abort();
  await assert.rejects(waiting, gone);
});

it("drops a body that nobody wants, up to a limit", async () => {
  const { body, credit } = bodyWithCredit();
  const waiting = body.next();
  body.discard();
  await assert.rejects(waiting, gone);
  const chunk = Buffer.alloc(1024 * 1024);
  for (let count = 0; count < 64; count += 1) body.push(chunk);
  assert.deepEqual(credit, { bytes: 64 * chunk.length, overflowed: false });
  body.push(chunk);
  assert.equal(credit.overflowed, true);
});
