// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type Clock,
  isSpaceError,
  parseSandboxId,
  type SandboxId,
  type SandboxService,
  type SnapshotService,
  SpaceError,
} from "@space/model";

import type { ApiLimits } from "./limits.ts";
import type { BodySchemas } from "./schema.ts";
import type { ViewSettings } from "./views.ts";

/** What the API is served from. */
export type ApiService = SandboxService & SnapshotService;

/** One authenticated request. Everything but `caller` is as the client wrote it. */
export interface Call {
  readonly caller: ApiCaller;
  readonly sandboxId: string;
  /** Of a path that names a template; empty otherwise. */
  readonly templateId: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly idempotencyKey: string | undefined;
}

export interface OperationPorts {
  readonly service: ApiService;
  readonly schemas: BodySchemas;
  readonly limits: ApiLimits;
  readonly clock: Clock;
  readonly views: ViewSettings;
}

/** An id that is none names no sandbox. Throws `sandbox/not-found`. */
export function sandboxIdOf({ sandboxId }: Call): SandboxId {
  try {
    return parseSandboxId(sandboxId);
  } catch (cause) {
    if (!isSpaceError(cause, "input/invalid")) throw cause;
    throw new SpaceError("sandbox/not-found", { sandboxId }, { cause });
  }
}
