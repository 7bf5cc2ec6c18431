// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type CallerCredential, Secret } from "@space/model";

/** What the caller showed, with the text under which its entries are cached. The text holds secrets. */
export interface ShownCredential {
  readonly credential: CallerCredential;
  readonly cacheText: string;
}

export type CredentialOutcome =
  | { readonly kind: "shown"; readonly shown: ShownCredential }
  /** The operation needs a credential and there is none: refused before anything is looked up (incident 25). */
  | { readonly kind: "missing" }
  | { readonly kind: "bad"; readonly problem: string };

const none: CredentialOutcome = {
  kind: "shown",
  shown: { credential: { kind: "none" }, cacheText: "n" },
};

/** For the user's own ports: public unless the control plane says otherwise. */
export function portCredential(): CredentialOutcome {
  return none;
}

/**
 * For the agent's port. The header wins over a signature. Only `GET /health` may come without either; it never carries
 * one on, so that all callers share its entry.
 */
export function controlCredential(
  method: string,
  path: string,
  accessToken: string | undefined,
): CredentialOutcome {
  if (method === "GET" && (path === "/health" || path.startsWith("/health?"))) return none;
  if (accessToken !== undefined) {
    const credential: CallerCredential = { kind: "access-token", token: new Secret(accessToken) };
    return { kind: "shown", shown: { credential, cacheText: `t${accessToken}` } };
  }
  return path.startsWith("/files?") ? signedFile(method, path) : { kind: "missing" };
}

const signed = ["path", "username", "signature", "signature_expiration"] as const;

function signedFile(method: string, path: string): CredentialOutcome {
  const query = new URLSearchParams(path.slice("/files?".length));
  const signature = query.get("signature");
  if (signature === null || signature === "") return { kind: "missing" };
  // A parameter given twice could be signed as one value and served as the other.
  for (const name of signed)
    if (query.getAll(name).length > 1) return { kind: "bad", problem: `${name} twice` };
  const expiry = query.get("signature_expiration");
  if (expiry !== null && !/^[0-9]{1,15}$/.test(expiry))
    return { kind: "bad", problem: "bad signature_expiration" };
  const credential: CallerCredential = {
    kind: "file-signature",
    operation: method === "GET" || method === "HEAD" ? "read" : "write",
    path: query.get("path") ?? "",
    username: query.get("username") ?? "",
    signature: new Secret(signature),
    expiresAtSeconds: expiry === null ? undefined : Number(expiry),
  };
  const { operation, username } = credential;
  const cacheText = `f${JSON.stringify([operation, credential.path, username, signature, expiry])}`;
  return { kind: "shown", shown: { credential, cacheText } };
}
