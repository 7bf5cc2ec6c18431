// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The worker's store. Each constraint is named after the rule that it holds. */
export const workerSchema = `
CREATE TABLE IF NOT EXISTS store_owner (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  worker_id TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS runtime_record (
  sandbox_id TEXT PRIMARY KEY,
  generation INTEGER NOT NULL CHECK (generation >= 1),
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  activation_id TEXT NOT NULL,
  identity TEXT NOT NULL,
  state TEXT NOT NULL CONSTRAINT known_state CHECK (state IN ('installed', 'retired')),
  certificate TEXT NOT NULL,
  certificate_digest TEXT NOT NULL,
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  host_boot_id TEXT NOT NULL,
  evidence TEXT NOT NULL,
  retired_order INTEGER CONSTRAINT retired_in_order CHECK ((state = 'retired') = (retired_order IS NOT NULL))
) STRICT;

CREATE INDEX IF NOT EXISTS runtime_record_retired ON runtime_record (retired_order) WHERE state = 'retired';

CREATE TRIGGER IF NOT EXISTS r12_order_only_grows BEFORE UPDATE ON runtime_record
WHEN NEW.generation < OLD.generation OR (NEW.generation = OLD.generation AND NEW.attempt < OLD.attempt)
BEGIN SELECT RAISE(ABORT, 'r12_order_only_grows'); END;

CREATE TRIGGER IF NOT EXISTS r12_generation_names_one_process BEFORE UPDATE ON runtime_record
WHEN NEW.generation = OLD.generation AND (NEW.activation_id <> OLD.activation_id
  OR json_extract(NEW.identity, '$.placement') <> json_extract(OLD.identity, '$.placement'))
BEGIN SELECT RAISE(ABORT, 'r12_generation_names_one_process'); END;

CREATE TRIGGER IF NOT EXISTS r12_tombstone_stays BEFORE UPDATE ON runtime_record
WHEN OLD.state = 'retired' AND NEW.generation = OLD.generation
BEGIN SELECT RAISE(ABORT, 'r12_tombstone_stays'); END;

CREATE TRIGGER IF NOT EXISTS r12_installed_is_never_forgotten BEFORE DELETE ON runtime_record
WHEN OLD.state = 'installed'
BEGIN SELECT RAISE(ABORT, 'r12_installed_is_never_forgotten'); END;

CREATE TRIGGER IF NOT EXISTS r21_epoch_only_grows BEFORE UPDATE ON runtime_record
WHEN NEW.epoch < OLD.epoch
  OR (NEW.epoch = OLD.epoch AND (NEW.generation <> OLD.generation OR NEW.state <> OLD.state))
BEGIN SELECT RAISE(ABORT, 'r21_epoch_only_grows'); END;

CREATE TABLE IF NOT EXISTS key_bundle (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  version INTEGER NOT NULL CHECK (version >= 1),
  token TEXT NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS r10_bundle_only_grows BEFORE UPDATE ON key_bundle
WHEN NEW.version <= OLD.version
BEGIN SELECT RAISE(ABORT, 'r10_bundle_only_grows'); END;

CREATE TRIGGER IF NOT EXISTS r10_bundle_stays BEFORE DELETE ON key_bundle
BEGIN SELECT RAISE(ABORT, 'r10_bundle_stays'); END;

CREATE TABLE IF NOT EXISTS feed_position (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  position INTEGER NOT NULL CHECK (position >= 0)
) STRICT;

CREATE TRIGGER IF NOT EXISTS r12_feed_position_only_grows BEFORE UPDATE ON feed_position
WHEN NEW.position < OLD.position
BEGIN SELECT RAISE(ABORT, 'r12_feed_position_only_grows'); END;

CREATE TABLE IF NOT EXISTS store_succession (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  held TEXT,
  next TEXT,
  CONSTRAINT a_token_is_used_once CHECK (next IS NULL OR next IS NOT held)
) STRICT;

CREATE TABLE IF NOT EXISTS activation (
  activation_id TEXT PRIMARY KEY,
  sandbox_id TEXT NOT NULL,
  generation INTEGER NOT NULL CHECK (generation >= 1),
  identity TEXT NOT NULL,
  phase TEXT NOT NULL CONSTRAINT known_phase CHECK (phase IN ('running', 'pausing', 'frozen', 'snapshotted', 'kept')),
  started_as TEXT NOT NULL CONSTRAINT one_activation_per_process UNIQUE,
  private_key TEXT NOT NULL,
  public_key TEXT NOT NULL,
  activation_secret BLOB NOT NULL CHECK (length(activation_secret) = 32),
  template TEXT NOT NULL,
  variables TEXT NOT NULL,
  evidence TEXT NOT NULL,
  restored_from TEXT,
  memory INTEGER NOT NULL CHECK (memory IN (0, 1)),
  manifest TEXT,
  CONSTRAINT snapshot_has_its_manifest CHECK ((phase IN ('snapshotted', 'kept')) = (manifest IS NOT NULL)),
  CONSTRAINT r3_one_process_per_generation UNIQUE (sandbox_id, generation)
) STRICT;
`;
