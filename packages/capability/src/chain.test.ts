// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  type Digest,
  type ExecutionCertificate,
  type ExecutionIdentity,
  isSpaceError,
  manifestVersion,
  parseDigest,
  type SnapshotManifest,
} from "@space/model";
import { signCertificate } from "./certificate.ts";
import { verifyChain } from "./chain.ts";
import { chainLinksLimit } from "./chain-links.ts";
import { certificateDigest, manifestDigest } from "./digest.ts";
import { newSigningKey, publicKeyText, type SigningKey } from "./keys.ts";
import { countersignManifest, signManifest } from "./manifest.ts";
import { certificate, identity, nowSeconds, otherSandboxId, ringOf, tenantKeyId } from "./signed.fixture.ts";

const key = newSigningKey();
const ring = ringOf(key);
const absent = parseDigest("f".repeat(64));

/** Builds a chain link by link; `certificates` newest first. */
class Chain {
  certificates: string[] = [];
  manifests: string[] = [];
  readonly keys: SigningKey[] = [];
  #identity: ExecutionIdentity = identity(1);

  get head(): Digest {
    return certificateDigest(this.certificates[0] ?? "");
  }

  link(
    execution: ExecutionIdentity,
    change: Partial<ExecutionCertificate> = {},
    key_ = newSigningKey(),
  ): this {
    const previous = this.certificates.length === 0 ? null : this.head;
    const signed = certificate({ key: key_, identity: execution, previous, ...change });
    this.certificates.unshift(signCertificate(key, signed));
    this.keys.unshift(key_);
    this.#identity = execution;
    return this;
  }

  /** A manifest of the newest execution. */
  snapshot(
    previousManifest: Digest | null = null,
    change: Partial<SnapshotManifest> = {},
    by = this.keys[0],
  ): Digest {
    const signed = signManifest(by ?? newSigningKey(), {
      version: manifestVersion,
      identity: this.#identity,
      certificate: this.head,
      previousManifest,
      chain: parseDigest("c".repeat(64)),
      keyId: tenantKeyId,
      substrate: "namespace",
      memory: "none",
      filesystem: [],
      createdAtSeconds: nowSeconds + this.manifests.length,
      ...change,
    });
    this.manifests.push(countersignManifest(key, signed));
    return manifestDigest(signed);
  }

  verify(): ReturnType<typeof verifyChain> {
    return verifyChain(this.certificates, this.manifests, ring);
  }
}

const breaks = (chain: Chain, link: string, problem: string): void => {
  assert.throws(
    () => chain.verify(),
    (error) => {
      assert.ok(isSpaceError(error));
      assert.deepEqual([error.code, error.details], ["chain/refused", { link, problem }]);
      return true;
    },
  );
};

/** Three generations: paused, resumed, died, resumed from the same snapshot; then a snapshot again. */
function whole(): { chain: Chain; first: Digest; second: Digest } {
  const chain = new Chain().link(identity(1));
  const first = chain.snapshot();
  chain.link(identity(2), { restoredFrom: first }).link(identity(5), { restoredFrom: first });
  const second = chain.snapshot(first);
  return { chain, first, second };
}

it("R-5: verifies certificates and manifests down to generation 1", () => {
  const { chain, first, second } = whole();
  const { links, manifests } = chain.verify();
  assert.deepEqual(
    links.map(({ certificate: { identity: of } }) => of.generation),
    [5n, 2n, 1n],
  );
  assert.equal(links[0]?.digest, chain.head);
  assert.deepEqual([...manifests.keys()], [first, second]);
  chain.manifests.reverse();
  assert.equal(chain.verify().manifests.size, 2);
});

it("R-5: a single certificate is a chain, a cold start needs no manifest, a rollback may go further back", () => {
  new Chain().link(identity(1)).verify();
  new Chain().link(identity(1)).link(identity(2)).verify();
  const { chain, first } = whole();
  chain.link(identity(6), { restoredFrom: first }).verify();
});

it("R-3: a later attempt on the same process links under the same generation", () => {
  const execution = newSigningKey();
  const chain = new Chain().link(identity(1), {}, execution);
  chain.link(identity(1, { attempt: 2 }), {}, execution).verify();
  chain.snapshot();
  chain.verify();
});

it("R-5: a fork begins with the parent's manifest that its signed origin names", () => {
  const origin = { kind: "fork", parentManifest: absent } as const;
  const chain = new Chain().link(identity(1), { origin, restoredFrom: absent });
  const own = chain.snapshot();
  chain.link(identity(2), { restoredFrom: own }).verify();
  const again = new Chain().link(identity(1), { origin, restoredFrom: absent });
  again.link(identity(2), { restoredFrom: absent });
  breaks(again, "certificate 1 of 2", "restored from none of these");
  const claimed = new Chain().link(identity(1), { origin, restoredFrom: absent });
  claimed.snapshot(absent);
  breaks(claimed, "manifest 1 of 1", "previous is missing");
});

it("R-5: nothing is no chain, and neither is too much", () => {
  breaks(new Chain(), "certificates", "no certificate");
  const many = new Chain();
  many.certificates = new Array<string>(chainLinksLimit + 1).fill("");
  breaks(many, "certificates", "too many certificates");
  const { chain } = whole();
  chain.manifests = new Array<string>(chainLinksLimit + 1).fill("");
  breaks(chain, "manifests", "too many manifests");
});

