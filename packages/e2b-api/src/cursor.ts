// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ListSandboxes,
  type ListSnapshots,
  parseSandboxId,
  parseSnapshotId,
  type SandboxView,
  type SnapshotView,
  SpaceError,
} from "@space/model";

type Order = ListSandboxes["order"];
type Position = NonNullable<ListSandboxes["after"]>;

const lengthLimit = 128;
const snapshotForm = /^(0|[1-9][0-9]{0,15}) (s[a-z0-9]{19})$/;
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
  const [, foundOrder, startedAtMs, sandboxId] = form.exec(plainOf(text)) ?? [];
  if (foundOrder !== order) throw wrongCursor();
  return { startedAtMs: Number(startedAtMs), sandboxId: parseSandboxId(sandboxId) };
}

/** As {@link cursorAfter}, in the list of snapshots. */
export function snapshotCursorAfter({ createdAtMs, snapshotId }: SnapshotView): string {
  return Buffer.from(`${createdAtMs} ${snapshotId}`).toString("base64url");
}

/** Throws `input/invalid` for what no page returned. */
export function parseSnapshotCursor(text: string): NonNullable<ListSnapshots["after"]> {
  const [, createdAtMs, snapshotId] = snapshotForm.exec(plainOf(text)) ?? [];
  if (snapshotId === undefined) throw wrongCursor();
  return { createdAtMs: Number(createdAtMs), snapshotId: parseSnapshotId(snapshotId) };
}

/** Empty for what is not spelt as a cursor is. */
function plainOf(text: string): string {
  const plain = text.length <= lengthLimit ? Buffer.from(text, "base64url").toString("latin1") : "";
  return Buffer.from(plain, "latin1").toString("base64url") === text ? plain : "";
}

function wrongCursor(): SpaceError {
  return new SpaceError("input/invalid", {
    field: "nextToken",
    problem: "must come from the page before, of the same list",
  });
}
