-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

ALTER TABLE sandboxes ADD COLUMN auto_recover INTEGER NOT NULL DEFAULT 0 CHECK (auto_recover IN (0, 1));
-- The generation whose last state is in no snapshot; until a later snapshot is committed.
ALTER TABLE sandboxes ADD COLUMN lost_generation INTEGER CHECK (lost_generation IS NULL OR lost_generation <= generation);

CREATE INDEX sandboxes_recoverable ON sandboxes (end_at_ms) WHERE state = 'lost' AND auto_recover = 1;

-- The only way back to `lost` from `resuming`: a resume of what was lost that failed.
CREATE TRIGGER statement5_only_the_lost_is_lost_again BEFORE UPDATE ON sandboxes
WHEN OLD.state = 'resuming' AND ((NEW.state = 'lost' AND OLD.lost_generation IS NULL)
  OR (NEW.state = 'paused' AND OLD.lost_generation IS NOT NULL))
BEGIN SELECT RAISE(ABORT, 'statement5_only_the_lost_is_lost_again'); END;
