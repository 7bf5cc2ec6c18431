// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the model's `identity.ts`, in front of the real one (see loader.ts). Its JSON form is made once of each
// frozen identity and is frozen too, and reading that very object says what it was made of. Every other object, and in a
// world of real keys every object, is judged by the real functions; and so are all comparisons.

import type * as Model from "@space/model";
import { areKeysReal } from "./stand-in-crypto.ts";

type ExecutionIdentity = Model.ExecutionIdentity;
type IdentityJson = Model.IdentityJson;
type RealModule = Pick<
  typeof Model,
  | "compareIdentity"
  | "freezeIdentity"
  | "identityToJson"
  | "members"
  | "parseIdentity"
  | "parsePodUid"
  | "parseSubstrateName"
  | "placementOn"
  | "sameRoute"
>;

const real: RealModule = await import(new URL("../../model/src/identity.ts", import.meta.url).href);

export const {
  compareIdentity,
  freezeIdentity,
  members,
  parsePodUid,
  parseSubstrateName,
  placementOn,
  sameRoute,
} = real;

const forms = new WeakMap<ExecutionIdentity, IdentityJson>();
const identities = new WeakMap<object, ExecutionIdentity>();

/** Whether this is the frozen form of an identity, which needs no copy. */
export function isFixedForm(value: object): boolean {
  return identities.has(value);
}

export function identityToJson(identity: ExecutionIdentity): IdentityJson {
  const known = forms.get(identity);
  if (known !== undefined) return known;
  const form = real.identityToJson(identity);
  if (areKeysReal() || !isFrozen(identity)) return form;
  Object.freeze(form.placement);
  Object.freeze(form.activation);
  forms.set(identity, Object.freeze(form));
  identities.set(form, identity);
  return form;
}

export function parseIdentity(value: unknown): ExecutionIdentity {
  const known = typeof value === "object" && value !== null ? identities.get(value) : undefined;
  return known ?? real.parseIdentity(value);
}

function isFrozen(identity: ExecutionIdentity): boolean {
  const { placement, activation } = identity;
  return Object.isFrozen(identity) && Object.isFrozen(placement) && Object.isFrozen(activation);
}
