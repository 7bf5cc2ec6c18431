// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  chainExportLimit,
  importPublicKey,
  type LinkSigner,
  parseChainExport,
  type VerifiedExport,
  verifyChainExport,
} from "@space/capability";
import { identityToJson } from "@space/model";
import { replaceFile } from "@space/platform-linux/durable-file";
import { askInstallation } from "../admin/open-admin.ts";
import { readSnapshotStorage } from "../data/snapshot-storage.ts";
import { UsageError } from "../failure.ts";
import { defaultDataFolder, readArguments, toStdout, type Write } from "./arguments.ts";
import { snapshotJson, snapshotText, verifySnapshotIn } from "./snapshot-chain.ts";

const options = {
  data: { type: "string" },
  json: { type: "boolean", default: false },
  file: { type: "string" },
  root: { type: "string" },
  out: { type: "string" },
  snapshot: { type: "string" },
  objects: { type: "string" },
  keys: { type: "string" },
} as const;

/**
 * `./space chain verify SANDBOX` verifies in this process, against the data directory's pinned root, what the control plane
 * has; `--file FILE --root ROOTPUB` needs nothing else. `./space chain verify --snapshot DIGEST` verifies the history that is
 * sealed in a snapshot, from the store of snapshots and the key-encryption keys, whether the control plane runs or is lost. `./space chain export SANDBOX --out FILE` writes what it needs.
 */
export async function chain(args: readonly string[], write: Write = toStdout): Promise<number> {
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const data = resolve(values.data ?? defaultDataFolder);
  const [what, sandboxId, ...rest] = positionals;
  if (rest.length > 0) throw new UsageError("one sandbox at a time");
  if (what === "verify" && values.snapshot !== undefined && sandboxId === undefined) {
    const root = rootOf(values.root ?? join(data, "control", "root.pub"));
    const storage = await readSnapshotStorage(
      { control: join(data, "control"), objects: join(data, "objects") },
      {
        ...(values.objects && { objects: resolve(values.objects) }),
        ...(values.keys && { keys: resolve(values.keys) }),
      },
    );
    const verified = await verifySnapshotIn(storage, values.snapshot, root);
    write(values.json ? `${JSON.stringify(snapshotJson(verified), undefined, 1)}\n` : snapshotText(verified));
    return 0;
  }
  if (what === "verify" && values.file !== undefined && sandboxId === undefined) {
    if (values.root === undefined)
      throw new UsageError("--file needs --root: the root's public key, or a file with it");
    return verify(readExport(values.file), rootOf(values.root), values.json, write);
  }
  if (what === "verify" && sandboxId !== undefined && values.file === undefined) {
    const root = rootOf(values.root ?? join(data, "control", "root.pub"));
    return verify(await exported(data, sandboxId), root, values.json, write);
  }
  if (what === "export" && sandboxId !== undefined && values.out !== undefined) {
    await replaceFile(resolve(values.out), await exported(data, sandboxId));
    write(`${values.out}\n`);
    return 0;
  }
  throw new UsageError(
    "say what to do: ./space chain verify SANDBOX, ./space chain verify --file FILE --root ROOTPUB, ./space chain verify --snapshot DIGEST, or ./space chain export SANDBOX --out FILE",
  );
}

async function exported(data: string, sandboxId: string): Promise<string> {
  const text = await askInstallation(data, "chain/export", { sandboxId });
  if (typeof text !== "string") throw new TypeError("no export");
  return text;
}

function readExport(path: string): string {
  if (!existsSync(path)) throw new UsageError(`there is no ${path}`);
  if (statSync(path).size > chainExportLimit) throw new UsageError(`${path} is larger than any chain`);
  return readFileSync(path, "utf8");
}

function rootOf(text: string): ReturnType<typeof importPublicKey> {
  try {
    return importPublicKey(existsSync(text) ? readFileSync(text, "utf8").trim() : text);
  } catch (cause) {
    throw new UsageError(`${text} is no root public key: 43 characters of base64url, or a file with them`, {
      cause,
    });
  }
}

function verify(text: string, root: ReturnType<typeof importPublicKey>, json: boolean, write: Write): number {
  const verified = verifyChainExport(parseChainExport(text), root);
  write(json ? `${JSON.stringify(jsonOf(verified), undefined, 1)}\n` : textOf(verified));
  return 0;
}

function jsonOf({
  sandboxId,
  head,
  links,
  certificateSigners,
  manifestOrder,
  bundleVersion,
}: VerifiedExport) {
  return {
    verified: true,
    sandboxId,
    asOf: new Date(head.issuedAtSeconds * 1000).toISOString(),
    bundleVersion,
    certificates: links.map(({ digest, certificate }, at) => ({
      digest,
      identity: identityToJson(certificate.identity),
      previous: certificate.previous,
      restoredFrom: certificate.restoredFrom,
      origin: certificate.origin,
      signer: certificateSigners[at],
    })),
    manifests: manifestOrder,
  };
}

function textOf(verified: VerifiedExport): string {
  const { sandboxId, head, links, certificateSigners, manifestOrder, bundleVersion } = verified;
  const certificates = links.map(({ digest, certificate }, at) => {
    const { generation, placement, activation } = certificate.identity;
    const from =
      certificate.restoredFrom === null ? "cold start" : `from snapshot ${short(certificate.restoredFrom)}`;
    return `  generation ${generation}  ${short(digest)}  ${placement.workerId}  attempt ${activation.attempt}  ${from}  ${by(certificateSigners[at])}`;
  });
  const manifests = manifestOrder.map(({ digest, signer }) => `  snapshot ${short(digest)}  ${by(signer)}`);
  return [
    `${sandboxId}: ${links.length} certificates and ${manifestOrder.length} snapshots verify to the root, newest first`,
    ...certificates,
    ...manifests,
    `as of ${new Date(head.issuedAtSeconds * 1000).toISOString()}, by bundle ${bundleVersion}; a later revocation is not known here`,
    "",
  ].join("\n");
}

function short(digest: string): string {
  return digest.slice(0, 12);
}

function by(signer: LinkSigner | undefined): string {
  const state = signer?.isCurrent === true ? "" : ", no longer in use";
  return `signed by ${signer?.kid.slice(0, 12) ?? "?"}${state}`;
}
