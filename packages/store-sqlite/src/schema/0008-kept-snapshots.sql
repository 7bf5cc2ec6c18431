-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- Whether it is `pausing` for a snapshot alone, and goes on after it.
ALTER TABLE sandboxes ADD COLUMN goes_on INTEGER NOT NULL DEFAULT 0 CHECK (goes_on IN (0, 1));
-- R-5: the snapshot of another sandbox that this one began with.
ALTER TABLE sandboxes ADD COLUMN origin_kind TEXT CHECK (origin_kind IN ('fork', 'template'));
ALTER TABLE sandboxes ADD COLUMN origin_snapshot TEXT CHECK ((origin_snapshot IS NULL) = (origin_kind IS NULL));
ALTER TABLE sandboxes ADD COLUMN origin_manifest TEXT CHECK ((origin_manifest IS NULL) = (origin_kind IS NULL));

-- Snapshots that are kept apart from the sandbox that they were taken of. What is in here is needed.
CREATE TABLE kept_snapshots (
  snapshot_id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL REFERENCES tenants (tenant_id),
  sandbox_id TEXT NOT NULL,
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  countersigned TEXT NOT NULL,
  execution_public_key TEXT NOT NULL,
  memory TEXT NOT NULL CHECK (memory IN ('none', 'in-snapshot')),
  size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
  objects TEXT NOT NULL CHECK (json_type(objects) = 'array'),
  template TEXT NOT NULL,
  memory_bytes INTEGER NOT NULL,
  cpus REAL NOT NULL,
  processes INTEGER NOT NULL,
  disk_bytes INTEGER NOT NULL,
  variables TEXT NOT NULL CHECK (json_type(variables) = 'object'),
  name TEXT,
  created_at_ms INTEGER NOT NULL,
  -- NULL: until it is deleted. Else a fork's, or one that was released (0).
  held_until_ms INTEGER,
  CONSTRAINT only_what_is_listed_has_a_name CHECK (name IS NULL OR held_until_ms IS NULL)
) STRICT;

CREATE UNIQUE INDEX one_snapshot_has_the_name ON kept_snapshots (tenant_id, name) WHERE name IS NOT NULL;
CREATE INDEX kept_snapshots_by_tenant ON kept_snapshots (tenant_id, created_at_ms, snapshot_id);
CREATE INDEX kept_snapshots_held ON kept_snapshots (held_until_ms) WHERE held_until_ms IS NOT NULL;
CREATE INDEX sandboxes_beginning ON sandboxes (origin_snapshot) WHERE state = 'creating';

CREATE TRIGGER r5_kept_snapshot_never_changes BEFORE UPDATE ON kept_snapshots
WHEN NEW.snapshot_id <> OLD.snapshot_id OR NEW.tenant_id <> OLD.tenant_id OR NEW.digest <> OLD.digest
  OR NEW.countersigned <> OLD.countersigned OR NEW.execution_public_key <> OLD.execution_public_key
  OR NEW.objects <> OLD.objects OR (OLD.held_until_ms IS NOT NULL AND NEW.held_until_ms IS NULL)
BEGIN SELECT RAISE(ABORT, 'r5_kept_snapshot_never_changes'); END;

CREATE TRIGGER r5_kept_snapshot_is_of_a_certified_execution BEFORE INSERT ON kept_snapshots
WHEN NOT EXISTS (
  SELECT 1 FROM sandboxes s JOIN executions e USING (sandbox_id, generation) WHERE s.sandbox_id = NEW.sandbox_id
    AND s.tenant_id = NEW.tenant_id AND s.state = 'pausing' AND s.goes_on = 1
    AND e.public_key = NEW.execution_public_key AND e.ended_at_ms IS NULL
)
BEGIN SELECT RAISE(ABORT, 'r5_kept_snapshot_is_of_a_certified_execution'); END;

CREATE TRIGGER what_children_begin_with_is_kept BEFORE DELETE ON kept_snapshots
WHEN EXISTS (SELECT 1 FROM sandboxes WHERE origin_snapshot = OLD.snapshot_id AND state = 'creating')
BEGIN SELECT RAISE(ABORT, 'what_children_begin_with_is_kept'); END;

CREATE TRIGGER r5_origin_is_a_snapshot_of_its_tenant BEFORE INSERT ON sandboxes
WHEN NEW.origin_snapshot IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM kept_snapshots WHERE snapshot_id = NEW.origin_snapshot AND tenant_id = NEW.tenant_id
    AND digest = NEW.origin_manifest
)
BEGIN SELECT RAISE(ABORT, 'r5_origin_is_a_snapshot_of_its_tenant'); END;

CREATE TRIGGER r5_origin_never_changes BEFORE UPDATE ON sandboxes
WHEN NEW.origin_kind IS NOT OLD.origin_kind OR NEW.origin_snapshot IS NOT OLD.origin_snapshot
  OR NEW.origin_manifest IS NOT OLD.origin_manifest
BEGIN SELECT RAISE(ABORT, 'r5_origin_never_changes'); END;
