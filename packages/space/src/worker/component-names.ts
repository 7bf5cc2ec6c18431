// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** The names that the mesh's certificates carry, besides those of the workers. */
export const controlPlaneName = "control-plane";
export const gatewayName = "gateway";
