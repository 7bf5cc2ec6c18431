// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** One failure that platforms of this kind have had in public, by the number that it has in the design. */
export interface Incident {
  readonly number: number;
  /** What was seen elsewhere. */
  readonly symptom: string;
  /** What of it cannot happen here yet, and what brings it. Listed; it excuses nothing else of the incident. */
  readonly open?: string;
}

/** Each once. None is excused: what is open is the part that a later feature brings. */
export const incidents: readonly Incident[] = [
  { number: 1, symptom: "a late delete of the old pod evicts the route of the new one" },
  {
    number: 3,
    symptom: "a recycled address answers for someone else",
    open: "clearing conntrack and port mappings comes with the guests' own network",
  },
  { number: 5, symptom: "a kept-alive connection outlives a rollback" },
  { number: 7, symptom: "authorisation evicted from a cache alone, so the check is skipped" },
  { number: 8, symptom: "requests queued for a superseded session are replayed to the new one" },
  { number: 9, symptom: "a session resets in mid-exec and the client hangs" },
  { number: 11, symptom: "an idle terminal is cut because pings never cross the second leg" },
  { number: 12, symptom: "children of a killed command survive kill and pause" },
  { number: 13, symptom: "tokens accepted or refused at the wrong second" },
  { number: 15, symptom: "after the host slept, a new sandbox is removed or an old token is honoured" },
  { number: 17, symptom: "a running resume brings a deleted sandbox back" },
  { number: 18, symptom: "a resume inside a pause's clean-up leaves two pods or none" },
  { number: 19, symptom: "files written just before a pause are gone after the resume" },
  { number: 21, symptom: "restarting a node daemon kills data paths" },
  {
    number: 22,
    symptom: "leaked TAPs, namespaces, mounts; then even delete fails",
    open: "TAPs come with the Firecracker substrate; cgroups, namespaces, mounts, processes and files are here",
  },
  { number: 23, symptom: "a reused pid makes the manager kill a stranger" },
  { number: 24, symptom: "the reply is lost after the command ran, and it is run again" },
  { number: 25, symptom: "dropping the Authorization header turned a sandbox into a user" },
  { number: 26, symptom: "a store outage looks like not found, and the client recreates" },
  { number: 27, symptom: "use extends a cache entry, so a busy stale route never dies" },
  { number: 29, symptom: "a fork storm in one guest starves its neighbours or its agent" },
  { number: 30, symptom: "removing a signing key breaks everything at once, or nothing ever expires" },
  { number: 31, symptom: "the pause fails after the freeze, and the platform says running" },
  { number: 32, symptom: "a delayed idle-pause hits a sandbox that was just reconnected to" },
  { number: 33, symptom: "a wedged snapshot makes each resume go back in time" },
  { number: 34, symptom: "a 5xx is retried and the command runs twice" },
  { number: 35, symptom: "a token expired during an outage, and the agent reconnects for ever" },
  { number: 36, symptom: "the proxy ignores the runner's key" },
];
