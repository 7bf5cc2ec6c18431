// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ListSandboxes, parseSandboxId, type SandboxView, SpaceError } from "@space/model";

type Order = ListSandboxes["order"];
type Position = NonNullable<ListSandboxes["after"]>;

const lengthLimit = 128;
const form = /^(asc|desc) (0|[1-9][0-9]{0,15}) (i[a-z0-9]{20})$/;

/**
 * Where the next page begins, opaque to the caller. It carries no authority: a forged one only chooses where in the
 * caller's own list to go on.
 */
export function cursorAfter(last: SandboxView, order: Order): string {
  return Buffer.from(`${order} ${last.startedAtMs} ${last.sandboxId}`).toString("base64url");
}

/** Throws `input/invalid` for what no page of this order returned. */
export function parseCursor(text: string, order: Order): Position {
  const plain = text.length <= lengthLimit ? Buffer.from(text, "base64url").toString("latin1") : "";
  const [, foundOrder, startedAtMs, sandboxId] = form.exec(plain) ?? [];
  if (foundOrder !== order || Buffer.from(plain, "latin1").toString("base64url") !== text) {
    throw new SpaceError("input/invalid", {
      field: "nextToken",
      problem: "must come from the page before, of the same list",
    });
  }
  return { startedAtMs: Number(startedAtMs), sandboxId: parseSandboxId(sandboxId) };
}
