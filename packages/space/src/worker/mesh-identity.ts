// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { Secret } from "@space/model";
import type { TlsIdentity } from "@space/mtls";
import { replaceFileNow } from "@space/platform-linux/durable-file";
import * as v from "valibot";

const schema = v.strictObject({
  name: v.string(),
  certificate: v.string(),
  key: v.string(),
  thumbprint: v.string(),
});

/** What a worker gets at enrolment: its own key and certificate, in a file that only root reads. The authority's key stays behind. */
export function writeMeshIdentity(path: string, identity: TlsIdentity): void {
  replaceFileNow(path, JSON.stringify({ ...identity, key: identity.key.reveal() }));
}

export function readMeshIdentity(path: string): TlsIdentity {
  const { key, ...rest } = v.parse(schema, JSON.parse(readFileSync(path, "utf8")));
  return { ...rest, key: new Secret(key) };
}
