// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { type Digest, type ExecutionIdentity, identityToJson, parseDigest } from "@space/model";

/** the name of a certificate in the chain: SHA-256 over the token's exact bytes. */
export function certificateDigest(token: string): Digest {
  return sha256(token);
}

/** the name of a snapshot manifest in the chain: SHA-256 over the exact bytes that the execution signed. */
export function manifestDigest(signed: string): Digest {
  return sha256(signed);
}

/** tells a rejected route apart from another without saying where it is. Equal exactly for equal identities. */
export function routeDigest(identity: ExecutionIdentity): Digest {
  return sha256(`space-route\n${JSON.stringify(identityToJson(identity))}`);
}

function sha256(text: string): Digest {
  return parseDigest(hash("sha256", text, "hex"));
}