it("R-5: a certificate left out, out of order, twice or of another hand breaks the chain", () => {
  const broken = (change: (certificates: string[]) => string[], link: string, problem: string): void => {
    const { chain } = whole();
    chain.manifests = [];
    chain.certificates = change(chain.certificates);
    breaks(chain, link, problem);
  };
  broken(([a, _b, c]) => [a ?? "", c ?? ""], "certificate 1 of 2", "previous is another");
  broken((all) => all.reverse(), "certificate 1 of 3", "previous is another");
  broken(([a, b, c]) => [a ?? "", a ?? "", b ?? "", c ?? ""], "certificate 1 of 4", "previous is another");
  broken((all) => all.slice(0, 2), "certificate 2 of 2", "beginning is missing");
  broken(([a, b]) => [a ?? "", b ?? "", ""], "certificate 3 of 3", "form");
  broken(
    ([a, b, c]) => [a ?? "", b ?? "", `${c?.slice(0, -86)}${"A".repeat(86)}`],
    "certificate 3 of 3",
    "signature",
  );
  broken(
    ([a, b]) => [a ?? "", b ?? "", signCertificate(newSigningKey(), certificate({ key }))],
    "certificate 3 of 3",
    "key",
  );
});

it("R-5: a chain begins at generation 1", () => {
  breaks(new Chain().link(identity(2)), "certificate 1 of 1", "beginning is missing");
});

it("R-1: generations only grow, and one generation is one process with one key", () => {
  const chain = (execution: ExecutionIdentity, change: Partial<ExecutionCertificate> = {}): Chain => {
    const execution0 = newSigningKey();
    return new Chain()
      .link(identity(1))
      .link(identity(3), {}, execution0)
      .link(execution, change, execution0);
  };
  const twoProcesses = "two processes in one generation";
  breaks(chain(identity(2)), "certificate 1 of 3", "order of generations");
  breaks(chain(identity(3)), "certificate 1 of 3", "order of generations");
  breaks(chain(identity(3, { attempt: 2, worker: "z" })), "certificate 1 of 3", twoProcesses);
  breaks(chain(identity(3, { attempt: 2, activation: "z" })), "certificate 1 of 3", twoProcesses);
  const otherKey = publicKeyText(newSigningKey().publicKey);
  breaks(chain(identity(3, { attempt: 2 }), { publicKey: otherKey }), "certificate 1 of 3", twoProcesses);
  breaks(chain(identity(4, { sandbox: otherSandboxId })), "certificate 1 of 3", "other sandbox");
});

it("R-5: a manifest counts only when the control plane has countersigned it and an execution of the chain signed it", () => {
  const { chain } = whole();
  const signed = signManifest(newSigningKey(), { ...({} as SnapshotManifest), ...manifestOf(chain) });
  chain.manifests.push(countersignManifest(key, signed));
  breaks(chain, "manifest 3 of 3", "key");
  chain.manifests = [countersignManifest(newSigningKey(), signed)];
  breaks(chain, "manifest 1 of 1", "key");
  chain.manifests = [countersignManifest(key, "x")];
  breaks(chain, "manifest 1 of 1", "form");
});

function manifestOf(chain: Chain): SnapshotManifest {
  return {
    version: manifestVersion,
    identity: identity(5),
    certificate: chain.head,
    previousManifest: null,
    chain: parseDigest("c".repeat(64)),
    keyId: tenantKeyId,
    substrate: "namespace",
    memory: "none",
    filesystem: [],
    createdAtSeconds: nowSeconds,
  };
}

it("R-5: a manifest names the certificate of the very execution that signed it", () => {
  for (const [change, by, problem] of [
    [{ certificate: absent }, 0, "certificate is not in the chain"],
    [{ identity: identity(2) }, 0, "other execution"],
    [{ identity: identity(5, { attempt: 2 }) }, 0, "other execution"],
    [{}, 1, "other execution"],
  ] as const) {
    const { chain } = whole();
    chain.snapshot(null, change, chain.keys[by]);
    breaks(chain, "manifest 3 of 3", problem);
  }
});

it("R-5: manifests are linked to ones that are here and not newer, and each comes once", () => {
  const { chain } = whole();
  chain.manifests.push(chain.manifests[0] ?? "");
  breaks(chain, "manifest 3 of 3", "repeated manifest");
  const { chain: gap } = whole();
  gap.snapshot(absent);
  breaks(gap, "manifest 3 of 3", "previous is missing");
  const { chain: crossed, second } = whole();
  const [oldest = ""] = crossed.certificates.slice(-1);
  crossed.snapshot(
    second,
    { identity: identity(1), certificate: certificateDigest(oldest) },
    crossed.keys[2],
  );
  breaks(crossed, "manifest 3 of 3", "previous is newer");
});

it("R-5: what an execution was restored from is here, and older", () => {
  const { chain } = whole();
  chain.link(identity(6), { restoredFrom: absent });
  breaks(chain, "certificate 1 of 4", "restored from none of these");
  const { chain: left } = whole();
  left.manifests.shift();
  breaks(left, "manifest 1 of 1", "previous is missing");
});

it("R-5: an execution is not restored from a manifest of its own generation", () => {
  const execution = newSigningKey();
  const chain = new Chain().link(identity(1)).link(identity(2), {}, execution);
  const own = chain.snapshot();
  chain.link(identity(2, { attempt: 2 }), { restoredFrom: own }, execution);
  breaks(chain, "certificate 1 of 3", "two processes in one generation");
});
