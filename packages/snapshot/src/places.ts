// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyScope } from "@space/model";

/** Where the living chunks of a scope are. */
export function livePrefix({ tenantId, keyId }: KeyScope): string {
  return `chunks/${tenantId}/${keyId}/`;
}

/** A folder for each of 256 beginnings, so that no folder becomes too long. */
export function livePlace(scope: KeyScope, name: string): string {
  return `${livePrefix(scope)}${name.slice(0, 2)}/${name}`;
}

/** Where chunks wait that nothing seems to need: by the batch in which they were put there. */
export function condemnedPrefix({ tenantId, keyId }: KeyScope): string {
  return `condemned/${tenantId}/${keyId}/`;
}

export function condemnedPlace(scope: KeyScope, batch: string, name: string): string {
  return `${condemnedPrefix(scope)}${batch}/${name}`;
}

/** The last word of a key. */
export function nameIn(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** The batch of a condemned chunk's key. */
export function batchIn(key: string): string {
  return key.split("/")[3] ?? "";
}
