// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { newSigningKey } from "@space/capability";
import { openControlPlane } from "@space/control-plane";
import { Secret } from "@space/model";
import { memoryControlStore, type StoreTiming } from "../src/memory-control-store.ts";
import { MemoryControlTables } from "../src/memory-control-tables.ts";
import { MemoryKeyVault, MemoryRootKey } from "../src/memory-keys.ts";
import { RecordingAudit } from "../src/recording-audit.ts";
import { noSnapshots } from "../src/sealed-objects.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { VirtualClock } from "../src/virtual-clock.ts";

/** Every call of the store takes some turns, so that those of two replicas come in every order. */
function interleaved(random: SeededRandom): StoreTiming {
  const wait = async (): Promise<void> => {
    for (let turns = (random.bytes(1)[0] ?? 0) % 24; turns > 0; turns -= 1) await Promise.resolve();
  };
  const call = async <T>(action: () => T): Promise<T> => {
    await wait();
    const value = action();
    await wait();
    return value;
  };
  return { read: call, write: call };
}

test("R-4, R-10: replicas that open an empty store at the same time agree on one key that signs", async () => {
  const root = newSigningKey();
  for (let round = 0; round < 60; round += 1) {
    const random = new SeededRandom(`first key ${round}`);
    const clock = new VirtualClock();
    const tables = new MemoryControlTables();
    const privateKeys = new MemoryKeyVault();
    const open = (replica: string) => {
      const { receivers, ...stores } = memoryControlStore(tables, clock, interleaved(random));
      const tokenSecret = new Secret<Uint8Array>(new Uint8Array(32).fill(7));
      return openControlPlane(
        { issuer: "test", tokenSecret, replica },
        {
          ...stores,
          ...noSnapshots(),
          receiverStore: receivers,
          rootKey: new MemoryRootKey(root),
          privateKeys,
          clock,
          random,
          audit: new RecordingAudit(),
        },
      );
    };
    const opened = await Promise.all([open("one"), open("two")]);
    const signing = tables.signingKeys.all().filter(({ state }) => state === "signing");
    assert.equal(signing.length, 1, `round ${round}`);
    for (const control of opened) {
      const [kid] = control.keys.view().keys.flatMap((key) => (key.state === "signing" ? [key.kid] : []));
      assert.equal(kid, signing[0]?.kid, `round ${round}`);
      await control.close();
    }
  }
});
