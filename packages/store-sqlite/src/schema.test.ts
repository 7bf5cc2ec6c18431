// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { enteredFrom } from "@space/model";
import { controlPlaneSchema } from "./migrations.ts";

const sandboxId = `i${"a".repeat(20)}`;

/** The schema with one sandbox in the state named, reached by legal writes alone. */
function databaseWith(state: "creating" | "running" | "pausing" | "paused" | "killed"): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  for (const sql of controlPlaneSchema()) database.exec(sql);
  database.exec(`
    INSERT INTO tenants (tenant_id, name, sandbox_limit, created_at_ms) VALUES ('ten', 't', 5, 1);
    INSERT INTO sandboxes (sandbox_id, tenant_id, template, state, revision, generation, claim_owner, claim_until_ms,
      created_at_ms, started_at_ms, end_at_ms, changed_at_ms, on_timeout, keep_memory, auto_resume, timeout_ms,
      metadata, variables, memory_bytes, cpus, processes, disk_bytes)
    VALUES ('${sandboxId}', 'ten', 'base', 'creating', 1, 1, 'me', 9, 1, 1, 1, 1, 'kill', 0, 0, 1, '{}', '{}', 1, 1, 1, 1);
    INSERT INTO executions (sandbox_id, generation, worker_id, substrate, activation_id, attempt)
    VALUES ('${sandboxId}', 1, 'wrk', 'namespace', 'act1', 1)`);
  const write = (set: string): void => {
    database.exec(`UPDATE sandboxes SET revision = revision + 1, ${set}`);
  };
  if (state === "creating") return database;
  write("state = 'running', claim_owner = NULL, claim_until_ms = NULL, certificate_head = 'c1'");
  database.exec("UPDATE executions SET public_key = 'k'");
  if (state === "running") return database;
  if (state === "killed") {
    write("state = 'killing', claim_owner = 'me', claim_until_ms = 9");
    write("state = 'killed', claim_owner = NULL, claim_until_ms = NULL");
    return database;
  }
  write("state = 'pausing', claim_owner = 'me', claim_until_ms = 9");
  if (state === "pausing") return database;
  write("state = 'paused', claim_owner = NULL, claim_until_ms = NULL, manifest_head = 'm1'");
  database.exec("UPDATE executions SET ended_at_ms = 5");
  return database;
}

/** It stands still for a snapshot alone, which is kept. */
const keptOne = `UPDATE sandboxes SET revision = 3, state = 'pausing', goes_on = 1, claim_owner = 'me', claim_until_ms = 9;
  ${kept("s1")}`;
const certified =
  "INSERT INTO certificates (sandbox_id, generation, digest, token) SELECT sandbox_id, 1, 'c1', 't' FROM sandboxes";

/** An object of a sealed chain: through, after, previous. */
function segment(values: string): string {
  return `INSERT INTO sealed_segments (sandbox_id, through, after, previous, digest, run)
    SELECT sandbox_id, ${values}, printf('%064d', 0), 0 FROM sandboxes`;
}

