// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { capabilityOf } from "./token-vectors.ts";
import {
  claimsJson,
  identityJson,
  issuedAt,
  otherPresenter,
  otherTarget,
  portAccess,
  presenter,
  target,
} from "./vector-identities.ts";

/** One request before the comparator: a verified capability against a receiver's record. */
export interface AdmissionVector {
  readonly name: string;
  readonly rule: string;
  readonly token: string;
  readonly target: string;
  readonly record: { readonly state: "installed" | "retired"; readonly identity: object } | null;
  readonly presenter: string;
  readonly needed:
    | { readonly purpose: "control"; readonly scope: string | null }
    | { readonly purpose: "service-port"; readonly port: number; readonly protocol: string };
  readonly nowMs: number;
  readonly verdict: "match" | "refresh-route" | "deny";
  /** For the audit log; nobody outside sees it. */
  readonly reason: string | null;
}

const installed = { state: "installed", identity: identityJson() } as const;
const good = {
  token: capabilityOf({}),
  target,
  record: installed,
  presenter,
  needed: { purpose: "control", scope: "files:read" },
  nowMs: issuedAt * 1000 + 500,
} as const;

type Change = Partial<Omit<AdmissionVector, "name" | "rule" | "verdict" | "reason">>;
const vector = (name: string, rule: string, verdict: string, change: Change = {}): AdmissionVector => {
  const [kind = "", reason = null] = verdict.split(" ");
  return { name, rule, ...good, ...change, verdict: kind as AdmissionVector["verdict"], reason };
};

function times(): readonly AdmissionVector[] {
  const at = (seconds: number, verdict: string): AdmissionVector =>
    vector(`${seconds} s after the issue`, "R-9", verdict, {
      nowMs: issuedAt * 1000 + Math.round(seconds * 1000),
    });
  return [
    at(-15.001, "deny not-yet"),
    at(-15, "match"),
    at(119.9, "match"),
    at(120, "match"),
    at(134.9, "match"),
    at(134.999, "match"),
    at(135, "deny expired"),
    vector("a lifetime of 121 s", "R-9", "deny lifetime", { token: capabilityOf({ exp: issuedAt + 121 }) }),
    vector("a lifetime of 0 s", "R-9", "deny lifetime", { token: capabilityOf({ exp: issuedAt }) }),
  ];
}

function bindings(): readonly AdmissionVector[] {
  const port = (change: object, verdict: string): AdmissionVector =>
    vector(`port: ${verdict}`, "R-17", verdict, {
      token: capabilityOf({ access: portAccess }),
      needed: { ...portAccess, ...change },
    });
  const scope = (name: string | null, verdict: string): AdmissionVector =>
    vector(`scope ${name ?? "of an operation in no table"}`, "R-8", verdict, {
      needed: { purpose: "control", scope: name },
    });
  return [
    vector("presented by another component", "R-7", "deny presenter", { presenter: otherPresenter }),
    scope("process:run", "match"),
    scope("files:write", "deny scope"),
    scope(null, "deny scope"),
    port({}, "match"),
    port({ port: 8081 }, "deny port"),
    port({ protocol: "websocket" }, "deny protocol"),
    vector("a port with a control capability", "R-13", "deny purpose", { needed: portAccess }),
    vector("control with a port's capability", "R-13", "deny purpose", {
      token: capabilityOf({ access: portAccess }),
    }),
  ];
}

function identities(): readonly AdmissionVector[] {
  const against = (
    name: string,
    change: Parameters<typeof identityJson>[0],
    verdict: string,
  ): AdmissionVector =>
    vector(name, "R-13", verdict, { record: { ...installed, identity: identityJson(change) } });
  const other = claimsJson({ sbx: identityJson({ sandboxId: otherTarget }) });
  return [
    vector("the installed execution", "R-13", "match"),
    against("an older generation", { generation: "8" }, "refresh-route older-generation"),
    against("a newer generation", { generation: "6" }, "refresh-route newer-generation"),
    against("another worker", { worker: "v" }, "refresh-route other-placement"),
    against("another substrate", { substrate: "qemu" }, "refresh-route other-placement"),
    against("another pod", { podUid: "4f2a-2" }, "refresh-route other-placement"),
    against("another activation", { activation: "f" }, "refresh-route other-activation"),
    against("another attempt", { attempt: 2 }, "refresh-route other-activation"),
    vector("a retired execution", "R-13", "refresh-route retired", {
      record: { ...installed, state: "retired" },
    }),
    vector("not installed", "R-13", "refresh-route not-installed", { record: null }),
    vector("a capability for another sandbox", "R-13", "deny other-sandbox", { token: capabilityOf(other) }),
    vector("a capability for another sandbox, nothing installed", "R-13", "deny other-sandbox", {
      token: capabilityOf(other),
      record: null,
    }),
    vector("wrong presenter and another sandbox: the first check decides", "R-13", "deny presenter", {
      token: capabilityOf(other),
      presenter: otherPresenter,
    }),
  ];
}

/** Every request with the verdict of the table. */
export function admissionVectors(): readonly AdmissionVector[] {
  return [...times(), ...bindings(), ...identities()];
}
