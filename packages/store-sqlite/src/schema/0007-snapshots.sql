-- SPDX-License-Identifier: Apache-2.0
-- Copyright 2026 The SPACE authors

-- A collector goes through one tenant's snapshots page by page, and asks which pauses are under way.
CREATE INDEX sandboxes_with_snapshots ON sandboxes (tenant_id, sandbox_id) WHERE manifest_head IS NOT NULL;
CREATE INDEX sandboxes_pausing ON sandboxes (tenant_id) WHERE state = 'pausing';
