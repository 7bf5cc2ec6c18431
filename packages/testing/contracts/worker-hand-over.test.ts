// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Two real workers meet over real mutual TLS: what one may read at the other, and what becomes of a move when it may not,
// or when the other one lies, stalls or dies. Written as whoever wants chunks that are not theirs, or to spoil a move.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newSigningKey } from "@space/capability";
import { type HandOverFailure, isSpaceError, newWorkerId, parseDigest } from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { deafPort, type Giving, PeerRig, request, sayHead } from "../src/peer-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const files = "a file system of several chunks";

describe("a snapshot handed over by the worker that made it", () => {
  test("R-7: its chunks come equal over the link, and none of them from the store", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    const names = rig.names(from);
    assert.ok(names.length > 2);
    assert.equal(await rig.arrive(from), files);
    const { chunksGiven, handOversRefused } = rig.a.worker.stats();
    assert.deepEqual([chunksGiven, handOversRefused], [names.length, 0]);
    const { chunksReceived, chunksNotReceived } = rig.b.worker.stats();
    assert.deepEqual([chunksReceived, chunksNotReceived], [names.length, 0]);
    assert.deepEqual(
      rig.read.filter((key) => names.some((name) => key.endsWith(name))),
      [],
    );
    const { sandboxId } = from.manifest.identity;
    const [given] = rig.a.audit.of("hand-over/given");
    assert.deepEqual(given, { sandboxId, manifest: from.digest, target: rig.b.workerId });
    const [received] = rig.b.audit.of("hand-over/received");
    assert.deepEqual(
      [received?.source, received?.direct, received?.stored, received?.problem],
      [rig.a.workerId, names.length, 0, "none"],
    );
  });

  test("all of it is in the store as well, before the snapshot is answered for", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    for (const name of rig.names(from)) assert.ok(rig.sealed(name).length > 0);
  });

  test("what the store had before is held too", async (context) => {
    const rig = await PeerRig.open(context);
    const identity = await rig.begin();
    await rig.leave({ handsOver: false, retired: false });
    await rig.a.worker.control.abortPause(identity);
    const from = await rig.leave();
    assert.equal(await rig.arrive(from), files);
    assert.equal(rig.b.worker.stats().chunksNotReceived, 0);
  });

  test("a pause that is not for a move holds nothing, and what is moved is held for a moment", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave({ handsOver: false });
    const [chunk] = rig.names(from);
    const as = rig.identity(rig.b.workerId);
    assert.equal((await rig.ask(as, { grant: rig.grant(from), chunk })).reset, "hand-over/refused");
    assert.deepEqual(problems(rig), ["snapshot"]);
    const other = await PeerRig.open(context);
    const moved = await other.leave();
    await other.a.clock.advance(121_000);
    await settle();
    const late = { grant: other.grant(moved), chunk: other.names(moved)[0] };
    await other.ask(other.identity(other.b.workerId), late);
    assert.deepEqual(problems(other), ["snapshot"]);
  });

  test("bounds: beyond the bytes that are held, a chunk comes from the store, and that is counted", async (context) => {
    const rig = await PeerRig.open(context);
    await rig.begin();
    await rig.a.reboot({ worker: { limits: { handedOverBytes: 200 } } });
    const from = await rig.leave();
    const { length } = rig.names(from);
    assert.equal(await rig.arrive(from), files);
    const { chunksReceived, chunksNotReceived } = rig.b.worker.stats();
    assert.equal(chunksReceived + chunksNotReceived, length);
    assert.ok(chunksReceived > 0 && chunksNotReceived > 0, `${chunksReceived} of ${length}`);
    assert.equal(rig.b.audit.of("hand-over/received")[0]?.problem, "not held");
  });
});

function problems(rig: PeerRig): readonly string[] {
  return rig.a.audit.of("hand-over/refused").map(({ problem }) => problem);
}

