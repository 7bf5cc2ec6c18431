// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivateAnswer,
  type ActivateRequest,
  type Chunk,
  type Digest,
  type ExecutionIdentity,
  type ExecutionLimits,
  identityToJson,
  type MemoryKept,
  manifestVersion,
  members,
  parseDigest,
  parseIdentity,
  parseSandboxId,
  parseTenantId,
  parseTenantKeyId,
  Secret,
  type SnapshotAnswer,
  type SnapshotManifest,
  SpaceError,
  snapshotChunkLimit,
  type TenantKey,
  type WorkerInventory,
} from "@space/model";

/** Longest token (certificate, retirement, bundle) in a command. A signed manifest has its own limit. */
const tokenLimitBytes = 64 * 1024;
const signedManifestLimitBytes = 512 * 1024;
/** Most executions (running and frozen) that one worker may name. */
export const inventoryLimit = 2000;
const variablesLimit = 512;
const variableLimitBytes = 64 * 1024;
const tenantKeyBytes = 32;

function bad(field: string, problem: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem });
}

/** A string of at most `limit` characters. Throws `input/invalid`. */
export function parseText(value: unknown, field: string, limit = tokenLimitBytes): string {
  if (typeof value !== "string" || value.length > limit) throw bad(field, "must be a bounded string");
  return value;
}

export function parseBoolean(value: unknown, field: string): boolean {
  if (typeof value !== "boolean") throw bad(field, "must be a boolean");
  return value;
}

export function parseInteger(value: unknown, field: string, least: number, most: number): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least || value > most) {
    throw bad(field, "must be an integer within its bounds");
  }
  return value;
}

export function parseNullableDigest(value: unknown): Digest | null {
  return value === null ? null : parseDigest(value);
}

export function manifestToJson(manifest: SnapshotManifest): unknown {
  return { ...manifest, identity: identityToJson(manifest.identity) };
}

/** Reads a manifest strictly. It says nothing about who signed it. Throws `input/invalid`. */
export function parseManifestJson(value: unknown): SnapshotManifest {
  requireVersion(value);
  const manifest = members(value, "manifest", [
    "version",
    "identity",
    "certificate",
    "previousManifest",
    "chain",
    "keyId",
    "substrate",
    "memory",
    "filesystem",
    "createdAtSeconds",
  ]);
  const identity = parseIdentity(manifest["identity"]);
  if (manifest["substrate"] !== identity.placement.substrate) throw bad("substrate", "is not the identity's");
  return {
    version: manifestVersion,
    identity,
    certificate: parseDigest(manifest["certificate"]),
    previousManifest: parseNullableDigest(manifest["previousManifest"]),
    chain: parseDigest(manifest["chain"]),
    keyId: parseTenantKeyId(manifest["keyId"]),
    substrate: identity.placement.substrate,
    memory: parseMemoryKept(manifest["memory"]),
    filesystem: parseChunks(manifest["filesystem"]),
    createdAtSeconds: parseInteger(manifest["createdAtSeconds"], "createdAtSeconds", 0, 2 ** 40),
  };
}

/** What another version has in it is not known here, so it is looked at first. */
function requireVersion(value: unknown): void {
  const version = typeof value === "object" && value !== null && "version" in value && value.version;
  if (version === manifestVersion) return;
  if (typeof version !== "number" || !Number.isSafeInteger(version)) throw bad("version", "is none");
  throw new SpaceError("snapshot/version", { version });
}

/** The key in the clear: only for the link from the control plane to a worker, which is encrypted. */
export function tenantKeyToJson({ tenantId, keyId, secret }: TenantKey): unknown {
  return { tenantId, keyId, secret: Buffer.from(secret.reveal()).toString("base64url") };
}

/** Reads a key strictly. What is refused is not in the error. Throws `input/invalid`. */
export function parseTenantKey(value: unknown): TenantKey {
  const key = members(value, "key", ["tenantId", "keyId", "secret"]);
  const secret = Buffer.from(parseText(key["secret"], "secret", 64), "base64url");
  if (secret.length !== tenantKeyBytes || secret.toString("base64url") !== key["secret"])
    throw bad("secret", "is no key");
  return {
    tenantId: parseTenantId(key["tenantId"]),
    keyId: parseTenantKeyId(key["keyId"]),
    secret: new Secret(new Uint8Array(secret)),
  };
}

function parseMemoryKept(value: unknown): MemoryKept {
  if (value === "none" || value === "frozen-on-worker" || value === "in-snapshot") return value;
  throw bad("memory", "is not known");
}

function parseChunks(value: unknown): readonly Chunk[] {
  if (!Array.isArray(value) || value.length > snapshotChunkLimit)
    throw bad("filesystem", "must be a bounded list");
  return value.map((item: unknown) => {
    const chunk = members(item, "chunk", ["digest", "sizeBytes"]);
    return {
      digest: parseDigest(chunk["digest"]),
      sizeBytes: parseInteger(chunk["sizeBytes"], "sizeBytes", 1, 2 ** 30),
    };
  });
}

