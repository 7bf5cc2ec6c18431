// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Being written by the colleague who owns the seccomp policy and the portable twin (not by the owner of the native code).

export {};
