// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** How a worker daemon says that its store is not this worker's any more: starting it again is of no use. */
export const supersededExitCode = 78;
