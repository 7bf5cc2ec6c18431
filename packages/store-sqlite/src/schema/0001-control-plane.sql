-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- Times are milliseconds since 1970. Triggers hold what the use-cases promise; each is named after its rule.

CREATE TABLE tenants (
  tenant_id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  sandbox_limit INTEGER NOT NULL CHECK (sandbox_limit >= 0),
  -- Sandboxes that run or are about to; kept by triggers, so that the limit costs no counting.
  live INTEGER NOT NULL DEFAULT 0 CHECK (live >= 0),
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Only the SHA-256 of a key is kept.
CREATE TABLE api_keys (
  key_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id),
  hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
  created_at_ms INTEGER NOT NULL,
  revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- An empty tenant: everyone's.
CREATE TABLE template_aliases (
  alias TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  template TEXT NOT NULL,
  PRIMARY KEY (alias, tenant_id)
) STRICT, WITHOUT ROWID;

INSERT INTO template_aliases (alias, tenant_id, template) VALUES ('base', '', 'base');

CREATE TABLE key_bundles (
  version INTEGER PRIMARY KEY CHECK (version >= 1),
  token TEXT NOT NULL
) STRICT;

CREATE TRIGGER r10_bundle_version_only_grows BEFORE INSERT ON key_bundles
WHEN NEW.version <> (SELECT coalesce(max(version), 0) + 1 FROM key_bundles)
BEGIN SELECT RAISE(ABORT, 'r10_bundle_version_only_grows'); END;

CREATE TRIGGER r10_bundle_never_changes BEFORE UPDATE ON key_bundles
BEGIN SELECT RAISE(ABORT, 'r10_bundle_never_changes'); END;

-- The table `enteredFrom` of the model; a test compares the two.
CREATE TABLE lifecycle (
  from_state TEXT NOT NULL,
  to_state TEXT NOT NULL,
  PRIMARY KEY (from_state, to_state)
) STRICT, WITHOUT ROWID;

INSERT INTO lifecycle (to_state, from_state) VALUES
  ('running', 'creating'), ('running', 'resuming'), ('running', 'pausing'),
  ('pausing', 'running'),
  ('paused', 'pausing'), ('paused', 'resuming'), ('paused', 'lost'),
  ('resuming', 'paused'), ('resuming', 'lost'),
  ('killing', 'creating'), ('killing', 'running'), ('killing', 'pausing'), ('killing', 'paused'),
  ('killing', 'resuming'), ('killing', 'failed'), ('killing', 'lost'),
  ('killed', 'killing'),
  ('failed', 'creating'),
  ('lost', 'running'), ('lost', 'pausing'), ('lost', 'resuming');

CREATE TABLE sandboxes (
  sandbox_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id),
  template TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN (
    'creating', 'running', 'pausing', 'paused', 'resuming', 'killing', 'killed', 'failed', 'lost'
  )),
  revision INTEGER NOT NULL CHECK (revision >= 1),
  generation INTEGER NOT NULL CHECK (generation >= 1),
  claim_owner TEXT,
  claim_until_ms INTEGER,
  created_at_ms INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL,
  end_at_ms INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL,
  on_timeout TEXT NOT NULL CHECK (on_timeout IN ('kill', 'pause')),
  keep_memory INTEGER NOT NULL CHECK (keep_memory IN (0, 1)),
  auto_resume INTEGER NOT NULL CHECK (auto_resume IN (0, 1)),
  timeout_ms INTEGER NOT NULL,
  metadata TEXT NOT NULL CHECK (json_type(metadata) = 'object'),
  variables TEXT NOT NULL CHECK (json_type(variables) = 'object'),
  memory_bytes INTEGER NOT NULL,
  cpus REAL NOT NULL,
  processes INTEGER NOT NULL,
  disk_bytes INTEGER NOT NULL,
  certificate_head TEXT,
  manifest_head TEXT,
  frozen_on TEXT,
  reason TEXT,

  CONSTRAINT transitional_states_are_claims CHECK (
    (state IN ('creating', 'pausing', 'resuming', 'killing')) = (claim_owner IS NOT NULL)
    AND (claim_owner IS NULL) = (claim_until_ms IS NULL)
  ),
  CONSTRAINT r5_what_runs_is_certified CHECK (
    state NOT IN ('running', 'pausing', 'paused', 'resuming', 'lost') OR certificate_head IS NOT NULL
  ),
  CONSTRAINT what_is_paused_has_a_snapshot CHECK (
    state NOT IN ('paused', 'resuming') OR manifest_head IS NOT NULL
  ),
  CONSTRAINT what_is_frozen_has_a_snapshot CHECK (frozen_on IS NULL OR manifest_head IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sandboxes_by_start ON sandboxes (tenant_id, started_at_ms, sandbox_id)
  WHERE state IN ('running', 'pausing', 'paused', 'resuming', 'lost');
-- When each sandbox next needs somebody: its claim runs out, or its time does.
CREATE INDEX sandboxes_by_due ON sandboxes (coalesce(claim_until_ms, end_at_ms))
  WHERE state NOT IN ('paused', 'killed', 'failed');
CREATE INDEX sandboxes_frozen ON sandboxes (frozen_on) WHERE frozen_on IS NOT NULL;
CREATE INDEX sandboxes_over ON sandboxes (changed_at_ms) WHERE state IN ('killed', 'failed');

CREATE TRIGGER live_counts_begun AFTER INSERT ON sandboxes
BEGIN UPDATE tenants SET live = live + 1 WHERE tenant_id = NEW.tenant_id; END;

CREATE TRIGGER live_counts_changed AFTER UPDATE OF state ON sandboxes
WHEN (OLD.state IN ('creating', 'running', 'pausing', 'resuming'))
  <> (NEW.state IN ('creating', 'running', 'pausing', 'resuming'))
BEGIN
  UPDATE tenants SET live = live + iif(NEW.state = 'resuming', 1, -1) WHERE tenant_id = NEW.tenant_id;
END;

CREATE TRIGGER lifecycle_begins_creating BEFORE INSERT ON sandboxes
WHEN NEW.state <> 'creating' OR NEW.generation <> 1 OR NEW.revision <> 1
BEGIN SELECT RAISE(ABORT, 'lifecycle_begins_creating'); END;

CREATE TRIGGER lifecycle_edges BEFORE UPDATE ON sandboxes
WHEN NEW.state <> OLD.state AND NOT EXISTS (
  SELECT 1 FROM lifecycle WHERE from_state = OLD.state AND to_state = NEW.state
)
BEGIN SELECT RAISE(ABORT, 'lifecycle_edges'); END;

CREATE TRIGGER lifecycle_killed_is_final BEFORE UPDATE ON sandboxes WHEN OLD.state = 'killed'
BEGIN SELECT RAISE(ABORT, 'lifecycle_killed_is_final'); END;

CREATE TRIGGER lifecycle_only_the_dead_are_removed BEFORE DELETE ON sandboxes
WHEN OLD.state NOT IN ('killed', 'failed')
BEGIN SELECT RAISE(ABORT, 'lifecycle_only_the_dead_are_removed'); END;

CREATE TRIGGER revision_counts_writes BEFORE UPDATE ON sandboxes WHEN NEW.revision <> OLD.revision + 1
BEGIN SELECT RAISE(ABORT, 'revision_counts_writes'); END;

CREATE TRIGGER sandbox_identity_never_changes BEFORE UPDATE ON sandboxes
WHEN NEW.sandbox_id <> OLD.sandbox_id OR NEW.tenant_id <> OLD.tenant_id
BEGIN SELECT RAISE(ABORT, 'sandbox_identity_never_changes'); END;

CREATE TRIGGER r1_generation_only_grows BEFORE UPDATE ON sandboxes
WHEN NEW.generation <> OLD.generation + (NEW.state = 'resuming' AND OLD.state <> 'resuming')
BEGIN SELECT RAISE(ABORT, 'r1_generation_only_grows'); END;

-- One generation. It starts without a key, serves once its certificate is published, and has ended for ever.
CREATE TABLE executions (
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id) ON DELETE CASCADE,
  generation INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  substrate TEXT NOT NULL,
  pod_uid TEXT,
  activation_id TEXT NOT NULL UNIQUE,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  public_key TEXT,
  ended_at_ms INTEGER,
  PRIMARY KEY (sandbox_id, generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX executions_by_worker ON executions (worker_id) WHERE ended_at_ms IS NULL;

CREATE TRIGGER r1_execution_is_of_the_newest_generation BEFORE INSERT ON executions
WHEN NEW.generation <> (SELECT generation FROM sandboxes WHERE sandbox_id = NEW.sandbox_id)
BEGIN SELECT RAISE(ABORT, 'r1_execution_is_of_the_newest_generation'); END;

CREATE TRIGGER one_live_execution_per_sandbox BEFORE INSERT ON executions
WHEN EXISTS (SELECT 1 FROM executions WHERE sandbox_id = NEW.sandbox_id AND ended_at_ms IS NULL)
BEGIN SELECT RAISE(ABORT, 'one_live_execution_per_sandbox'); END;

CREATE TRIGGER r3_execution_identity_never_changes BEFORE UPDATE ON executions
WHEN NEW.sandbox_id <> OLD.sandbox_id OR NEW.generation <> OLD.generation OR NEW.worker_id <> OLD.worker_id
  OR NEW.substrate <> OLD.substrate OR NEW.pod_uid IS NOT OLD.pod_uid OR NEW.activation_id <> OLD.activation_id
  OR (OLD.public_key IS NOT NULL AND NEW.public_key IS NOT OLD.public_key) OR NEW.attempt < OLD.attempt
BEGIN SELECT RAISE(ABORT, 'r3_execution_identity_never_changes'); END;

CREATE TRIGGER ended_is_final BEFORE UPDATE ON executions
WHEN OLD.ended_at_ms IS NOT NULL AND NEW.ended_at_ms IS NOT OLD.ended_at_ms
BEGIN SELECT RAISE(ABORT, 'ended_is_final'); END;

-- What each worker holds: executions that have not ended, and frozen ones. Kept by triggers.
CREATE TABLE worker_load (
  worker_id TEXT PRIMARY KEY,
  held INTEGER NOT NULL CHECK (held >= 0)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER load_counts_started AFTER INSERT ON executions
BEGIN
  INSERT INTO worker_load (worker_id, held) VALUES (NEW.worker_id, 1)
    ON CONFLICT (worker_id) DO UPDATE SET held = held + 1;
END;

CREATE TRIGGER load_counts_ended AFTER UPDATE OF ended_at_ms ON executions
WHEN OLD.ended_at_ms IS NULL AND NEW.ended_at_ms IS NOT NULL
BEGIN UPDATE worker_load SET held = held - 1 WHERE worker_id = NEW.worker_id; END;

CREATE TRIGGER load_counts_frozen AFTER UPDATE OF frozen_on ON sandboxes
WHEN NEW.frozen_on IS NOT NULL AND NEW.frozen_on IS NOT OLD.frozen_on
BEGIN UPDATE worker_load SET held = held + 1 WHERE worker_id = NEW.frozen_on; END;

CREATE TRIGGER load_counts_thawed AFTER UPDATE OF frozen_on ON sandboxes
WHEN OLD.frozen_on IS NOT NULL AND NEW.frozen_on IS NOT OLD.frozen_on
BEGIN UPDATE worker_load SET held = held - 1 WHERE worker_id = OLD.frozen_on; END;

CREATE TABLE certificates (
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id) ON DELETE CASCADE,
  generation INTEGER NOT NULL,
  digest TEXT NOT NULL,
  previous TEXT,
  token TEXT NOT NULL,
  PRIMARY KEY (sandbox_id, generation)
) STRICT, WITHOUT ROWID;

-- The head moves by a conditional write from `previous`; so the certificates of a sandbox are one line.
CREATE TRIGGER r5_certificate_becomes_the_head BEFORE INSERT ON certificates
WHEN NOT EXISTS (
  SELECT 1 FROM sandboxes s JOIN executions e USING (sandbox_id, generation) WHERE s.sandbox_id = NEW.sandbox_id
    AND s.generation = NEW.generation AND s.certificate_head = NEW.digest
    AND e.public_key IS NOT NULL AND e.ended_at_ms IS NULL
)
BEGIN SELECT RAISE(ABORT, 'r5_certificate_becomes_the_head'); END;

CREATE TRIGGER r5_certificate_never_changes BEFORE UPDATE ON certificates
BEGIN SELECT RAISE(ABORT, 'r5_certificate_never_changes'); END;

CREATE TABLE manifests (
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id) ON DELETE CASCADE,
  digest TEXT NOT NULL,
  generation INTEGER NOT NULL,
  previous TEXT,
  memory TEXT NOT NULL CHECK (memory IN ('none', 'frozen-on-worker', 'in-snapshot')),
  size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
  countersigned TEXT NOT NULL,
  PRIMARY KEY (sandbox_id, digest)
) STRICT;

CREATE TRIGGER r5_manifest_becomes_the_head BEFORE INSERT ON manifests
WHEN NOT EXISTS (
  SELECT 1 FROM sandboxes WHERE sandbox_id = NEW.sandbox_id AND generation = NEW.generation
    AND manifest_head = NEW.digest AND certificate_head IS NOT NULL
)
BEGIN SELECT RAISE(ABORT, 'r5_manifest_becomes_the_head'); END;

CREATE TRIGGER r5_manifest_never_changes BEFORE UPDATE ON manifests
BEGIN SELECT RAISE(ABORT, 'r5_manifest_never_changes'); END;

CREATE TABLE idempotency_keys (
  tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id),
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id) ON DELETE CASCADE,
  PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_sandbox ON idempotency_keys (sandbox_id);

-- Orders that must reach a worker. A newer order about the same subject replaces the older one, under a new id.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  worker_id TEXT NOT NULL,
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id),
  subject TEXT NOT NULL,
  effect TEXT NOT NULL CHECK (json_type(effect) = 'object'),
  attempts INTEGER NOT NULL DEFAULT 0,
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  UNIQUE (sandbox_id, worker_id, subject)
) STRICT;

CREATE INDEX outbox_by_worker ON outbox (worker_id, id);