export function activateRequestToJson(request: ActivateRequest): unknown {
  const { from } = request;
  return {
    identity: identityToJson(request.identity),
    tenantId: request.tenantId,
    template: request.template,
    limits: request.limits,
    variables: request.variables,
    ...(from === undefined
      ? {}
      : { from: { ...from, manifest: manifestToJson(from.manifest), key: tenantKeyToJson(from.key) } }),
  };
}

export function parseActivateRequest(value: unknown): ActivateRequest {
  const whole = members(
    value,
    "activate",
    ["identity", "tenantId", "template", "limits", "variables"],
    ["from"],
  );
  const request = {
    identity: parseIdentity(whole["identity"]),
    tenantId: parseTenantId(whole["tenantId"]),
    template: parseText(whole["template"], "template", 256),
    limits: parseLimits(whole["limits"]),
    variables: parseVariables(whole["variables"]),
  };
  if (whole["from"] === undefined) return request;
  const from = members(
    whole["from"],
    "from",
    ["manifest", "digest", "memory", "key", "head", "since"],
    ["peer"],
  );
  return {
    ...request,
    from: {
      ...(from["peer"] === undefined ? {} : { peer: parsePeer(from["peer"]) }),
      manifest: parseManifestJson(from["manifest"]),
      digest: parseDigest(from["digest"]),
      memory: parseMemoryKept(from["memory"]),
      key: parseTenantKey(from["key"]),
      head: parseText(from["head"], "head"),
      since: parseNullableDigest(from["since"]),
    },
  };
}

/** Where a peer is only locates it: who it is, its certificate says. */
function parsePeer(value: unknown): NonNullable<NonNullable<ActivateRequest["from"]>["peer"]> {
  const { host, port, grant } = members(value, "peer", ["host", "port", "grant"]);
  return {
    host: parseText(host, "host", 256),
    port: parseInteger(port, "port", 1, 65_535),
    grant: parseText(grant, "grant", 2048),
  };
}

function parseLimits(value: unknown): ExecutionLimits {
  const limits = members(value, "limits", ["memoryBytes", "cpus", "processes", "diskBytes"]);
  const { cpus } = limits;
  if (typeof cpus !== "number" || !(cpus > 0 && cpus <= 1024)) throw bad("cpus", "must be within its bounds");
  return {
    memoryBytes: parseInteger(limits["memoryBytes"], "memoryBytes", 1, 2 ** 50),
    cpus,
    processes: parseInteger(limits["processes"], "processes", 1, 2 ** 22),
    diskBytes: parseInteger(limits["diskBytes"], "diskBytes", 1, 2 ** 50),
  };
}

function parseVariables(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad("variables", "must be an object");
  const entries = Object.entries(value);
  if (entries.length > variablesLimit) throw bad("variables", "are too many");
  return Object.fromEntries(
    entries.map(([name, text]) => [name, parseText(text, "variables", variableLimitBytes)]),
  );
}

export function parseActivateAnswer(value: unknown): ActivateAnswer {
  const answer = members(value, "answer", ["publicKey", "memory"]);
  if (typeof answer["memory"] !== "boolean") throw bad("memory", "must be a boolean");
  return { publicKey: parseText(answer["publicKey"], "publicKey", 64), memory: answer["memory"] };
}

export function parseSnapshotAnswer(value: unknown): SnapshotAnswer {
  const answer = members(value, "answer", ["manifest", "signed"]);
  return {
    manifest: parseManifestJson(answer["manifest"]),
    signed: parseText(answer["signed"], "signed", signedManifestLimitBytes),
  };
}

/** What `snapshot` and `abortPause` name. */
export function parseIdentityParameter(value: unknown): ExecutionIdentity {
  return parseIdentity(members(value, "params", ["identity"])["identity"]);
}

export function inventoryToJson({ installed, frozen }: WorkerInventory): unknown {
  return { installed: installed.map(identityToJson), frozen };
}

/** Throws `input/invalid`. */
export function parseInventory(value: unknown): WorkerInventory {
  const inventory = members(value, "inventory", ["installed", "frozen"]);
  return {
    installed: list(inventory["installed"], "installed").map(parseIdentity),
    frozen: list(inventory["frozen"], "frozen").map((item) => {
      const { sandboxId, manifest } = members(item, "frozen", ["sandboxId", "manifest"]);
      return { sandboxId: parseSandboxId(sandboxId), manifest: parseDigest(manifest) };
    }),
  };
}

function list(value: unknown, field: string): readonly unknown[] {
  if (Array.isArray(value) && value.length <= inventoryLimit) return value;
  throw bad(field, "must be a bounded list");
}
