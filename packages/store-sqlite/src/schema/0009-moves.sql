-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- A move: the commit of its pause and the claim of its resume are one write.
INSERT INTO lifecycle (to_state, from_state) VALUES ('resuming', 'pausing');

DROP TRIGGER r5_manifest_becomes_the_head;
CREATE TRIGGER r5_manifest_becomes_the_head BEFORE INSERT ON manifests
WHEN NOT EXISTS (
  SELECT 1 FROM sandboxes WHERE sandbox_id = NEW.sandbox_id AND manifest_head = NEW.digest AND certificate_head IS NOT NULL
    AND (generation = NEW.generation OR (state = 'resuming' AND generation = NEW.generation + 1))
)
BEGIN SELECT RAISE(ABORT, 'r5_manifest_becomes_the_head'); END;
