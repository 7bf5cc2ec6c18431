// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type FrameBuilder, FrameParser, ProtocolError } from "./frames.ts";
import { GuestConnectionError } from "./guest-error.ts";
import { GuestProcess, type ProcessLink } from "./guest-process.ts";
import { GuestFrame, stdinWindowBytes } from "./guest-protocol.ts";

/** A connection that records the STDIN sent on it. */
class RecordingLink implements ProcessLink {
  stdin = "";
  others: number[] = [];
  readonly #parser = new FrameParser((type, payload) => {
    if (type === GuestFrame.stdin) this.stdin += payload.toString();
    else this.others.push(type);
  });

  writeFrames(bytes: Buffer | FrameBuilder): boolean {
    this.#parser.push(Buffer.isBuffer(bytes) ? bytes : bytes.finish());
    return true;
  }
  pause(): void {}
  resume(): void {}
  destroy(): void {}
  handBack(): void {}
}

function start() {
  let output = "";
  const first = new RecordingLink();
  const process = new GuestProcess(first, 7, {
    onStdout: (chunk) => (output += chunk.toString()),
    onStderr: (chunk) => (output += chunk.toString()),
    onExit: () => undefined,
    onLost: () => undefined,
  });
  return { process, first, second: new RecordingLink(), output: () => output };
}

const taken = (bytes: number): Buffer => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32LE(bytes);
  return payload;
};

it("R-22: on another connection, input that the guest has not received is sent again, and nothing else", () => {
  const { process, first, second } = start();
  process.writeStdin(Buffer.from("abcdef"));
  process.writeStdin(Buffer.from("ghi"));
  process.onFrame(GuestFrame.stdinTaken, taken(2));
  process.onClosed(new GuestConnectionError("closed"));
  const next = process.goOn(second, { pid: 7, stdinReceived: 4, outputOffset: 0 });
  assert.deepEqual([first.stdin, second.stdin], ["abcdefghi", "efghi"]);
  next.onFrame(GuestFrame.stdinTaken, taken(5));
  next.writeStdin(Buffer.from("j"));
  next.closeStdin();
  const third = new RecordingLink();
  next.onClosed(new GuestConnectionError("closed"));
  next.goOn(third, { pid: 7, stdinReceived: 10, outputOffset: 0 });
  assert.deepEqual([second.stdin, third.stdin, third.others], ["efghij", "", [GuestFrame.stdinEof]]);
});

it("R-22: what waited for the window goes along, in order", () => {
  const { process, second } = start();
  const large = "x".repeat(stdinWindowBytes);
  assert.ok(process.writeStdin(Buffer.from(large)));
  assert.equal(process.writeStdin(Buffer.from("tail")), false);
  process.onClosed(new GuestConnectionError("closed"));
  process.goOn(second, { pid: 7, stdinReceived: large.length - 3, outputOffset: 0 });
  assert.equal(second.stdin, "xxxtail");
});

it("R-22: output that comes again is dropped, also in the middle of a frame", () => {
  const { process, second, output } = start();
  process.onFrame(GuestFrame.stdout, Buffer.from("one"));
  process.onFrame(GuestFrame.stderr, Buffer.from("two"));
  process.onClosed(new GuestConnectionError("closed"));
  const next = process.goOn(second, { pid: 7, stdinReceived: 0, outputOffset: 1 });
  next.onFrame(GuestFrame.stdout, Buffer.from("ne"));
  next.onFrame(GuestFrame.stderr, Buffer.from("two, and"));
  next.onFrame(GuestFrame.stdout, Buffer.from(" three"));
  assert.equal(output(), "onetwo, and three");
});

it("R-22: bytes that are missing in either direction are an error, never a guess", () => {
  const { process, second } = start();
  process.writeStdin(Buffer.from("abc"));
  process.onFrame(GuestFrame.stdinTaken, taken(2));
  process.onFrame(GuestFrame.stdout, Buffer.from("out"));
  process.onClosed(new GuestConnectionError("closed"));
  for (const [stdinReceived, outputOffset] of [
    [1, 3],
    [4, 3],
    [3, 4],
  ] as const) {
    assert.throws(() => process.goOn(second, { pid: 7, stdinReceived, outputOffset }), ProtocolError);
  }
  assert.equal(second.stdin, "");
});
