// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type { ApiResponse } from "./answer.ts";
export { createE2bApi, type E2bApi, type E2bApiOptions } from "./api.ts";
export type { ApiRequest } from "./body.ts";
export { type ApiLimits, defaultLimits } from "./limits.ts";
export type { ApiService } from "./operation-call.ts";
