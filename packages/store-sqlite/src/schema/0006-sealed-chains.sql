-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- R-5: the objects of each sandbox's sealed chain: written with the claim, before an object can be in the object store.
CREATE TABLE sealed_segments (
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id) ON DELETE CASCADE,
  -- The generation whose certificate it ends with; of each there is one.
  through INTEGER NOT NULL,
  after INTEGER NOT NULL CHECK (after >= 0 AND after < through),
  digest TEXT NOT NULL CHECK (length(digest) = 64),
  previous TEXT CHECK ((previous IS NULL) = (after = 0)),
  run INTEGER NOT NULL CHECK (run >= 0),
  PRIMARY KEY (sandbox_id, through)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER r5_segment_follows_another BEFORE INSERT ON sealed_segments
WHEN NEW.previous IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM sealed_segments WHERE sandbox_id = NEW.sandbox_id AND through = NEW.after AND digest = NEW.previous
)
BEGIN SELECT RAISE(ABORT, 'r5_segment_follows_another'); END;

CREATE TRIGGER r5_segment_ends_with_a_certificate BEFORE INSERT ON sealed_segments
WHEN NOT EXISTS (SELECT 1 FROM certificates WHERE sandbox_id = NEW.sandbox_id AND generation = NEW.through)
BEGIN SELECT RAISE(ABORT, 'r5_segment_ends_with_a_certificate'); END;

CREATE TRIGGER r5_segment_never_changes BEFORE UPDATE ON sealed_segments
BEGIN SELECT RAISE(ABORT, 'r5_segment_never_changes'); END;

CREATE INDEX manifests_by_generation ON manifests (sandbox_id, generation);
