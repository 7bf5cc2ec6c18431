// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { type ExecutionExit, isSpaceError } from "@space/model";
import { processEvidence } from "@space/platform-linux";
import { faultLanded } from "../src/fault-landed.ts";
import { eventually, GuestHost } from "../src/guest-host.ts";
import { needsRunsc } from "../src/needs-runsc.ts";
import { freezeForSnapshot } from "../src/saved-guest.ts";
import { memoryContract } from "./substrate-memory.ts";

memoryContract("gvisor", needsRunsc);

describe("snapshots with memory that fail, gvisor", { skip: needsRunsc, timeout: 120_000 }, () => {
  let host: GuestHost;
  before(async () => {
    host = await GuestHost.open("gvisor");
  });
  after(() => host.close());

  it("say that a sandbox is lost when its checkpoint fails, and leave nothing of it", async () => {
    const exits: ExecutionExit[] = [];
    host.substrate.onExit((exit) => exits.push(exit));
    const guest = await host.start();
    await freezeForSnapshot(host, guest);
    const kernel = Number(readFileSync(`${host.folder}/state/activations/${guest.activationId}/pid`, "utf8"));
    faultLanded("its kernel is at hand", processEvidence(kernel).pid === kernel ? 1 : 0);
    process.kill(kernel, "SIGKILL");
    await assert.rejects(
      host.substrate.snapshot(guest.activationId)[Symbol.asyncIterator]().next(),
      (error) => isSpaceError(error, "snapshot/fatal"),
    );
    await eventually("the exit", () => exits.length > 0);
    assert.deepEqual(
      exits.map(({ activationId }) => activationId),
      [guest.activationId],
    );
    assert.equal(await host.substrate.thaw(guest.activationId), false);
    await host.substrate.stop(guest.activationId);
    assert.deepEqual(await host.substrate.list(), []);
  });
});
