// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "./errors.ts";
import { type Generation, parseGeneration } from "./generation.ts";
import {
  type ActivationId,
  parseActivationId,
  parseSandboxId,
  parseWorkerId,
  type SandboxId,
  type WorkerId,
} from "./ids.ts";

/** Which driver runs an execution. */
export type SubstrateName = "namespace" | "gvisor" | "qemu" | "firecracker" | "kubernetes";

const substrates: ReadonlySet<string> = new Set(["namespace", "gvisor", "qemu", "firecracker", "kubernetes"]);

/** Where an execution runs. R-2: on Kubernetes `podUid` is part of it. An address never is. */
export interface Placement {
  readonly workerId: WorkerId;
  readonly substrate: SubstrateName;
  readonly podUid?: string;
}

/** the runtime process (`id`) and how often its activation was driven anew (`attempt`, from 1). */
export interface Activation {
  readonly id: ActivationId;
  readonly attempt: number;
}

/**
 * The one chosen runtime incarnation of a sandbox. Immutable; compared as a whole by {@link compareIdentity}.
 * who drives the sandbox's lifecycle is no part of it.
 */
export interface ExecutionIdentity {
  readonly sandboxId: SandboxId;
  readonly generation: Generation;
  readonly placement: Placement;
  readonly activation: Activation;
}

/** What differs first between a claimed identity and the installed one. */
export type IdentityComparison =
  | "identical"
  | "other-sandbox"
  | "older-generation"
  | "newer-generation"
  | "other-placement"
  | "other-activation";

/** compares a claimed identity with the installed one. The only place where identities are compared field by field. */
export function compareIdentity(
  claimed: ExecutionIdentity,
  installed: ExecutionIdentity,
): IdentityComparison {
  if (claimed.sandboxId !== installed.sandboxId) return "other-sandbox";
  if (claimed.generation < installed.generation) return "older-generation";
  if (claimed.generation > installed.generation) return "newer-generation";
  if (!samePlacement(claimed.placement, installed.placement)) return "other-placement";
  if (claimed.activation.id !== installed.activation.id) return "other-activation";
  if (claimed.activation.attempt !== installed.activation.attempt) return "other-activation";
  return "identical";
}

/** same sandbox, generation and placement, whatever the activation. */
export function sameRoute(a: ExecutionIdentity, b: ExecutionIdentity): boolean {
  return (
    a.sandboxId === b.sandboxId && a.generation === b.generation && samePlacement(a.placement, b.placement)
  );
}

function samePlacement(a: Placement, b: Placement): boolean {
  return a.workerId === b.workerId && a.substrate === b.substrate && a.podUid === b.podUid;
}

/** Copies into a fresh, deeply frozen object with exactly the known members. */
export function freezeIdentity(identity: ExecutionIdentity): ExecutionIdentity {
  const { workerId, substrate, podUid } = identity.placement;
  return Object.freeze({
    sandboxId: identity.sandboxId,
    generation: identity.generation,
    placement: Object.freeze(placementOn({ workerId, substrate, podUid })),
    activation: Object.freeze({ id: identity.activation.id, attempt: identity.activation.attempt }),
  });
}

/** The JSON form, members always in this order, so that equal identities have equal text. */
export interface IdentityJson {
  readonly sandboxId: string;
  readonly generation: string;
  readonly placement: { readonly workerId: string; readonly substrate: string; readonly podUid?: string };
  readonly activation: { readonly id: string; readonly attempt: number };
}

export function identityToJson(identity: ExecutionIdentity): IdentityJson {
  const { sandboxId, generation, placement, activation } = identity;
  return {
    sandboxId,
    generation: generation.toString(),
    placement: placementOn(placement),
    activation: { id: activation.id, attempt: activation.attempt },
  };
}

/** Reads the JSON form strictly: no unknown, missing or ill-formed member. Throws `input/invalid`. */
export function parseIdentity(value: unknown): ExecutionIdentity {
  const whole = members(value, "identity", ["sandboxId", "generation", "placement", "activation"]);
  const placement = members(whole["placement"], "placement", ["workerId", "substrate"], ["podUid"]);
  const activation = members(whole["activation"], "activation", ["id", "attempt"]);
  return freezeIdentity({
    sandboxId: parseSandboxId(whole["sandboxId"]),
    generation: parseGeneration(whole["generation"]),
    placement: parsePlacement(placement),
    activation: { id: parseActivationId(activation["id"]), attempt: parseAttempt(activation["attempt"]) },
  });
}

/** Throws `input/invalid`. */
export function parseSubstrateName(value: unknown): SubstrateName {
  if (typeof value !== "string" || !substrates.has(value)) throw bad("substrate", "is not known");
  return value as SubstrateName; // cast: in the set
}

function parsePlacement(value: Record<string, unknown>): Placement {
  const { workerId, substrate } = value;
  const podUid = parsePodUid(value["podUid"]);
  return placementOn({
    workerId: parseWorkerId(workerId),
    substrate: parseSubstrateName(substrate),
    podUid,
  });
}

/** Throws `input/invalid`. */
export function parsePodUid(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && /^[0-9a-zA-Z-]{1,64}$/.test(value)) return value;
  throw bad("podUid", "is not of its form");
}

/** the placement of what is started on this worker now. */
export function placementOn({
  workerId,
  substrate,
  podUid,
}: Omit<Placement, "podUid"> & { readonly podUid?: string | undefined }): Placement {
  return podUid === undefined ? { workerId, substrate } : { workerId, substrate, podUid };
}

function parseAttempt(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
  throw bad("attempt", "must be a positive integer");
}

function bad(field: string, problem: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem });
}

/** A plain object with all of `required`, perhaps some of `optional`, and nothing else. Throws `input/invalid`. */
export function members(
  value: unknown,
  field: string,
  required: readonly string[],
  optional: readonly string[] = [],
): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad(field, "must be an object");
  const object = value as Record<string, unknown>; // cast: a non-null, non-array object
  let found = 0;
  for (const name of Object.keys(object)) {
    if (required.includes(name)) found += 1;
    else if (!optional.includes(name)) throw bad(field, "has an unknown member");
  }
  if (found === required.length) return object;
  throw bad(field, `lacks ${required.find((name) => !Object.hasOwn(object, name))}`);
}
