// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** what a control capability may do in the guest. */
export const controlScopes = [
  "files:read",
  "files:write",
  "process:run",
  "process:attach",
  "pty",
  "watch",
  "metrics",
] as const;
export type ControlScope = (typeof controlScopes)[number];

/** what may be spoken to a service port. */
export const portProtocols = ["http", "websocket", "h2c", "tcp"] as const;
export type PortProtocol = (typeof portProtocols)[number];

/** what a capability gives access to. */
export type Access =
  | { readonly purpose: "control"; readonly scopes: readonly ControlScope[] }
  | { readonly purpose: "service-port"; readonly port: number; readonly protocol: PortProtocol };

/** What one request needs. `scope` is undefined for an operation that is in no table: always refused. */
export type NeededAccess =
  | { readonly purpose: "control"; readonly scope: ControlScope | undefined }
  | { readonly purpose: "service-port"; readonly port: number; readonly protocol: PortProtocol };
