// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// What `./space audit verify` says of the logs of real processes: while they are written, after kill -9, and of what
// somebody did to the files.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { verifyLog } from "@space/audit-log";
import { importPublicKey } from "@space/capability";
import { Sandbox } from "e2b";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import {
  checkout,
  type Finished,
  runProgram,
  type SpaceProcess,
  startSpace,
  until,
} from "../src/space-process.ts";

const resourcesBefore = hostResources();
after(() => {
  if (skip === false) assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

const verify = (data: string, ...more: readonly string[]): Promise<Finished> =>
  runProgram(join(checkout, "space"), ["audit", "verify", "--data", data, ...more]);

async function assertWhole(data: string, when: string): Promise<string> {
  const { code, stdout, stderr } = await verify(data);
  assert.equal(code, 0, `${when}:\n${stdout}${stderr}`);
  return stdout;
}

/** Callers that ask the API without a pause until they are disposed. Every request is a record of the log. */
class Callers implements AsyncDisposable {
  asked = 0;
  #goesOn = true;
  readonly #running: readonly Promise<void>[];

  constructor(count: number, { environment }: SpaceProcess) {
    const url = `${environment["E2B_API_URL"]}/v2/sandboxes`;
    const headers = { "x-api-key": environment["E2B_API_KEY"] ?? "" };
    this.#running = Array.from({ length: count }, () => this.#ask(url, headers));
  }

  async #ask(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
    while (this.#goesOn) {
      const answer = await fetch(url, { headers }).catch(() => undefined); // it was killed, as the test means to
      if (answer === undefined) return;
      await answer.text().catch(() => undefined);
      this.asked += 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#goesOn = false;
    await Promise.all(this.#running);
  }
}

/** A started system that is killed, and forgotten, if the test fails before it ends it. */
async function started(data?: string): Promise<SpaceProcess & AsyncDisposable> {
  const up = await startSpace(data === undefined ? {} : { data });
  return Object.assign(up, {
    [Symbol.asyncDispose]: async () => {
      if (up.child.exitCode === null && up.child.signalCode === null) await up.stop();
    },
  });
}

const controlLog = (data: string): string => join(data, "audit", "control-plane");

/** The folder of each worker's log. */
function workerLogs(data: string): readonly string[] {
  return readdirSync(join(data, "workers")).flatMap((name) => {
    const folder = join(data, "workers", name, "audit");
    return readdirSync(folder).map((process) => join(folder, process));
  });
}

function newestSegment(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return join(folder, names.toSorted().at(-1) ?? "");
}

test("a log is whole while it is written, and what is added is followed", {
  skip,
  timeout: 120_000,
}, async () => {
  await using up = await started();
  await assertWhole(up.data, "at the very start, before anything was asked");
  {
    await using callers = new Callers(3, up);
    for (let round = 1; round <= 4; round += 1) await assertWhole(up.data, `in round ${round}`);
    assert.ok(callers.asked > 50, "it was written meanwhile");

    const follower = spawn(join(checkout, "space"), ["audit", "tail", "-n", "5", "-f", "--data", up.data], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(follower, "exit");
    try {
      let followed = "";
      follower.stdout.on("data", (bytes: Buffer) => {
        followed += bytes.toString();
      });
      await until("new records are followed", () => followed.split("api/answered").length > 20);
      assert.match(followed, /keyId=\[sensitive\]/);
      assert.equal(/keyId=key_/.test(followed), false);
    } finally {
      follower.kill("SIGINT");
    }
    assert.deepEqual(await ended, [0, null]);
  }
  assert.equal(await up.stop(), 0);
  await assertWhole(up.data, "after it was stopped");
  up.forget();
});

test("kill -9 in the middle of writes leaves a whole log, and the next start says what it had to cut off", {
  skip,
  timeout: 180_000,
}, async () => {
  await using up = await started();
  const { data } = up;
  const client = { apiUrl: up.environment["E2B_API_URL"] ?? "", apiKey: up.environment["E2B_API_KEY"] ?? "" };
  const sandbox = await Sandbox.create({ ...client, timeoutMs: 120_000 });
  {
    await using callers = new Callers(3, up);
    await until("it is written", () => callers.asked > 100);
    const ended = once(up.child, "exit");
    up.child.kill("SIGKILL");
    assert.deepEqual(await ended, [null, "SIGKILL"], "the fault landed");
  }
  const killed = await assertWhole(data, "after kill -9");
  assert.match(killed, /^control-plane: intact\n.* [1-9][0-9]* records since$/m, "its end was not signed");

  // What a machine that lost power leaves on its disk, in a log of each kind.
  const half = '{"sequence":999999,"previous":"0000';
  const workers = workerLogs(data);
  assert.equal(workers.length, 2);
  const torn = [controlLog(data), workers[0] ?? ""];
  const whole = torn.map((folder) => readFileSync(newestSegment(folder), "utf8"));
  for (const folder of torn) appendFileSync(newestSegment(folder), half);
  await assertWhole(data, "with torn ends");

  await using again = await started(data);
  const restarted = await assertWhole(data, "after the next start");
  assert.equal(restarted.split("1 times a crash cut the last record off").length - 1, torn.length, restarted);
  for (const [index, folder] of torn.entries()) {
    const kept = filesOf(folder);
    assert.ok(kept.startsWith(whole[index] ?? ""), "nothing whole was lost");
    assert.ok(kept.includes(`"fields":{"tornBytes":${half.length},`), "and it says how much was cut");
  }
  await Sandbox.kill(sandbox.sandboxId, client).catch(() => undefined); // it may have been lost with its worker
  assert.equal(await again.stop(), 0);
  await assertWhole(data, "at the end");
  again.forget();
});

function filesOf(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return names
    .toSorted()
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
}

/** The logs of a data directory, with what they are verified by. */
function copyOfLogs(data: string): string {
  const copy = mkdtempSync(join(tmpdir(), "space-audit-copy-"));
  for (const part of ["control/root.pub", "tls/mesh-authority.crt", "audit"])
    cpSync(join(data, part), join(copy, part), { recursive: true });
  for (const name of readdirSync(join(data, "workers"))) {
    mkdirSync(join(copy, "workers", name), { recursive: true });
    cpSync(join(data, "workers", name, "audit"), join(copy, "workers", name, "audit"), { recursive: true });
  }
  return copy;
}

/** What the verifier says of each log, in this process: the command says the same, and takes a while to start. */
function problemsOf(data: string): readonly string[] {
  const trust = {
    rootKey: importPublicKey(readFileSync(join(data, "control/root.pub"), "utf8").trim()),
    meshAuthority: readFileSync(join(data, "tls/mesh-authority.crt"), "utf8"),
  };
  return [controlLog(data), ...workerLogs(data)].flatMap((directory) =>
    verifyLog({ directory, process: basename(directory), trust }).problems.map(
      ({ kind, sequence, detail }) => `${kind}: record ${sequence}: ${detail}`,
    ),
  );
}

interface Tampering {
  readonly what: string;
  readonly said: RegExp;
  /** Does it to the logs under this folder. */
  act(data: string): void;
}

function rewrite(folder: string, change: (lines: readonly string[]) => readonly string[]): void {
  const path = newestSegment(folder);
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  writeFileSync(path, `${change(lines).join("\n")}\n`);
}

const answered = (lines: readonly string[]): number => {
  const at = lines.findIndex((line) => line.includes('"api/answered"'));
  assert.ok(at > 0 && at < lines.length - 2, "there is a record to tamper with");
  return at;
};

/** Before the newest checkpoint: what a checkpoint covers and the chain alone does not show. */
const beforeLastCheckpoint = (lines: readonly string[]): number =>
  lines.findLastIndex((line) => line.includes('"audit/checkpoint"')) - 1;

const tamperings: readonly Tampering[] = [
  {
    what: "an altered line",
    said: /^altered: record \d+: /m,
    act: (data) =>
      rewrite(controlLog(data), (lines) => {
        const at = answered(lines);
        return lines.with(at, (lines[at] ?? "").replace('"status":', '"status":1'));
      }),
  },
  {
    what: "a missing line",
    said: /^removed: record \d+: is missing$/m,
    act: (data) => rewrite(controlLog(data), (lines) => lines.toSpliced(answered(lines), 1)),
  },
  {
    what: "two lines in the other order",
    said: /^reordered: record \d+/m,
    act: (data) =>
      rewrite(controlLog(data), (lines) => {
        const at = answered(lines);
        return lines.toSpliced(at, 2, lines[at + 1] ?? "", lines[at] ?? "");
      }),
  },
  {
    what: "an end cut off before the newest checkpoint",
    said: /^truncated: record \d+: the file last-checkpoint covers \d+ records/m,
    act: (data) => rewrite(controlLog(data), (lines) => lines.slice(0, beforeLastCheckpoint(lines))),
  },
  {
    what: "an end of a worker's log cut off before its newest checkpoint",
    said: /^truncated: record \d+/m,
    act: (data) => rewrite(workerLogs(data)[0] ?? "", (lines) => lines.slice(0, beforeLastCheckpoint(lines))),
  },
  {
    what: "the checkpoint beside a log taken away",
    said: /^removed: record 0: the file last-checkpoint is missing$/m,
    act: (data) => rmSync(join(controlLog(data), "last-checkpoint")),
  },
  {
    what: "the files of two workers swapped",
    said: /is of another process's log/,
    act: (data) => {
      const [first = "", second = ""] = workerLogs(data);
      const aside = join(data, "aside");
      renameSync(first, aside);
      renameSync(second, first);
      renameSync(aside, second);
    },
  },
];

test("every tampering with the files of a real log is found", { skip, timeout: 120_000 }, async (t) => {
  await using up = await started();
  const { data } = up;
  const client = { apiUrl: up.environment["E2B_API_URL"] ?? "", apiKey: up.environment["E2B_API_KEY"] ?? "" };
  for (let count = 0; count < 3; count += 1) await Sandbox.list(client).nextItems();
  assert.equal(await up.stop(), 0);
  await assertWhole(data, "untouched");
  assert.deepEqual(problemsOf(data), []);
  for (const { what, said, act } of tamperings) {
    await t.test(what, () => {
      const copy = copyOfLogs(data);
      try {
        act(copy);
        assert.match(problemsOf(copy).join("\n"), said);
      } finally {
        rmSync(copy, { recursive: true, force: true });
      }
    });
  }
  await t.test("a worker's whole log taken away, by a checkpoint that was kept", async () => {
    const copy = copyOfLogs(data);
    try {
      const folder = workerLogs(copy)[0] ?? "";
      const kept = join(copy, "kept");
      cpSync(join(folder, "last-checkpoint"), kept);
      assert.equal((await verify(copy, "--checkpoint", kept)).code, 0);
      rmSync(folder, { recursive: true });
      const { code, stdout } = await verify(copy, "--checkpoint", kept);
      assert.equal(code, 1, stdout);
      assert.match(stdout, /^"wrk_[a-z0-9]+": MISSING$/m);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });
  up.forget();
});
