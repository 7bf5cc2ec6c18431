// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Names the installation in what it signs. */
export const issuer = "space";
