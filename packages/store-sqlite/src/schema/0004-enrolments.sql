-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- Which store is a worker's: the token of its last connection, and the one that this replaced.
CREATE TABLE enrolments (
  worker_id TEXT PRIMARY KEY,
  token TEXT NOT NULL,
  previous TEXT,
  connected_at_ms INTEGER NOT NULL,
  CONSTRAINT a_token_is_used_once CHECK (token IS NOT previous)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER a_worker_is_never_forgotten BEFORE DELETE ON enrolments
BEGIN SELECT RAISE(ABORT, 'a_worker_is_never_forgotten'); END;

CREATE TRIGGER enrolment_follows_the_last BEFORE UPDATE ON enrolments
WHEN NEW.worker_id <> OLD.worker_id
  OR (NEW.token <> OLD.token AND NEW.previous IS NOT OLD.token)
  OR (NEW.token = OLD.token AND NEW.previous IS NOT OLD.previous)
BEGIN SELECT RAISE(ABORT, 'enrolment_follows_the_last'); END;
