// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditSink } from "@space/model";

/** What a drill's own components record is nobody's: the system under the drill keeps its logs. */
export const unheard: AuditSink = { record: () => undefined };
