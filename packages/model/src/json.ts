// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Anything `JSON.parse` can return. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