describe("who may read what, at the giving worker", () => {
  test("R-6, R-7, R-9, R-10, R-13: every other grant, asker and chunk is refused, with one word and the reason recorded", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    const [chunk = ""] = rig.names(from);
    const { identity } = from.manifest;
    const b = rig.identity(rig.b.workerId);
    const nowSeconds = Math.floor(rig.a.clock.wallMs() / 1000);
    const other = rig.a.identity();
    const placed = { ...identity, placement: { ...identity.placement, workerId: newWorkerId(rig.a.random) } };
    const stranger = newWorkerId(rig.b.random);
    const cases: readonly (readonly [what: string, as: typeof b, head: unknown, problem: string])[] = [
      ["no JSON", b, "x", "request"],
      ["no grant", b, { chunk }, "request"],
      ["no chunk's name", b, { grant: rig.grant(from), chunk: "../manifest" }, "request"],
      ["a grant that is none", b, { grant: "x", chunk }, "form"],
      ["a certificate instead", b, { grant: rig.a.authority.retirement(identity), chunk }, "form"],
      ["signed by nobody", b, { grant: rig.grant(from, {}, newSigningKey()), chunk }, "key"],
      ["altered", b, { grant: `${rig.grant(from).slice(0, -86)}${"A".repeat(86)}`, chunk }, "signature"],
      [
        "expired",
        b,
        { grant: rig.grant(from, { issuedAtSeconds: nowSeconds - 60, expiresAtSeconds: nowSeconds }), chunk },
        "time",
      ],
      [
        "not yet",
        b,
        {
          grant: rig.grant(from, { issuedAtSeconds: nowSeconds + 60, expiresAtSeconds: nowSeconds + 90 }),
          chunk,
        },
        "time",
      ],
      ["for another target", b, { grant: rig.grant(from, { target: stranger }), chunk }, "asker"],
      ["shown by another worker", rig.identity(stranger), { grant: rig.grant(from), chunk }, "asker"],
      ["for another giver", b, { grant: rig.grant(from, { identity: placed }), chunk }, "giver"],
      ["of another sandbox", b, { grant: rig.grant(from, { identity: other }), chunk }, "record"],
      [
        "of another attempt",
        b,
        {
          grant: rig.grant(from, {
            identity: { ...identity, activation: { ...identity.activation, attempt: 2 } },
          }),
          chunk,
        },
        "record",
      ],
      [
        "of another manifest",
        b,
        { grant: rig.grant(from, { manifest: parseDigest("a".repeat(64)) }), chunk },
        "snapshot",
      ],
      ["a chunk that it does not list", b, { grant: rig.grant(from), chunk: "a".repeat(64) }, "chunk"],
      [
        "a signed statement that lies in the store",
        b,
        { grant: rig.grant(from), chunk: statement(rig, from) },
        "chunk",
      ],
    ];
    for (const [what, as, head, problem] of cases) {
      const answer = await rig.ask(as, head);
      assert.deepEqual(answer, { head: undefined, bytes: Buffer.alloc(0), reset: "hand-over/refused" }, what);
      assert.equal(problems(rig).at(-1), problem, what);
    }
    faultLanded("every kind of refusal was met", problems(rig).length - 16);
    assert.equal(rig.a.worker.stats().handOversRefused, cases.length);
    assert.equal(rig.a.worker.stats().chunksGiven, 0);
    const given = await rig.ask(b, { grant: rig.grant(from), chunk });
    assert.deepEqual(given.bytes, rig.sealed(chunk), "the right one gets it all the same");
  });

  test("R-7: who is no component of this mesh does not get as far as to ask", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    const head = { grant: rig.grant(from), chunk: rig.names(from)[0] };
    const answer = await rig
      .ask(rig.identity(rig.b.workerId, "foreign"), head)
      .catch((error: unknown) =>
        isSpaceError(error) ? { reset: error.code, bytes: Buffer.alloc(0) } : undefined,
      );
    assert.equal(answer?.reset, "link/closed");
    assert.equal(answer?.bytes.length, 0);
    assert.equal(rig.a.worker.stats().chunksGiven, 0);
  });

  test("R-12: what may still run here is not given, whatever the control plane signed", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave({ retired: false });
    const head = { grant: rig.grant(from), chunk: rig.names(from)[0] };
    assert.equal((await rig.ask(rig.identity(rig.b.workerId), head)).reset, "hand-over/refused");
    assert.deepEqual(problems(rig), ["record"]);
    await rig.a.worker.control.abortPause(from.manifest.identity);
    assert.equal((await rig.ask(rig.identity(rig.b.workerId), head)).reset, "hand-over/refused");
  });

  test("R-16: without a lease it gives nothing", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    rig.a.grantsLeases = false;
    await rig.a.clock.advance(61_000);
    await settle();
    assert.equal(rig.a.worker.stats().leased, false);
    const head = { grant: rig.grant(from), chunk: rig.names(from)[0] };
    assert.equal((await rig.ask(rig.identity(rig.b.workerId), head)).reset, "hand-over/refused");
    assert.deepEqual(problems(rig), ["lease"]);
  });

  test("bounds: connections, requests at once, and a peer that does nothing", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    await rig.a.reboot({ worker: { limits: { peers: 2, chunksPerPeer: 1 } } });
    const b = rig.identity(rig.b.workerId);
    const links = [await rig.link(b), await rig.link(b)];
    const head = { grant: rig.grant(from), chunk: rig.names(from)[0] };
    assert.equal((await request(links[0] ?? assert.fail(), head)).reset, "hand-over/refused");
    assert.deepEqual(problems(rig), ["snapshot"], "a daemon that started again holds nothing");
    const third = await rig.ask(b, head);
    assert.equal(third.reset, "link/closed");
    assert.equal(problems(rig).at(-1), "too many");
    await rig.a.clock.advance(10_000);
    for (const link of links) await link.ping().catch(() => undefined);
    assert.deepEqual(
      links.map(({ closed }) => closed),
      [true, true],
    );
  });
});

