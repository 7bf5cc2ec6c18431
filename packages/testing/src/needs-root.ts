// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** A reason to skip, or false: for tests that start real guests. */
export const needsRoot: string | false = process.getuid?.() === 0 ? false : "sandboxes need root";
