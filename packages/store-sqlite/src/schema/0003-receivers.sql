-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- What must not be forgotten of a receiver. Numbers only grow.
CREATE TABLE receivers (
  worker_id TEXT PRIMARY KEY,
  -- The highest position of its feed, and the highest version of the keys, that it has acknowledged.
  position INTEGER NOT NULL DEFAULT 0 CHECK (position >= 0),
  bundle_version INTEGER NOT NULL DEFAULT 0 CHECK (bundle_version >= 0),
  lease_granted_at_ms INTEGER,
  lease_term_ms INTEGER CHECK (lease_term_ms > 0),
  CONSTRAINT r16_a_lease_has_a_term CHECK ((lease_granted_at_ms IS NULL) = (lease_term_ms IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER r12_acknowledged_only_grows BEFORE UPDATE ON receivers
WHEN NEW.position < OLD.position OR NEW.bundle_version < OLD.bundle_version
BEGIN SELECT RAISE(ABORT, 'r12_acknowledged_only_grows'); END;

CREATE TRIGGER r16_lease_never_ends_earlier BEFORE UPDATE ON receivers
WHEN OLD.lease_granted_at_ms IS NOT NULL AND (NEW.lease_granted_at_ms IS NULL
  OR NEW.lease_granted_at_ms + NEW.lease_term_ms < OLD.lease_granted_at_ms + OLD.lease_term_ms)
BEGIN SELECT RAISE(ABORT, 'r16_lease_never_ends_earlier'); END;

CREATE TRIGGER r12_receiver_is_never_forgotten BEFORE DELETE ON receivers
BEGIN SELECT RAISE(ABORT, 'r12_receiver_is_never_forgotten'); END;
