// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ControlScope, PortProtocol } from "../access.ts";
import type { SandboxId } from "../ids.ts";
import type { RouteEntry } from "../route.ts";
import type { Secret } from "../secret.ts";

/** What the caller of a data-path request showed. */
export type CallerCredential =
  | { readonly kind: "none" }
  | { readonly kind: "access-token"; readonly token: Secret<string> }
  | {
      readonly kind: "file-signature";
      readonly operation: "read" | "write";
      readonly path: string;
      readonly username: string;
      readonly signature: Secret<string>;
      readonly expiresAtSeconds: number | undefined;
    };

export type WantedAccess =
  | { readonly purpose: "control"; readonly scope: ControlScope }
  | { readonly purpose: "service-port"; readonly port: number; readonly protocol: PortProtocol };

export interface ResolveRequest {
  readonly sandboxId: SandboxId;
  readonly credential: CallerCredential;
  readonly wanted: WantedAccess;
  /** thumbprint of the TLS certificate with which the gateway will present the capability. */
  readonly presenter: string;
  /** What is paused and may be woken by a request is made to run first. */
  readonly wakes?: true;
}

export type ResolveAnswer =
  | { readonly kind: "entry"; readonly entry: RouteEntry }
  /** No such sandbox, or not the caller's, or what ran is lost: they look alike outside, and nothing is worth waiting for. */
  | { readonly kind: "not-found" }
  /** It exists and the caller may know, but nothing runs. `wakeable`: this caller's request would wake it. */
  | { readonly kind: "not-running"; readonly wakeable?: true }
  | { readonly kind: "unauthenticated"; readonly problem: "missing" | "wrong" | "signature-expired" };

/**
 * Where a gateway gets its entries: the control plane. Throws a `SpaceError` of kind `unavailable` when it cannot be asked:
 * never confused with `not-found`.
 */
export interface RouteSource {
  resolve(request: ResolveRequest): Promise<ResolveAnswer>;
}
