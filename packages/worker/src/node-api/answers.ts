// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { routeDigest } from "@space/capability";
import type { AdmissionId, ErrorCode, ExecutionIdentity } from "@space/model";
import {
  type AnswerHead,
  admissionHeader,
  admittedHeader,
  failureHeader,
  isReserved,
  rejectedRouteHeader,
  verdictHeader,
} from "@space/wire";

/** the guest's answer, without anything that begins with our prefix, with the admission that it was let through by. */
export function admittedHead({ status, headers }: AnswerHead, admission: AdmissionId): string {
  const passed: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? "";
    if (!isReserved(name.toLowerCase())) passed.push(name, headers[at + 1] ?? "");
  }
  passed.push(admittedHeader, admission);
  return JSON.stringify({ status, headers: passed });
}

/** How the bridge begins and ends a head of status and headers, as it writes it. */
const plainBeginning = '{"status":';
const plainEnd = '"]}';
/** Our prefix in any case, or an escape behind which it may hide. */
const needsReading = /space-|\\/i;

/**
 * the same for a head that need not be read, because nothing in it can be of ours: it holds neither the prefix nor
 * an escape. Undefined: it has to be read. Its form is for the gateway to check, which takes nothing of another.
 */
export function admittedText(head: string, admission: AdmissionId): string | undefined {
  const isPlain = head.startsWith(plainBeginning) && head.endsWith(plainEnd) && !needsReading.test(head);
  return isPlain ? `${head.slice(0, -2)},"${admittedHeader}","${admission}"]}` : undefined;
}

/** An admitted operation that the worker or the bridge answers itself. */
export function failureHead(status: number, code: ErrorCode, admission: AdmissionId): string {
  return JSON.stringify({ status, headers: [admittedHeader, admission, failureHeader, code] });
}

/** 421 with the digest of the rejected route, and nothing about the present one. */
export function refreshHead(rejected: ExecutionIdentity, admission: AdmissionId): string {
  const headers = [
    verdictHeader,
    "refresh-route",
    admissionHeader,
    admission,
    rejectedRouteHeader,
    routeDigest(rejected),
  ];
  return JSON.stringify({ status: 421, headers });
}

/** 403 without any detail. */
export function denyHead(admission: AdmissionId): string {
  return JSON.stringify({ status: 403, headers: [verdictHeader, "deny", admissionHeader, admission] });
}
