// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChainExport, chainExportToText } from "@space/capability";
import type { KeyAdministration } from "@space/control-plane";
import {
  members,
  parseSandboxId,
  parseTenantId,
  type SandboxId,
  type SigningKeyRecord,
  SpaceError,
} from "@space/model";
import type { RootKeyFile } from "../data/root-key-file.ts";
import type { SnapshotKeys } from "./snapshot-keys.ts";

/** What an operator may ask of an installation, whether it runs or not. */
export interface AdminTarget {
  readonly keys: KeyAdministration;
  readonly rootKey: RootKeyFile;
  readonly snapshotKeys: SnapshotKeys;
  /** Where the API is served by plain HTTP; undefined while it is not. */
  apiUrl(): string | undefined;
  chain(sandboxId: SandboxId): Promise<ChainExport | undefined>;
}

/** Fewest characters by which a key may be named. */
const leastPrefix = 6;

/** Answers one request. Parameters are read strictly. Throws `input/invalid` and what the target throws. */
export async function answerAdmin(target: AdminTarget, method: unknown, params: unknown): Promise<unknown> {
  switch (method) {
    case "keys/list":
      members(params, "params", []);
      return viewOf(target);
    case "keys/rotate": {
      const { rootKey } = members(params, "params", ["rootKey"]);
      await target.rootKey.lent(pathOrNone(rootKey), () => target.keys.rotate());
      return viewOf(target);
    }
    case "keys/revoke": {
      const { kid, rootKey } = members(params, "params", ["kid", "rootKey"]);
      const { kid: whole } = find(target.keys.view().keys, kid);
      await target.rootKey.lent(pathOrNone(rootKey), () => target.keys.revoke(whole));
      return viewOf(target);
    }
    case "keys/tenants":
      members(params, "params", []);
      return target.snapshotKeys.view();
    case "keys/rotate-tenant":
      await target.snapshotKeys.rotateTenant(
        parseTenantId(members(params, "params", ["tenantId"])["tenantId"]),
      );
      return target.snapshotKeys.view();
    case "keys/rewrap":
      members(params, "params", []);
      await target.snapshotKeys.rewrap();
      return target.snapshotKeys.view();
    case "api/address":
      members(params, "params", []);
      return { apiUrl: target.apiUrl() ?? null };
    case "chain/export": {
      const sandboxId = parseSandboxId(members(params, "params", ["sandboxId"])["sandboxId"]);
      const chain = await target.chain(sandboxId);
      if (chain === undefined) throw new SpaceError("sandbox/not-found", { sandboxId });
      return chainExportToText(chain);
    }
    default:
      throw new SpaceError("input/invalid", { field: "method", problem: "is not known" });
  }
}

/** What `keys/list` shows: nothing in it is secret. */
export interface KeysAnswer {
  readonly keys: readonly SigningKeyRecord[];
  readonly bundleVersion: number;
  readonly isDelivered: boolean;
  readonly rootPublicKey: string;
  readonly rootKeyIsHere: boolean;
}

function viewOf({ keys, rootKey }: AdminTarget): KeysAnswer {
  return { ...keys.view(), rootPublicKey: rootKey.publicKey, rootKeyIsHere: rootKey.isHere };
}

/** The one key that begins so. Throws `signing-key/unknown`. */
function find(keys: readonly SigningKeyRecord[], text: unknown): SigningKeyRecord {
  const kid = typeof text === "string" ? text : "";
  const found = kid.length < leastPrefix ? [] : keys.filter((key) => key.kid.startsWith(kid));
  const [key] = found;
  if (key === undefined || found.length > 1)
    throw new SpaceError("signing-key/unknown", { kid: kid.slice(0, 43) });
  return key;
}

function pathOrNone(value: unknown): string | undefined {
  if (value === null) return undefined;
  if (typeof value === "string" && value.startsWith("/")) return value;
  throw new SpaceError("input/invalid", { field: "rootKey", problem: "must be an absolute path" });
}
