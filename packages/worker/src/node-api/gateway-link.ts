// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import {
  type DenyReason,
  type IdentityVerdict,
  type NeededAccess,
  type RefreshReason,
  type RuntimeRecord,
  unreachable,
} from "@space/model";
import {
  FrameLink,
  guestOperation,
  httpStatus,
  isBrief,
  type LinkStream,
  type OperationHead,
  parseOperationHead,
  resetReason,
  type StreamHandlers,
} from "@space/wire";
import type { AdmissionCheck } from "../ports.ts";
import type { WorkerParts } from "../sbx-manager/parts.ts";
import { denyHead, refreshHead } from "./answers.ts";
import { ForwardedOperation } from "./forwarded-operation.ts";
import { RefusedBody } from "./refused-body.ts";

export interface GatewayLinkOptions {
  /** thumbprint of the certificate with which the other end opened this connection. */
  readonly presenter: string;
  readonly admission: AdmissionCheck;
  readonly onClose: () => void;
}

/** The comparator's verdict, with the record that a match was found in. */
type LinkVerdict =
  | { readonly kind: "match"; readonly record: RuntimeRecord }
  | Exclude<IdentityVerdict, { readonly kind: "match" }>;

/**
 * One gateway's connection. Each stream is one operation: its head is compared with the present record, and it is
 * refused, or registered under the record's epoch and forwarded, in one turn of the event loop.
 */
export class GatewayLink {
  readonly #parts: WorkerParts;
  readonly #options: GatewayLinkOptions;
  readonly #link: FrameLink;

  constructor(parts: WorkerParts, socket: Duplex, options: GatewayLinkOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#link = new FrameLink(socket, {
      dialled: false,
      maxStreams: parts.limits.streamsPerGateway,
      onOpen: (stream, head, ended) => this.#open(stream, head, ended),
      onClose: options.onClose,
    });
  }

  close(): void {
    this.#link.destroy(undefined);
  }

  #open(stream: LinkStream, head: Buffer, ended: boolean): StreamHandlers {
    const operation = this.#read(head);
    if (operation === undefined) {
      stream.reset(resetReason.protocol);
      return new RefusedBody(stream, 0);
    }
    // found by the target, never by what the capability says.
    const record = this.#parts.records.read(operation.sandbox);
    const verdict = this.#verdict(operation, record);
    switch (verdict.kind) {
      case "match":
        return this.#forward(stream, operation, verdict.record, ended);
      case "refresh-route":
        this.#auditRefresh(operation, verdict.reason);
        return this.#refuse(stream, refreshHead(verdict.rejected, operation.admission));
      case "deny":
        this.#auditDenial(operation, verdict.reason);
        return this.#refuse(stream, denyHead(operation.admission));
      default:
        return unreachable(verdict);
    }
  }

  #read(head: Buffer): OperationHead | undefined {
    try {
      return parseOperationHead(JSON.parse(head.toString("utf8")));
    } catch {
      const { presenter } = this.#options;
      this.#parts.counters.malformed += 1;
      this.#parts.audit.record("gateway/misbehaved", { presenter, problem: "unreadable head" });
      return undefined;
    }
  }

  #verdict(operation: OperationHead, record: RuntimeRecord | undefined): LinkVerdict {
    const verdict = this.#options.admission.check({
      capability: operation.capability,
      target: operation.sandbox,
      record,
      presenter: this.#options.presenter,
      needed: neededAccess(operation),
    });
    if (verdict.kind !== "match") return verdict;
    const rejected = verdict.identity;
    if (record === undefined) return { kind: "refresh-route", reason: "not-installed", rejected };
    const reason = this.#parts.lease.held ? this.#parts.executions.refusal(record) : "no-lease";
    return reason === undefined ? { kind: "match", record } : { kind: "refresh-route", reason, rejected };
  }

  #forward(
    stream: LinkStream,
    operation: OperationHead,
    record: RuntimeRecord,
    ended: boolean,
  ): StreamHandlers {
    const { admission, target, method, path, headers } = operation;
    const { activation } = record.identity;
    this.#parts.counters.admitted += 1;
    const facts = { admission, record, isShort: isShort(operation) };
    const forwarded = new ForwardedOperation(facts, stream, this.#parts.streams, this.#parts.lease);
    // The capability goes no further than here.
    const head = JSON.stringify({ activation: activation.id, target, method, path, headers });
    const bridge = this.#parts.bridge.open(head, forwarded.bridgeSide, ended);
    if (bridge === undefined) {
      this.#parts.counters.unforwarded += 1;
      forwarded.fail("endpoint/unverifiable", httpStatus.unavailable);
      return new RefusedBody(stream, this.#parts.limits.refusedBodyBytes);
    }
    forwarded.forwardTo(bridge);
    if (operation.awaitAdmission === true) stream.sendProceed(admission);
    return forwarded;
  }

  #refuse(stream: LinkStream, head: string): StreamHandlers {
    stream.sendHead(head, true);
    return new RefusedBody(stream, this.#parts.limits.refusedBodyBytes);
  }

  #auditRefresh({ admission, sandbox }: OperationHead, reason: RefreshReason): void {
    const { presenter } = this.#options;
    this.#parts.counters.refreshed += 1;
    this.#parts.audit.record("admission/refreshed", { admission, sandboxId: sandbox, reason, presenter });
  }

  #auditDenial({ admission, sandbox }: OperationHead, reason: DenyReason): void {
    const { presenter } = this.#options;
    this.#parts.counters.denied += 1;
    this.#parts.audit.record("admission/denied", { admission, sandboxId: sandbox, reason, presenter });
  }
}

/** the one scope of the guest operation (undefined: in no table, so refused), or the service port's own access. */
function neededAccess({ target, method, path }: OperationHead): NeededAccess {
  if (target.purpose === "service-port") return target;
  return { purpose: "control", scope: guestOperation(method, path)?.scope };
}

function isShort({ target, method, path }: OperationHead): boolean {
  return target.purpose === "control" && isBrief(method, path);
}
