// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { type EmbeddedOptions, type EmbeddedSystem, startEmbedded } from "./embedded/embedded-system.ts";
