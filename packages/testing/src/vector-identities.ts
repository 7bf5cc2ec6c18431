// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ExecutionIdentity, parseIdentity } from "@space/model";

/** The fixed sandbox, executions and claims that the vectors speak of. */
export const issuedAt = 1_800_000_000;
export const presenter: string = Buffer.alloc(32, 0x11).toString("base64url");
export const otherPresenter: string = Buffer.alloc(32, 0x22).toString("base64url");
export const target = `i${"a".repeat(20)}`;
export const otherTarget = `i${"b".repeat(20)}`;

/** The JSON form of an execution's identity, members in their order. */
export function identityJson(
  change: {
    readonly sandboxId?: string;
    readonly generation?: string;
    readonly worker?: string;
    readonly substrate?: string;
    readonly podUid?: string;
    readonly activation?: string;
    readonly attempt?: number;
  } = {},
) {
  const { sandboxId = target, generation = "7", worker = "w", activation = "c", attempt = 1 } = change;
  const { substrate = "namespace", podUid } = change;
  return {
    sandboxId,
    generation,
    placement: { workerId: `wrk_${worker.repeat(16)}`, substrate, ...(podUid !== undefined && { podUid }) },
    activation: { id: `act_${activation.repeat(26)}`, attempt },
  };
}

export function identityOf(change?: Parameters<typeof identityJson>[0]): ExecutionIdentity {
  return parseIdentity(identityJson(change));
}

/** The payload of the valid control capability, members in their order. */
export function claimsJson(change: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    iss: "space",
    jti: `cap_${"d".repeat(26)}`,
    iat: issuedAt,
    exp: issuedAt + 120,
    sbx: identityJson(),
    access: { purpose: "control", scopes: ["files:read", "process:run"] },
    caller: { tenantId: `ten_${"e".repeat(16)}`, principal: "key_1" },
    cnf: { "x5t#S256": presenter },
    ...change,
  };
}

export const portAccess = { purpose: "service-port", port: 8080, protocol: "http" } as const;
