// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Access,
  type Caller,
  type CapabilityClaims,
  type ControlScope,
  capabilityLimitBytes,
  controlScopes,
  identityToJson,
  members,
  parseCapabilityId,
  parseIdentity,
  parseTenantId,
  portProtocols,
} from "@space/model";
import { invalid, parse32Bytes, parseList, parseName, parseSeconds } from "./fields.ts";
import type { TokenKind } from "./jws.ts";

/** the token kind of a capability. */
export const capabilityKind: TokenKind<CapabilityClaims> = {
  typ: "space-cap+jwt",
  limitBytes: capabilityLimitBytes,
  read: readClaims,
};

/** The claims in their JSON form, in this order. */
export function claimsToJson(claims: CapabilityClaims): object {
  const { tenantId, principal } = claims.caller;
  return {
    iss: claims.issuer,
    jti: claims.id,
    iat: claims.issuedAtSeconds,
    exp: claims.expiresAtSeconds,
    sbx: identityToJson(claims.identity),
    access: claims.access,
    caller: { tenantId, principal },
    cnf: { "x5t#S256": claims.presenter },
  };
}

const names = ["iss", "jti", "iat", "exp", "sbx", "access", "caller", "cnf"];

function readClaims(payload: unknown): CapabilityClaims {
  const claims = members(payload, "capability", names);
  const cnf = members(claims["cnf"], "cnf", ["x5t#S256"]);
  return Object.freeze({
    issuer: parseName(claims["iss"], "iss"),
    id: parseCapabilityId(claims["jti"]),
    issuedAtSeconds: parseSeconds(claims["iat"], "iat"),
    expiresAtSeconds: parseSeconds(claims["exp"], "exp"),
    identity: parseIdentity(claims["sbx"]),
    access: readAccess(claims["access"]),
    caller: readCaller(claims["caller"]),
    presenter: parse32Bytes(cnf["x5t#S256"], "cnf"),
  });
}

function readCaller(value: unknown): Caller {
  const { tenantId, principal } = members(value, "caller", ["tenantId", "principal"]);
  return Object.freeze({
    tenantId: parseTenantId(tenantId),
    principal: parseName(principal, "principal"),
  });
}

function readAccess(value: unknown): Access {
  const purpose = members(value, "access", ["purpose"], ["scopes", "port", "protocol"])["purpose"];
  if (purpose === "control") {
    const { scopes } = members(value, "access", ["purpose", "scopes"]);
    return Object.freeze({ purpose, scopes: readScopes(scopes) });
  }
  if (purpose !== "service-port") throw invalid("purpose", "is not known");
  const { port, protocol } = members(value, "access", ["purpose", "port", "protocol"]);
  const known = portProtocols.find((name) => name === protocol);
  if (known === undefined) throw invalid("protocol", "is not known");
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw invalid("port", "must be 1 to 65535");
  }
  return Object.freeze({ purpose, port, protocol: known });
}

function readScopes(value: unknown): readonly ControlScope[] {
  const scopes: ControlScope[] = [];
  for (const name of parseList(value, "scopes", controlScopes.length)) {
    const scope = name as ControlScope; // cast: the next line refuses any other value
    if (!controlScopes.includes(scope) || scopes.includes(scope)) {
      throw invalid("scopes", "has an unknown or repeated one");
    }
    scopes.push(scope);
  }
  if (scopes.length === 0) throw invalid("scopes", "is empty");
  return Object.freeze(scopes);
}