/** Each write that the schema must refuse, with the rule that refuses it. */
const refused: readonly (readonly [
  rule: string,
  state: Parameters<typeof databaseWith>[0],
  write: string,
])[] = [
  ["lifecycle_edges", "creating", "UPDATE sandboxes SET revision = 2, state = 'pausing'"],
  ["lifecycle_edges", "running", "UPDATE sandboxes SET revision = 3, state = 'creating'"],
  ["lifecycle_edges", "paused", "UPDATE sandboxes SET revision = 5, state = 'running'"],
  ["lifecycle_killed_is_final", "killed", "UPDATE sandboxes SET revision = 5, end_at_ms = 5"],
  ["lifecycle_only_the_dead_are_removed", "running", "DELETE FROM sandboxes"],
  ["revision_counts_writes", "running", "UPDATE sandboxes SET end_at_ms = 5"],
  ["revision_counts_writes", "running", "UPDATE sandboxes SET end_at_ms = 5, revision = 9"],
  ["sandbox_identity_never_changes", "running", "UPDATE sandboxes SET revision = 3, tenant_id = 'other'"],
  ["r1_generation_only_grows", "running", "UPDATE sandboxes SET revision = 3, generation = 2"],
  ["r1_generation_only_grows", "paused", resume("generation = 3")],
  ["r1_generation_only_grows", "paused", resume("generation = 1")],
  ["transitional_states_are_claims", "running", "UPDATE sandboxes SET revision = 3, state = 'pausing'"],
  [
    "what_is_paused_has_a_snapshot",
    "pausing",
    "UPDATE sandboxes SET revision = 4, state = 'paused', claim_owner = NULL, claim_until_ms = NULL",
  ],
  [
    "r5_what_runs_is_certified",
    "creating",
    "UPDATE sandboxes SET revision = 2, state = 'running', claim_owner = NULL, claim_until_ms = NULL",
  ],
  ["what_is_frozen_has_a_snapshot", "running", "UPDATE sandboxes SET revision = 3, frozen_on = 'wrk'"],
  [
    "one_live_execution_per_sandbox",
    "running",
    "DROP TRIGGER r1_execution_is_of_the_newest_generation; INSERT INTO executions (sandbox_id, generation, worker_id, substrate, activation_id, attempt) SELECT sandbox_id, 2, 'w', 'namespace', 'act2', 1 FROM sandboxes",
  ],
  [
    "r1_execution_is_of_the_newest_generation",
    "paused",
    "INSERT INTO executions (sandbox_id, generation, worker_id, substrate, activation_id, attempt) SELECT sandbox_id, 2, 'w', 'namespace', 'act2', 1 FROM sandboxes",
  ],
  ["r3_execution_identity_never_changes", "running", "UPDATE executions SET worker_id = 'other'"],
  ["r3_execution_identity_never_changes", "running", "UPDATE executions SET public_key = 'other'"],
  ["ended_is_final", "paused", "UPDATE executions SET ended_at_ms = NULL"],
  [
    "r5_certificate_becomes_the_head",
    "running",
    "INSERT INTO certificates (sandbox_id, generation, digest, token) SELECT sandbox_id, 1, 'other', 't' FROM sandboxes",
  ],
  [
    "r5_certificate_never_changes",
    "running",
    "INSERT INTO certificates (sandbox_id, generation, digest, token) SELECT sandbox_id, 1, 'c1', 't' FROM sandboxes; UPDATE certificates SET token = 'x'",
  ],
  [
    "r5_manifest_becomes_the_head",
    "paused",
    "INSERT INTO manifests (sandbox_id, generation, digest, memory, size_bytes, countersigned) SELECT sandbox_id, 1, 'other', 'none', 1, 't' FROM sandboxes",
  ],
  [
    "r5_manifest_never_changes",
    "paused",
    "INSERT INTO manifests (sandbox_id, generation, digest, memory, size_bytes, countersigned) SELECT sandbox_id, 1, 'm1', 'none', 1, 't' FROM sandboxes; UPDATE manifests SET countersigned = 'x'",
  ],
  ["r5_segment_ends_with_a_certificate", "running", segment("1, 0, NULL")],
  [
    "r5_segment_follows_another",
    "running",
    `DROP TRIGGER r5_segment_ends_with_a_certificate; ${segment("2, 1, 'x'")}`,
  ],
  [
    "r5_segment_never_changes",
    "running",
    `${certified}; ${segment("1, 0, NULL")}; UPDATE sealed_segments SET run = 1`,
  ],
  ["CHECK constraint failed", "running", `${certified}; ${segment("1, 1, NULL")}`],
  ["r5_kept_snapshot_is_of_a_certified_execution", "running", kept("s1")],
  ["r5_kept_snapshot_is_of_a_certified_execution", "pausing", kept("s1")],
  ["r5_kept_snapshot_never_changes", "running", `${keptOne}; UPDATE kept_snapshots SET countersigned = 'x'`],
  [
    "r5_kept_snapshot_never_changes",
    "running",
    `${keptOne}; UPDATE kept_snapshots SET held_until_ms = 0; UPDATE kept_snapshots SET held_until_ms = NULL`,
  ],
  [
    "only_what_is_listed_has_a_name",
    "running",
    `${keptOne}; UPDATE kept_snapshots SET name = 'n', held_until_ms = 0`,
  ],
  ["UNIQUE constraint failed", "running", `${keptOne}; ${kept("s2")}; UPDATE kept_snapshots SET name = 'n'`],
  ["r5_origin_is_a_snapshot_of_its_tenant", "running", `${keptOne}; ${child("'s1', 'another'")}`],
  [
    "r5_origin_never_changes",
    "running",
    "UPDATE sandboxes SET revision = 3, origin_kind = 'fork', origin_snapshot = 's', origin_manifest = 'd'",
  ],
  [
    "what_children_begin_with_is_kept",
    "running",
    `${keptOne}; ${child("'s1', printf('%064d', 0)")}; DELETE FROM kept_snapshots`,
  ],
  ["r10_bundle_version_only_grows", "running", "INSERT INTO key_bundles VALUES (2, 't')"],
  [
    "r10_bundle_never_changes",
    "running",
    "INSERT INTO key_bundles VALUES (1, 't'); UPDATE key_bundles SET token = 'x'",
  ],
  [
    "a_bundle_is_never_forgotten",
    "running",
    "INSERT INTO key_bundles VALUES (1, 't'); DELETE FROM key_bundles",
  ],
  ["r10_a_key_begins_announced", "running", signingKey("UPDATE signing_keys SET kid = kid", "signing")],
  ["r10_key_states_go_one_way", "running", signingKey("UPDATE signing_keys SET state = 'retiring'")],
  ["r10_key_states_go_one_way", "running", signingKey("UPDATE signing_keys SET state = 'removed'")],
  ["r10_a_key_never_changes", "running", signingKey("UPDATE signing_keys SET announced_in = 2")],
  ["a_key_is_never_forgotten", "running", signingKey("DELETE FROM signing_keys")],
  [
    "r10_what_ended_is_in_no_newer_bundle",
    "running",
    signingKey("UPDATE signing_keys SET state = 'revoked', ended_at_ms = 1, ended_in = 1"),
  ],
  ["what_retires_has_signed", "running", signingKey("UPDATE signing_keys SET state = 'signing'")],
];

