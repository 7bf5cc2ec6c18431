// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { SigningKeyChange, SigningKeyState, SigningKeyStore } from "@space/model";
import type { OpenedStore } from "./sandbox-store.ts";

const kidOf = (letter: string): string => letter.repeat(43);

/** One step with a bundle, whose token names its version. */
function step(
  onVersion: number,
  atMs: number,
  ...changes: readonly SigningKeyChange[]
): Parameters<SigningKeyStore["change"]>[0] {
  return { onVersion, bundle: { version: onVersion + 1, token: `bundle ${onVersion + 1}` }, changes, atMs };
}

const announce = (letter: string): SigningKeyChange => ({
  kind: "announce",
  kid: kidOf(letter),
  publicKey: kidOf(letter.toUpperCase()),
});
const promote = (letter: string): SigningKeyChange => ({ kind: "promote", kid: kidOf(letter) });
const end = (letter: string, as: "removed" | "revoked"): SigningKeyChange => ({
  kind: "end",
  kid: kidOf(letter),
  as,
});

export function signingKeyStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (context: TestContext): Promise<{ store: OpenedStore; keys: SigningKeyStore }> => {
    const store = await open();
    context.after(() => store.dispose());
    return { store, keys: store.signingKeys };
  };
  const states = async (keys: SigningKeyStore): Promise<readonly SigningKeyState[]> =>
    (await keys.all()).map(({ state }) => state);

  describe(`${name}: signing keys`, () => {
    test("R-10: a key goes from announced over signing and retiring to removed, and is never forgotten", async (context) => {
      const { store, keys } = await subject(context);
      assert.deepEqual([await keys.all(), await keys.bundles()], [[], []]);
      assert.equal(await keys.change(step(0, 10, announce("a"))), true);
      assert.equal(await keys.change({ ...step(1, 20, promote("a")), bundle: null }), true);
      assert.equal(await keys.change(step(1, 30, announce("b"))), true);
      assert.equal(await keys.change({ ...step(2, 40, promote("b")), bundle: null }), true);
      assert.deepEqual(await states(keys), ["retiring", "signing"]);
      assert.equal(await keys.change(step(2, 50, end("a", "removed"))), true);
      const reopened = await store.reopen();
      context.after(() => reopened.dispose());
      const [first, second] = await reopened.signingKeys.all();
      assert.deepEqual(first, {
        kid: kidOf("a"),
        publicKey: kidOf("A"),
        state: "removed",
        announcedIn: 1,
        announcedAtMs: 10,
        signingSinceMs: 20,
        retiringSinceMs: 40,
        endedAtMs: 50,
        endedIn: 3,
        revokeAskedAtMs: null,
      });
      assert.deepEqual([second?.state, second?.announcedIn], ["signing", 2]);
      assert.deepEqual(
        (await reopened.signingKeys.bundles()).map(({ version, token }) => [version, token]),
        [1, 2, 3].map((version) => [version, `bundle ${version}`]),
      );
    });

    test("R-10: a step that was decided on another bundle writes nothing at all", async (context) => {
      const { keys } = await subject(context);
      await keys.change(step(0, 1, announce("a")));
      assert.equal(await keys.change(step(0, 2, announce("b"))), false, "not the newest version");
      assert.equal(await keys.change(step(2, 2, announce("b"))), false, "a version that is not there");
      assert.deepEqual([await states(keys), (await keys.bundles()).length], [["announced"], 1]);
    });

    test("R-10: a change that the key's state forbids undoes the step with its bundle", async (context) => {
      const { keys } = await subject(context);
      await keys.change(step(0, 1, announce("a")));
      await keys.change({ ...step(1, 2, promote("a")), bundle: null });
      for (const change of [
        promote("a"),
        end("a", "removed"),
        end("a", "revoked"),
        promote("x"),
        end("x", "revoked"),
        { kind: "ask-revocation", kid: kidOf("x") } as const,
      ]) {
        assert.equal(await keys.change(step(1, 3, change)), false, JSON.stringify(change));
      }
      await keys.change(step(1, 4, announce("b")));
      assert.equal(await keys.change(step(2, 5, end("b", "removed"))), false, "it was never used");
      assert.equal(await keys.change(step(2, 5, end("b", "revoked"))), true);
      assert.equal(await keys.change({ ...step(3, 6, promote("b")), bundle: null }), false, "it has ended");
      assert.deepEqual([await states(keys), (await keys.bundles()).length], [["signing", "revoked"], 3]);
    });

    test("R-10: who asked first for a revocation is remembered", async (context) => {
      const { keys } = await subject(context);
      await keys.change(step(0, 1, announce("a")));
      for (const atMs of [7, 9]) {
        const change = { kind: "ask-revocation", kid: kidOf("a") } as const;
        assert.equal(await keys.change({ onVersion: 1, bundle: null, changes: [change], atMs }), true);
      }
      assert.equal((await keys.all())[0]?.revokeAskedAtMs, 7);
    });

    test("R-10: one key signs and one is announced, whoever tries for a second", async (context) => {
      const { keys } = await subject(context);
      await keys.change(step(0, 1, announce("a")));
      await assert.rejects(keys.change(step(1, 2, announce("b"))), { code: "internal/bug" });
      assert.deepEqual([await states(keys), (await keys.bundles()).length], [["announced"], 1]);
    });
  });
}
