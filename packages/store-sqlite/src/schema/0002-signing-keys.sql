-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- R-10: the keys that sign, without their private halves. Times are milliseconds since 1970.
CREATE TABLE signing_keys (
  kid TEXT PRIMARY KEY CHECK (length(kid) = 43),
  public_key TEXT NOT NULL UNIQUE CHECK (length(public_key) = 43),
  state TEXT NOT NULL CHECK (state IN ('announced', 'signing', 'retiring', 'removed', 'revoked')),
  announced_in INTEGER NOT NULL REFERENCES key_bundles (version),
  announced_at_ms INTEGER NOT NULL,
  signing_since_ms INTEGER,
  retiring_since_ms INTEGER,
  ended_at_ms INTEGER,
  ended_in INTEGER REFERENCES key_bundles (version),
  revoke_asked_at_ms INTEGER,

  CONSTRAINT r10_what_ended_is_in_no_newer_bundle CHECK (
    (state IN ('removed', 'revoked')) = (ended_in IS NOT NULL)
    AND (ended_in IS NULL) = (ended_at_ms IS NULL) AND (ended_in IS NULL OR ended_in > announced_in)
  ),
  CONSTRAINT what_retires_has_signed CHECK (
    (state = 'announced') <= (signing_since_ms IS NULL) AND (state <> 'retiring' OR retiring_since_ms IS NOT NULL)
    AND (state <> 'signing' OR signing_since_ms IS NOT NULL)
  )
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX r10_one_key_signs ON signing_keys (state) WHERE state = 'signing';
CREATE UNIQUE INDEX one_key_is_announced ON signing_keys (state) WHERE state = 'announced';

CREATE TRIGGER r10_a_key_begins_announced BEFORE INSERT ON signing_keys
WHEN NEW.state <> 'announced' OR NEW.announced_in <> (SELECT max(version) FROM key_bundles)
BEGIN SELECT RAISE(ABORT, 'r10_a_key_begins_announced'); END;

CREATE TRIGGER r10_key_states_go_one_way BEFORE UPDATE ON signing_keys
WHEN NEW.state <> OLD.state AND NOT (
  (OLD.state = 'announced' AND NEW.state IN ('signing', 'revoked'))
  OR (OLD.state = 'signing' AND NEW.state = 'retiring')
  OR (OLD.state = 'retiring' AND NEW.state IN ('removed', 'revoked'))
)
BEGIN SELECT RAISE(ABORT, 'r10_key_states_go_one_way'); END;

CREATE TRIGGER r10_a_key_never_changes BEFORE UPDATE ON signing_keys
WHEN NEW.kid <> OLD.kid OR NEW.public_key <> OLD.public_key OR NEW.announced_in <> OLD.announced_in
BEGIN SELECT RAISE(ABORT, 'r10_a_key_never_changes'); END;

CREATE TRIGGER a_key_is_never_forgotten BEFORE DELETE ON signing_keys
BEGIN SELECT RAISE(ABORT, 'a_key_is_never_forgotten'); END;

CREATE TRIGGER a_bundle_is_never_forgotten BEFORE DELETE ON key_bundles
BEGIN SELECT RAISE(ABORT, 'a_bundle_is_never_forgotten'); END;