/** One announced key in bundle 1, and then a write. */
function signingKey(write: string, state = "announced"): string {
  return `INSERT INTO key_bundles VALUES (1, 't'); INSERT INTO signing_keys (kid, public_key, state, announced_in, announced_at_ms)
    VALUES ('${"k".repeat(43)}', '${"p".repeat(43)}', '${state}', 1, 1); ${write}`;
}

/** A snapshot of the one sandbox. */
function kept(id: string): string {
  return `INSERT INTO kept_snapshots SELECT '${id}', tenant_id, sandbox_id, printf('%064d', 0), 't', 'k', 'none', 1, '[]', 'base',
    1, 1, 1, 1, '{}', NULL, 1, NULL FROM sandboxes`;
}

/** Another sandbox that begins with this. */
function child(origin: string): string {
  return `INSERT INTO sandboxes (sandbox_id, tenant_id, template, state, revision, generation, claim_owner, claim_until_ms,
      created_at_ms, started_at_ms, end_at_ms, changed_at_ms, on_timeout, keep_memory, auto_resume, timeout_ms,
      metadata, variables, memory_bytes, cpus, processes, disk_bytes, origin_kind, origin_snapshot, origin_manifest)
    VALUES ('i2', 'ten', 'base', 'creating', 1, 1, 'me', 9, 1, 1, 1, 1, 'kill', 0, 0, 1, '{}', '{}', 1, 1, 1, 1, 'fork', ${origin})`;
}

function resume(generation: string): string {
  return `UPDATE sandboxes SET revision = 5, state = 'resuming', claim_owner = 'me', claim_until_ms = 9, ${generation}`;
}

describe("the schema", () => {
  test("holds the model's table of states", () => {
    const rows = databaseWith("creating").prepare("SELECT from_state, to_state FROM lifecycle").all();
    const stored = rows.map(({ from_state, to_state }) => `${String(from_state)} -> ${String(to_state)}`);
    const model = Object.entries(enteredFrom).flatMap(([to, from]) =>
      from.map((state) => `${state} -> ${to}`),
    );
    assert.deepEqual(stored.toSorted(), model.toSorted());
  });

  for (const [rule, state, write] of refused) {
    test(`refuses by ${rule}: ${state}, ${write.slice(0, 70)}`, () => {
      assert.throws(() => databaseWith(state).exec(write), new RegExp(rule));
    });
  }

  test("refuses a sandbox that does not begin creating, in generation 1", () => {
    const again = (columns: string): string => `INSERT INTO sandboxes SELECT * FROM (
      SELECT 'i2', tenant_id, template, ${columns}, claim_owner, claim_until_ms, created_at_ms, started_at_ms, end_at_ms,
        changed_at_ms, on_timeout, keep_memory, auto_resume, timeout_ms, metadata, variables, memory_bytes, cpus,
        processes, disk_bytes, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL FROM sandboxes)`;
    databaseWith("creating").exec(again("'creating', 1, 1"));
    for (const columns of ["'running', 1, 1", "'creating', 2, 1", "'creating', 1, 2"]) {
      assert.throws(() => databaseWith("creating").exec(again(columns)), /lifecycle_begins_creating/);
    }
  });

  test("counts what is live, per tenant and per worker, through a life", () => {
    const counts = (database: DatabaseSync): unknown =>
      database.prepare("SELECT live, held FROM tenants, worker_load").get();
    for (const state of ["creating", "running", "pausing"] as const) {
      assert.deepEqual({ ...Object(counts(databaseWith(state))) }, { live: 1, held: 1 });
    }
    assert.deepEqual({ ...Object(counts(databaseWith("paused"))) }, { live: 0, held: 0 });
  });
});
