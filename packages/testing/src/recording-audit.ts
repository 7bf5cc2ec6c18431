// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditEvent, AuditEventName, AuditFields, AuditSink } from "@space/model";

/** Keeps every audit event. */
export class RecordingAudit implements AuditSink {
  readonly events: AuditEvent[] = [];

  record<N extends AuditEventName>(name: N, fields: AuditFields[N]): void {
    this.events.push({ name, fields });
  }

  /** The fields of every event of this name, in order. */
  of<N extends AuditEventName>(name: N): readonly AuditFields[N][] {
    return this.events.filter((event) => event.name === name).map(({ fields }) => fields as AuditFields[N]);
  }
}
