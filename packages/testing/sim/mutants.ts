// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { faultMutants } from "./fault-mutants.ts";
import { gatewayMutants } from "./gateway-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { replicaMutants } from "./replica-mutants.ts";

const admit = "capability/src/admit.ts";
const identity = "model/src/identity.ts";
const order = "worker/src/sbx-manager/record-order.ts";
const install = "worker/src/sbx-manager/install.ts";
const parts = "worker/src/sbx-manager/parts.ts";
const pause = "worker/src/sbx-manager/pause.ts";
const rows = "testing/src/memory-sandbox-rows.ts";

/** Left out: nothing takes its place. */
const nothing = "";

/** Every mutant is the whole product with these few characters changed, as the simulation loads it. */
export const mutants: readonly Mutant[] = [
  {
    name: "generation-ignored",
    fault: "R-13: the comparator takes any generation and activation of the sandbox for the installed one",
    edits: [
      {
        file: admit,
        find: "const compared = compareIdentity(identity, record.identity);",
        replace:
          "const compared = compareIdentity({ ...record.identity, sandboxId: identity.sandboxId, placement: identity.placement }, record.identity);",
      },
    ],
  },
  {
    name: "placement-ignored",
    fault: "R-2, R-13: the comparator ignores worker, substrate and pod",
    edits: [
      {
        file: identity,
        find: 'if (!samePlacement(claimed.placement, installed.placement)) return "other-placement";',
        replace: nothing,
      },
    ],
  },
  {
    name: "activation-ignored",
    fault: "R-3, R-13: the comparator ignores which runtime process it is",
    edits: [
      {
        file: identity,
        find: 'if (claimed.activation.id !== installed.activation.id) return "other-activation";',
        replace: nothing,
      },
    ],
  },
  {
    name: "own-target",
    fault: "R-13: the record is found by the capability's own sandbox instead of the request's target",
    edits: [
      {
        file: "worker/src/node-api/gateway-link.ts",
        find: "const operation = this.#read(head);",
        replace:
          'const read = this.#read(head); const operation = read && { ...read, sandbox: JSON.parse(Buffer.from(read.capability.split(".")[1] ?? "", "base64url").toString()).sbx.sandboxId };',
      },
    ],
  },
  {
    name: "expiry-without-limit",
    fault: "R-9: a capability never expires",
    edits: [
      {
        file: admit,
        find: 'return isValid ? undefined : deny("expired");',
        replace: "return undefined;",
      },
    ],
  },
  {
    name: "any-lifetime",
    fault: "R-9: a lifetime above 120 s is accepted",
    edits: [{ file: admit, find: " || lifetimeSeconds > capabilityLifetimeSeconds", replace: nothing }],
  },
  {
    name: "any-presenter",
    fault: "R-7: whoever presents a capability is believed to be its presenter",
    edits: [
      {
        file: admit,
        find: 'claims.presenter === presenter ? undefined : deny("presenter");',
        replace: "claims.presenter === presenter ? undefined : undefined;",
      },
    ],
  },
  {
    name: "any-scope",
    fault: "R-8: every scope allows everything",
    edits: [
      {
        file: admit,
        find: 'return scope !== undefined && access.scopes.includes(scope) ? undefined : deny("scope");',
        replace: "return undefined;",
      },
    ],
  },
  {
    name: "revoked-key-accepted",
    fault: "R-10, R-11: a verifier goes on with the keys that it had",
    edits: [
      {
        file: "capability/src/trusted-keys.ts",
        find: "this.#verifier.replaceKeys(ring); // R-11: empties the memory",
        replace:
          "if (ring.version === 1) this.#verifier.replaceKeys(ring); else { const old = before; this.#verifier.replaceKeys({ ...ring, find: (kid: string) => ring.find(kid) ?? old?.find(kid) } as typeof ring); }",
      },
      {
        file: "capability/src/trusted-keys.ts",
        find: "this.#ring = ring;",
        replace: "const before = this.#ring; this.#ring = ring;",
      },
    ],
  },
  {
    name: "signature-not-checked",
    fault: "R-6: a signature of the right length is good",
    edits: [
      {
        file: "capability/src/jws.ts",
        find: 'if (!verify(null, Buffer.from(parts.signed, "latin1"), key, parts.signature)) return signatureRefused;',
        replace: "if (parts.signature.length !== 64) return signatureRefused;",
      },
    ],
  },
  ...gatewayMutants,
  ...faultMutants,
  ...replicaMutants,
  {
    name: "epoch-not-cut",
    fault: "R-21: streams go on when their epoch ends",
    edits: [
      { file: parts, find: "const cut = parts.streams.cut(sandboxId, reason);", replace: "const cut = 0;" },
      {
        file: "worker/src/sbx-manager/open-streams.ts",
        find: 'return record !== undefined && record.epoch === this.#epoch && record.state === "installed";',
        replace: "return record !== undefined;",
      },
    ],
  },
  {
    name: "pause-keeps-epoch",
    fault: "R-21: the start of a pause cuts the streams and does not advance the epoch",
    edits: [
      {
        file: pause,
        find: "const cutCount = endEpoch(parts, record); // R-21",
        replace: 'const cutCount = cutStreams(parts, record.identity.sandboxId, "epoch-ended");',
      },
      {
        file: pause,
        find: "import { endEpoch, loseExecution",
        replace: "import { cutStreams, endEpoch, loseExecution",
      },
    ],
  },
  {
    name: "admits-while-pausing",
    fault: "lifecycle: operations are let in after a pause has begun",
    edits: [
      {
        file: "worker/src/sbx-manager/executions.ts",
        find: 'return activation.phase === "running" ? undefined : "pausing";',
        replace: "return undefined;",
      },
    ],
  },
  {
    name: "older-replaces-newer",
    fault: "R-12: an older certificate becomes the record again",
    edits: [
      {
        file: order,
        find: 'if (identity.generation < held.generation) throw outOfOrder("record/stale", record, certificate);',
        replace: 'if (identity.generation < held.generation) return "next-generation";',
      },
      {
        file: install,
        find: 'throw refused("no such activation runs here");',
        replace:
          "return { ...parts.executions.all()[0], identity, publicKey, restoredFrom } as ActivationRecord;",
      },
      {
        file: "testing/src/memory-worker-store.ts",
        find: 'if (now.generation < old.generation) throw broken("r12_order_only_grows");',
        replace: nothing,
      },
    ],
  },
  {
    name: "retires-another",
    fault: "R-12: a retirement ends whatever is installed of the sandbox",
    edits: [
      {
        file: "worker/src/sbx-manager/retire.ts",
        find: "if (record !== undefined && retires(record, identity)) {",
        replace: "if (record !== undefined) {",
      },
    ],
  },
  {
    name: "not-synced",
    fault: "R-12: a record is acknowledged before it is on the disk",
    edits: [{ file: "testing/sim/sim-disk.ts", find: "this.#disk.sync();", replace: "void this.#disk;" }],
  },
  {
    name: "install-not-awaited",
    fault: "R-12: a sandbox is published before its worker has installed it",
    edits: [
      {
        file: "control-plane/src/bring-up.ts",
        find: "await parts.feeds.install(worker.workerId, certificate.token);",
        replace: nothing,
      },
    ],
  },
  {
    name: "lease-from-receipt",
    fault: "R-16: a lease is counted from the arrival of its grant, for ten terms",
    edits: [
      {
        file: "worker/src/sbx-manager/lease-keeper.ts",
        find: "const deadlineMs = asked.sentMs + grant.termSeconds * 1000;",
        replace: "const deadlineMs = this.#ports.clock.bootMs() + grant.termSeconds * 10_000;",
      },
    ],
  },
  {
    name: "lease-not-waited-for",
    fault: "R-16: the lease of a worker that is away counts as over at once",
    edits: [
      {
        file: "control-plane/src/leases.ts",
        find: "return this.#ports.clock.bootMs() - (endMs + leaseMarginMs);",
        replace: "return Math.max(120_000, this.#ports.clock.bootMs() - (endMs + leaseMarginMs));",
      },
    ],
  },
  {
    name: "older-snapshot",
    fault: "R-5: a resume takes the snapshot before the newest",
    edits: [
      {
        file: "control-plane/src/restore-point.ts",
        find: "const stored = snapshot && (await parts.sandboxes.manifest(sandboxId, snapshot.digest));",
        replace:
          'const newest = snapshot && (await parts.sandboxes.manifest(sandboxId, snapshot.digest)); const text = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()); const previous = newest && text(text(newest.countersigned).manifest).previousManifest; const stored = previous ? await parts.sandboxes.manifest(sandboxId, previous) : newest;',
      },
      {
        file: "control-plane/src/restore-point.ts",
        find: 'if (digest !== snapshot.digest) throw refused("digest");',
        replace: nothing,
      },
      {
        file: "worker/src/sbx-manager/snapshot-source.ts",
        find: "const { sandboxId, manifest } = read;",
        replace: "const { sandboxId } = read; const manifest = digest;",
      },
      {
        file: "worker/src/sbx-manager/snapshot-source.ts",
        find: "if (end.certificate.digest === head.certificate) return;",
        replace: "if (end.certificate.digest !== undefined) return;",
      },
    ],
  },
  {
    name: "snapshot-of-running",
    fault: "statement 7: the snapshot is made before the guest is frozen",
    edits: [
      {
        file: "testing/sim/sim-machine.ts",
        find: 'if (process?.state !== "frozen") throw new SpaceError("substrate/failed", { step: "snapshot" });',
        replace: 'if (process === undefined) throw new SpaceError("substrate/failed", { step: "snapshot" });',
      },
      {
        file: pause,
        find: 'if (!(await parts.substrate.freeze(startedAs, "snapshot")))',
        replace: "if (startedAs === id && startedAs !== id)",
      },
    ],
  },
  {
    name: "delete-does-not-win",
    fault: "statement 6: a start that finishes late is published over a delete",
    edits: [
      {
        file: rows,
        find: "if (record.revision !== on.revision || !from[change.kind].includes(record.state)) return false;",
        replace:
          'if (change.kind === "publish" && record.state.startsWith("kill")) return true; if (record.revision !== on.revision || !from[change.kind].includes(record.state)) return false;',
      },
    ],
  },
];
