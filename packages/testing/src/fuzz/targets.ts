// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { verify } from "node:crypto";
import {
  CapabilityVerifier,
  importPublicKey,
  KeyRing,
  parseSealedObject,
  sealedObjectToBytes,
  verifyCertificate,
  verifyCountersigned,
  verifyHandOverGrant,
  verifyManifest,
  verifyOriginGrant,
  verifyRetirement,
} from "@space/capability";
import { type ErrorCode, isSpaceError, parseSandboxId, SpaceError } from "@space/model";
import { decodeJson, FrameReader, parseOperationHead } from "@space/wire";
import {
  bundle,
  execution,
  root,
  type StatementKind,
  signer,
  successor,
  tokenVectors,
} from "../token-vectors.ts";
import type { FuzzRandom } from "./fuzz-random.ts";
import { mutateBytes, mutateJson, mutateToken } from "./mutate.ts";

/** What a parser said: a word for the kind of answer. Anything else that it did is a failure. */
export type Outcome = string;

/** Something that reads bytes which an outsider wrote. */
export interface FuzzTarget {
  readonly seeds: readonly Buffer[];
  readonly mutate: (input: Buffer, random: FuzzRandom, others: readonly Buffer[]) => Buffer;
  /** Throws what is a fault: another error than the parser's own, or something taken that must not be. */
  readonly run: (input: Buffer) => Outcome;
}

const ring = KeyRing.fromBundle(bundle, root.publicKey);
const keys = [signer, successor, root, execution];

const tokenMutation: FuzzTarget["mutate"] = (input, random, others) =>
  random.below(3) === 0 ? mutateBytes(input, random, others) : mutateToken(input, random, keys);

const vectorsOf = (kind: StatementKind): readonly Buffer[] =>
  tokenVectors().flatMap((vector) => (vector.kind === kind ? [Buffer.from(vector.token)] : []));

/** The reader's own refusal is an answer; everything else it throws goes on. */
function outcome(codes: readonly ErrorCode[], read: () => unknown): Outcome {
  try {
    read();
    return "taken";
  } catch (error) {
    if (!isSpaceError(error) || !codes.includes(error.code)) throw error;
    return `${error.code} ${"problem" in error.details ? String(error.details.problem) : ""}`;
  }
}

function statement(
  kind: StatementKind,
  codes: readonly ErrorCode[],
  read: (text: string) => unknown,
): FuzzTarget {
  return {
    seeds: vectorsOf(kind),
    mutate: tokenMutation,
    run: (input) => outcome(codes, () => read(input.toString("latin1"))),
  };
}

/** What was taken must be so by other means, too: three canonical parts, a good signature, one spelling. */
function checkTaken(token: string): void {
  const parts = token.split(".");
  const [header = "", payload = "", signature = ""] = parts;
  const bytes = parts.map((part) => Buffer.from(part, "base64url"));
  if (parts.length !== 3 || bytes.some((part, index) => part.toString("base64url") !== parts[index])) {
    throw new Error("took a token that is not canonical");
  }
  const said: unknown = JSON.parse(Buffer.from(header, "base64url").toString());
  const known = [signer, successor].find(({ kid }) => JSON.stringify(said).includes(`"kid":"${kid}"`));
  const signed = Buffer.from(`${header}.${payload}`);
  if (known === undefined || !verify(null, signed, known.publicKey, Buffer.from(signature, "base64url"))) {
    throw new Error("took a token that no key of the bundle signed");
  }
  const text = Buffer.from(payload, "base64url").toString();
  if (JSON.stringify(JSON.parse(text)) !== text) throw new Error("took a payload of a second spelling");
}

function capability(): FuzzTarget {
  const verifier = new CapabilityVerifier({ keys: ring, memoryLimit: 100 });
  return {
    seeds: vectorsOf("capability"),
    mutate: tokenMutation,
    run: (input) => {
      const token = input.toString("latin1");
      const first = verifier.verify(token);
      if (first.kind === "verified") checkTaken(token);
      const again = verifier.verify(token); // what is remembered is the same answer
      if (again.kind !== first.kind) throw new Error("answered otherwise the second time");
      return first.kind === "verified" ? `verified ${first.capability.claims.access.purpose}` : first.reason;
    },
  };
}

const head = {
  admission: `adm_${"a".repeat(26)}`,
  sandbox: `i${"a".repeat(20)}`,
  capability: "x",
  target: { purpose: "control" },
  method: "GET",
  path: "/files",
  headers: [],
};

/** As the links do: what is no JSON is a breach of the protocol. */
function decoded(text: string): unknown {
  try {
    return decodeJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new SpaceError("link/protocol", { problem: "not JSON" });
    throw error;
  }
}

const mutateTextOrBytes: FuzzTarget["mutate"] = (input, random, others) =>
  random.below(2) === 0
    ? mutateBytes(input, random, others)
    : Buffer.from(mutateJson(input.toString("utf8"), random));

/** of one execution. */
function sealedObject(): Buffer {
  const [certificate = Buffer.alloc(0)] = vectorsOf("certificate");
  return sealedObjectToBytes({
    sandboxId: parseSandboxId(head.sandbox),
    previous: null,
    bundles: vectorsOf("bundle").slice(0, 1).map(String),
    links: [{ certificate: String(certificate) }],
  });
}

/** Every target by its name. */
export const fuzzTargets: Readonly<Record<string, () => FuzzTarget>> = {
  capability,
  certificate: () =>
    statement("certificate", ["certificate/refused"], (text) => verifyCertificate(text, ring)),
  handOver: () => statement("handOver", ["hand-over/refused"], (text) => verifyHandOverGrant(text, ring)),
  origin: () => statement("origin", ["chain/refused"], (text) => verifyOriginGrant(text, ring)),
  retirement: () => statement("retirement", ["certificate/refused"], (text) => verifyRetirement(text, ring)),
  bundle: () =>
    statement("bundle", ["bundle/refused", "bundle/rollback"], (text) =>
      KeyRing.fromBundle(text, root.publicKey),
    ),
  manifest: () =>
    statement("manifest", ["snapshot/refused"], (text) =>
      verifyManifest(text, importPublicKey(executionKey)),
    ),
  countersigned: () =>
    statement("countersigned", ["snapshot/refused"], (text) => verifyCountersigned(text, ring)),
  "sealed-chain": () => ({
    seeds: [sealedObject()],
    mutate: mutateTextOrBytes,
    run: (input) =>
      outcome(["input/invalid"], () => {
        const bytes = sealedObjectToBytes(parseSealedObject(input));
        if (!bytes.equals(input)) throw new Error("took a second spelling");
      }),
  }),
  frames: () => ({
    seeds: [Buffer.from("00000005010000000168656c6c6f", "hex"), Buffer.alloc(64), Buffer.alloc(9, 1)],
    mutate: mutateBytes,
    run: (input) => {
      let read = 0;
      return outcome(["link/protocol", "input/invalid"], () => {
        new FrameReader().push(input, ({ payload }) => {
          read += payload.length;
          if (read > input.length) throw new Error("read more than there was");
        });
      });
    },
  }),
  "operation-head": () => ({
    seeds: [Buffer.from(JSON.stringify(head))],
    mutate: mutateTextOrBytes,
    run: (input) =>
      outcome(["link/protocol", "input/invalid"], () => parseOperationHead(decoded(input.toString("utf8")))),
  }),
};

const executionKey = publicText();
function publicText(): string {
  const { x } = execution.publicKey.export({ format: "jwk" });
  if (x === undefined) throw new TypeError("not an Ed25519 key");
  return x;
}
