// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { parseSnapshotId, type SnapshotId, SpaceError, type TenantId } from "@space/model";

const word = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}";
const form = new RegExp(`^(?:(${word})/)?(${word})(?::(${word}))?$`);
const defaultTag = "default";

/** What a text in a template's place may mean among a tenant's snapshots. */
export interface SnapshotReference {
  /** Where it has the form of one. */
  readonly snapshotId: SnapshotId | undefined;
  /** `name:tag` */
  readonly name: string;
}

/** E2B's `namespace/name:tag`; a tenant's namespace is its id. */
export function fullName(tenantId: TenantId, name: string): string {
  return `${tenantId}/${name}`;
}

/** What a create takes as its template. */
export function templateOf(snapshotId: SnapshotId): string {
  return `${snapshotId}:${defaultTag}`;
}

/** Undefined for what can mean no snapshot of this tenant. */
export function readReference(tenantId: TenantId, text: string): SnapshotReference | undefined {
  const [, namespace, name, tag = defaultTag] = form.exec(text) ?? [];
  if (name === undefined || (namespace !== undefined && namespace !== tenantId)) return undefined;
  const isId = namespace === undefined && tag === defaultTag && /^s[a-z0-9]{19}$/.test(name);
  return { snapshotId: isId ? parseSnapshotId(name) : undefined, name: `${name}:${tag}` };
}

/** A new snapshot's name as it is stored. Throws `input/invalid`. */
export function parseSnapshotName(tenantId: TenantId, text: string): string {
  const reference = readReference(tenantId, text);
  if (reference !== undefined && reference.snapshotId === undefined) return reference.name;
  throw new SpaceError("input/invalid", { field: "name", problem: "must be name or name:tag" });
}
