// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type SigningKeyChange,
  type SigningKeyRecord,
  type SigningKeyStep,
  SpaceError,
  type StoredKeyBundle,
} from "@space/model";

/** Signing keys and bundles as a control plane's database holds them, with every rule of the real one. */
export class MemorySigningKeys {
  #records: readonly SigningKeyRecord[] = [];
  readonly #bundles: StoredKeyBundle[] = [];

  all(): readonly SigningKeyRecord[] {
    return this.#records.toSorted(
      (a, b) => a.announcedIn - b.announcedIn || (a.kid < b.kid ? -1 : a.kid > b.kid ? 1 : 0),
    );
  }

  bundles(): readonly StoredKeyBundle[] {
    return [...this.#bundles];
  }

  change(step: SigningKeyStep): boolean {
    if ((this.#bundles.at(-1)?.version ?? 0) !== step.onVersion) return false;
    let records: readonly SigningKeyRecord[] | undefined = this.#records;
    for (const change of step.changes) records = records && changed(records, change, step);
    if (records === undefined) return false;
    for (const state of ["announced", "signing"] as const) {
      if (records.filter((record) => record.state === state).length > 1)
        throw new SpaceError("internal/bug", { where: "store constraint" });
    }
    this.#records = records;
    if (step.bundle !== null) this.#bundles.push({ ...step.bundle });
    return true;
  }
}

/** Undefined when the key is in a state that forbids the change. */
function changed(
  records: readonly SigningKeyRecord[],
  change: SigningKeyChange,
  { atMs, bundle, onVersion }: SigningKeyStep,
): readonly SigningKeyRecord[] | undefined {
  const version = bundle?.version ?? onVersion;
  const { kid } = change;
  const held = records.find((record) => record.kid === kid);
  const replace = (next: SigningKeyRecord): readonly SigningKeyRecord[] =>
    records.map((record) => (record.kid === kid ? next : record));
  switch (change.kind) {
    case "announce":
      return held === undefined
        ? [
            ...records,
            { ...unused, kid, publicKey: change.publicKey, announcedIn: version, announcedAtMs: atMs },
          ]
        : undefined;
    case "promote":
      if (held?.state !== "announced") return undefined;
      return replace({ ...held, state: "signing", signingSinceMs: atMs }).map((record) =>
        record.state === "signing" && record.kid !== kid
          ? { ...record, state: "retiring", retiringSinceMs: atMs }
          : record,
      );
    case "end": {
      const mayEnd = held?.state === "retiring" || (held?.state === "announced" && change.as === "revoked");
      return held !== undefined && mayEnd
        ? replace({ ...held, state: change.as, endedAtMs: atMs, endedIn: version })
        : undefined;
    }
    case "ask-revocation":
      if (held === undefined || held.state === "removed" || held.state === "revoked") return undefined;
      return replace({ ...held, revokeAskedAtMs: held.revokeAskedAtMs ?? atMs });
  }
}

const unused = {
  state: "announced",
  signingSinceMs: null,
  retiringSinceMs: null,
  endedAtMs: null,
  endedIn: null,
  revokeAskedAtMs: null,
} as const;
