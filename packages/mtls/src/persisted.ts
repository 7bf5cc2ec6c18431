// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { X509Certificate } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";

import { Secret, SpaceError } from "@space/model";
import { replaceFile } from "@space/platform-linux/durable-file";

import {
  type Authority,
  createAuthority,
  type IssueRequest,
  issuePeer,
  issueServer,
  type TlsIdentity,
} from "./authority.ts";
import { parsePrivateKey } from "./certificate.ts";
import { readPrivate } from "./private-file.ts";
import { parseCertificate, thumbprintOf } from "./thumbprint.ts";

const keyMode = 0o600;
const publicMode = 0o644;
const dayMs = 86_400_000;
/** A certificate with less time left than this is replaced when it is loaded. */
export const renewBeforeMs = 60 * dayMs;

export interface MeshRequest {
  readonly directory: string;
  readonly nowMs: number;
}

/**
 * The authority of the private mesh, kept in `directory/mesh-authority.pem` (certificate and key, mode 0600). Made when
 * there is none; a damaged one is refused with `host/unfit`, for replacing it would cut off every component.
 */
export async function loadOrCreateMesh(request: MeshRequest): Promise<Authority> {
  const path = join(request.directory, "mesh-authority.pem");
  const found = await readBundle(path);
  if (found !== undefined) return toAuthority(found, path, request.nowMs);
  const authority = createAuthority({ commonName: "SPACE mesh authority", nowMs: request.nowMs });
  await write(path, authority.certificate + authority.key.reveal(), keyMode);
  return authority;
}

export interface PeerRequest {
  readonly directory: string;
  readonly nowMs: number;
  readonly authority: Authority;
  /** A WorkerId, `gateway`, `control-plane`. */
  readonly name: string;
}

/**
 * A component's identity in the mesh, kept in `directory/<name>.pem` (mode 0600). Made again when there is none, when it
 * runs out soon, or when another authority signed it.
 */
export async function loadOrCreatePeer(request: PeerRequest): Promise<TlsIdentity> {
  const { directory, nowMs, authority, name } = request;
  const path = join(directory, `${name}.pem`);
  return loadOrIssue(path, { authority, name, nowMs }, () =>
    issuePeer(authority, { commonName: name, nowMs }),
  );
}

export interface EdgeRequest {
  readonly directory: string;
  readonly nowMs: number;
  /** The domain, its wildcard and the addresses that callers dial. The first is the certificate's name. */
  readonly names: readonly string[];
}

export interface Edge {
  readonly authority: Authority;
  readonly identity: TlsIdentity;
  /** The authority's certificate alone: what callers name in NODE_EXTRA_CA_CERTS. */
  readonly authorityPath: string;
}

/**
 * The public edge: an authority that callers trust, which can vouch for `names` only, and a server's certificate for them.
 * Kept in `directory`: `edge-authority.pem` and `edge.pem` (mode 0600) and `edge-authority.crt` (public). When the names
 * change, the authority is made again and callers have to read its file again.
 */
export async function loadOrCreateEdge(request: EdgeRequest): Promise<Edge> {
  const { directory, nowMs, names } = request;
  const authority = await loadOrCreateEdgeAuthority(request);
  const commonName = firstName(names);
  const issue: IssueRequest = { commonName, names, nowMs };
  const identity = await loadOrIssue(
    join(directory, "edge.pem"),
    { authority, name: commonName, nowMs },
    () => issueServer(authority, issue),
  );
  const authorityPath = join(directory, "edge-authority.crt");
  await write(authorityPath, authority.certificate, publicMode);
  return { authority, identity, authorityPath };
}

async function loadOrCreateEdgeAuthority({ directory, nowMs, names }: EdgeRequest): Promise<Authority> {
  const path = join(directory, "edge-authority.pem");
  const namesLine = `# ${[...names].sort().join(" ")}\n`;
  const text = await readPrivate(path);
  if (text?.startsWith(namesLine) === true) return toAuthority(parseBundle(text, path), path, nowMs);
  const authority = createAuthority({
    commonName: `SPACE edge authority for ${firstName(names)}`.slice(0, 64),
    nowMs,
    permittedNames: names,
  });
  await write(path, namesLine + authority.certificate + authority.key.reveal(), keyMode);
  return authority;
}

function firstName(names: readonly string[]): string {
  const [first] = names;
  if (first === undefined) throw new SpaceError("input/invalid", { field: "names", problem: "are none" });
  return first;
}

interface Bundle {
  readonly certificate: X509Certificate;
  readonly certificatePem: string;
  readonly key: Secret<string>;
}

async function readBundle(path: string): Promise<Bundle | undefined> {
  const text = await readPrivate(path);
  return text === undefined ? undefined : parseBundle(text, path);
}

/** One certificate and its key. Throws `host/unfit` when the file is anything else. */
function parseBundle(text: string, path: string): Bundle {
  const certificatePem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(text)?.[0] ?? "";
  const keyPem = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(text)?.[0] ?? "";
  try {
    const certificate = parseCertificate(certificatePem);
    if (!certificate.checkPrivateKey(parsePrivateKey(keyPem)))
      throw new TypeError("the key is of another certificate");
    return { certificate, certificatePem, key: new Secret(keyPem) };
  } catch (cause) {
    throw unfit(path, "is damaged", cause);
  }
}

function toAuthority({ certificate, certificatePem, key }: Bundle, path: string, nowMs: number): Authority {
  if (!certificate.ca) throw unfit(path, "is not an authority's");
  if (certificate.validToDate.getTime() - nowMs < renewBeforeMs) throw unfit(path, "runs out");
  return { commonName: certificate.subject.replace(/^CN=/, ""), certificate: certificatePem, key };
}

function unfit(path: string, problem: string, cause?: unknown): SpaceError {
  return new SpaceError(
    "host/unfit",
    { problem: `${path} ${problem}`, remedy: "restore it, or remove it to have a new one made" },
    { cause },
  );
}

interface Wanted {
  readonly authority: Authority;
  readonly name: string;
  readonly nowMs: number;
}

async function loadOrIssue(path: string, wanted: Wanted, issue: () => TlsIdentity): Promise<TlsIdentity> {
  const found = await readBundle(path);
  if (found !== undefined && isGood(found.certificate, wanted)) {
    const { certificate, certificatePem, key } = found;
    return { name: wanted.name, certificate: certificatePem, key, thumbprint: thumbprintOf(certificate) };
  }
  const identity = issue();
  await write(path, identity.certificate + identity.key.reveal(), keyMode);
  return identity;
}

function isGood(certificate: X509Certificate, { authority, name, nowMs }: Wanted): boolean {
  return (
    certificate.subject === `CN=${name}` &&
    certificate.verify(parseCertificate(authority.certificate).publicKey) &&
    certificate.validToDate.getTime() - nowMs >= renewBeforeMs
  );
}

/** Makes the folder where it is missing, for its owner alone. Throws `store/failed`. */
async function write(path: string, contents: string, mode: number): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new SpaceError("store/failed", { step: "make a folder" }, { cause });
  }
  await replaceFile(path, contents, { mode });
}
