// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChainLinks,
  type ChainToken,
  parseDigest,
  parseGeneration,
  type SandboxId,
  type SealedSegment,
} from "@space/model";
import type { Statements } from "./database.ts";
import { integer, nullableText, type Row, text } from "./row.ts";

/** remembers objects of the sealed chain, with the claim of the pause or resume that makes them. */
export function insertSegments(
  statements: Statements,
  sandboxId: SandboxId,
  segments: readonly SealedSegment[],
): void {
  for (const { digest, previous, after, through, run } of segments) {
    statements.run(
      `INSERT INTO sealed_segments (sandbox_id, through, after, digest, previous, run)
        VALUES (:sandboxId, :through, :after, :digest, :previous, :run)`,
      { sandboxId, through, after, digest, previous, run },
    );
  }
}

export function segmentsOf(
  statements: Statements,
  sandboxId: SandboxId,
  limit: number,
): readonly SealedSegment[] {
  const rows = statements.all(
    `SELECT digest, previous, CAST(after AS TEXT) AS after, CAST(through AS TEXT) AS through, run FROM sealed_segments
      WHERE sandbox_id = :sandboxId ORDER BY sealed_segments.through DESC LIMIT :limit`,
    { sandboxId, limit },
  );
  return rows.map((row) => {
    const previous = nullableText(row, "previous");
    return {
      digest: parseDigest(text(row, "digest")),
      previous: previous === null ? null : parseDigest(previous),
      after: BigInt(text(row, "after")),
      through: parseGeneration(text(row, "through")),
      run: integer(row, "run"),
    };
  });
}

export function linksOf(
  statements: Statements,
  sandboxId: SandboxId,
  { after, through }: { readonly after: bigint; readonly through: bigint },
): ChainLinks {
  const certificates = statements.all(
    `SELECT CAST(generation AS TEXT) AS generation, token FROM certificates WHERE sandbox_id = :sandboxId
      AND certificates.generation > :after AND certificates.generation <= :through ORDER BY certificates.generation`,
    { sandboxId, after, through },
  );
  const manifests = statements.all(
    `SELECT CAST(generation AS TEXT) AS generation, countersigned AS token FROM manifests WHERE sandbox_id = :sandboxId
      AND manifests.generation >= :after AND manifests.generation < :through ORDER BY manifests.generation`,
    { sandboxId, after, through },
  );
  return { certificates: certificates.map(tokenOf), manifests: manifests.map(tokenOf) };
}

function tokenOf(row: Row): ChainToken {
  return { generation: parseGeneration(text(row, "generation")), token: text(row, "token") };
}