/** The name of the manifest's own object, which is sealed with the same key. */
function statement(rig: PeerRig, from: Awaited<ReturnType<PeerRig["leave"]>>): string {
  const chunks = new Set(rig.names(from));
  const [name] = [...rig.store.held.keys()]
    .map((key) => key.split("/").at(-1) ?? "")
    .filter((word) => /^[0-9a-f]{64}$/.test(word) && !chunks.has(word));
  return name ?? assert.fail("nothing but chunks is stored");
}

describe("a giving worker that does not do what it should: the move goes on by the store, and says so", () => {
  const hostile: readonly (readonly [what: string, giving: Giving, problem: HandOverFailure])[] = [
    [
      "R-5: alters a chunk",
      (stream, sealed) => {
        const altered = Buffer.from(sealed);
        altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
        sayHead(stream, altered.length);
        stream.send(altered);
        stream.end();
      },
      "altered",
    ],
    [
      "R-5: gives other bytes altogether",
      (stream) => {
        sayHead(stream, 3);
        stream.send(Buffer.from("abc"));
        stream.end();
      },
      "altered",
    ],
    [
      "ends before it has said all",
      (stream, sealed) => {
        sayHead(stream, sealed.length);
        stream.send(sealed.subarray(0, 10));
        stream.end();
      },
      "broken off",
    ],
    [
      "says more than it announced",
      (stream, sealed) => {
        sayHead(stream, 1);
        stream.send(sealed);
        stream.end();
      },
      "protocol",
    ],
    ["announces more than a chunk can have", (stream) => sayHead(stream, 2 ** 30), "protocol"],
    ["answers with something else", (stream) => stream.sendHead('{"status":200}', true), "protocol"],
    [
      "dies half way",
      (stream, sealed, socket) => {
        sayHead(stream, sealed.length);
        stream.send(sealed.subarray(0, 10));
        setImmediate(() => setImmediate(() => socket.destroy()));
      },
      "broken off",
    ],
    ["refuses", (stream) => stream.reset("hand-over/refused"), "refused"],
  ];
  for (const [what, giving, problem] of hostile) {
    test(what, async (context) => {
      let asked = 0;
      const counted: Giving = (...given) => {
        asked += 1;
        giving(...given);
      };
      const rig = await PeerRig.open(context, { giving: counted });
      await fallsBack(rig, problem);
      faultLanded("it was asked", asked);
    });
  }

  test("is not there", async (context) => {
    const rig = await PeerRig.open(context);
    await fallsBack(rig, "unreachable", await deafPort());
  });

  test("R-2: is another component at its address, with a certificate of this mesh", async (context) => {
    const asked: string[] = [];
    const giving: Giving = () => asked.push("asked");
    const rig = await PeerRig.open(context, { giving, givingAs: "gateway" });
    await fallsBack(rig, "other component");
    assert.deepEqual(asked, [], "and it is told nothing");
  });

  test("says nothing: one limit of time, and not one for each chunk", async (context) => {
    const silent = Promise.withResolvers<void>();
    const rig = await PeerRig.open(context, { giving: () => silent.resolve() });
    const from = await rig.leave();
    const arriving = rig.arrive(from);
    await silent.promise;
    await rig.b.clock.advance(5000);
    assert.equal(await arriving, files);
    assertFellBack(rig, "too slow", rig.names(from).length);
  });

  test("a grant that has run out on the way: what is left comes from the store", async (context) => {
    const rig = await PeerRig.open(context);
    const from = await rig.leave();
    const issuedAtSeconds = Math.floor(rig.a.clock.wallMs() / 1000);
    const grant = rig.grant(from, {
      issuedAtSeconds: issuedAtSeconds - 50,
      expiresAtSeconds: issuedAtSeconds,
    });
    assert.equal(await rig.arrive(from, grant), files);
    assertFellBack(rig, "refused", rig.names(from).length);
    assert.ok(problems(rig).every((problem) => problem === "time"));
  });
});

async function fallsBack(rig: PeerRig, problem: HandOverFailure, port?: number): Promise<void> {
  const from = await rig.leave();
  assert.equal(await rig.arrive(from, rig.grant(from), port), files, "it runs, with its files");
  assertFellBack(rig, problem, rig.names(from).length);
}

function assertFellBack(rig: PeerRig, problem: HandOverFailure, chunks: number): void {
  const [received, ...more] = rig.b.audit.of("hand-over/received");
  assert.deepEqual(more, []);
  assert.deepEqual([received?.direct, received?.stored, received?.problem], [0, chunks, problem]);
  const { chunksReceived, chunksNotReceived } = rig.b.worker.stats();
  assert.deepEqual([chunksReceived, chunksNotReceived], [0, chunks]);
}
