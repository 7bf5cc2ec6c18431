// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** One rule of the identity protocol. */
export interface Rule {
  readonly number: number;
  readonly title: string;
  /** What of it is not built yet, and what brings it. Listed; it excuses nothing else of the rule. */
  readonly open?: string;
  /** The whole rule is open: it needs neither a test nor a line that cites it. */
  readonly isOpenWhole?: true;
  /** Being built: excused until the first test and the first line name it, and an error from then on. */
  readonly isAwaited?: true;
}

/** each once. A rule is excused only here. */
export const rules: readonly Rule[] = [
  { number: 1, title: "a generation only grows, and every new runtime process is a new one" },
  { number: 2, title: "a pod is part of the identity; an address never authorises" },
  { number: 3, title: "route, activation and attempt" },
  { number: 4, title: "who drives the lifecycle is not part of the identity" },
  { number: 5, title: "execution keys, certificates and the identity chain" },
  { number: 6, title: "one signed form, strictly parsed" },
  { number: 7, title: "the claims, bound to who presents them" },
  { number: 8, title: "each operation needs one scope; what is in no table is refused" },
  { number: 9, title: "120 s of life, 15 s of tolerance at expiry" },
  { number: 10, title: "signing keys, verification bundles and rotation" },
  { number: 11, title: "bytes are remembered, verdicts never" },
  { number: 12, title: "a record changes only by install and retire, synced first" },
  { number: 13, title: "the order of the checks, and the table of verdicts" },
  { number: 14, title: "admission ids, verdicts on the wire, reserved headers" },
  { number: 15, title: "what is not yet heard of still matches, within bounds" },
  { number: 16, title: "leases, and fencing when one ends" },
  {
    number: 17,
    title: "service ports are checked again at the sandbox's own gateway",
    open: "the check at netgtw comes with the sandbox's own gateway; the worker's is here",
    isOpenWhole: true,
  },
  {
    number: 18,
    title: "an attempt alone keeps established streams",
    open: "for service ports it comes with the sandbox's own gateway",
    isOpenWhole: true,
  },
  {
    number: 19,
    title: "a socket is shown to belong to the recorded processes",
    open: "VMM and vsock come with the Firecracker substrate; the Linux part is here",
  },
  { number: 20, title: "no transparent reconnect" },
  { number: 21, title: "streams hold a lease on the epoch" },
  { number: 22, title: "an eligible stream continues, each byte once and in order" },
  { number: 23, title: "route, capability and authorisation are one immutable entry" },
  { number: 24, title: "repair only after a recognised refusal, and conditionally" },
  { number: 25, title: "nothing extends an authorisation" },
  { number: 26, title: "at most one repair per request" },
  { number: 27, title: "a retried request is rebuilt; admission is decided on the head" },
  { number: 28, title: "what may be tried again after a transport error" },
];
