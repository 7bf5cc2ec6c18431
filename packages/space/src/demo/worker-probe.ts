// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import { newAdmissionId, type Random, type SandboxId } from "@space/model";
import {
  FrameLink,
  headerValue,
  type OperationHead,
  type OperationTarget,
  parseAnswerHead,
  verdictHeader,
} from "@space/wire";

export interface Presented {
  readonly sandbox: SandboxId;
  readonly capability: string;
  readonly target: OperationTarget;
  readonly path: string;
}

/** What a worker's own comparator said, and how much of a body came with it. */
export interface ProbeAnswer {
  readonly status: number;
  readonly verdict: "match" | "refresh-route" | "deny" | "none";
  readonly bodyBytes: number;
}

/** Presents one capability to a worker directly, as a gateway would, and reads the worker's own verdict. */
export async function presentToWorker(
  socket: Duplex,
  presented: Presented,
  random: Random,
): Promise<ProbeAnswer> {
  const link = new FrameLink(socket, { dialled: true });
  try {
    return await presentOver(link, presented, random);
  } finally {
    link.destroy(undefined);
  }
}

/** The same over a link that is there already. Rejects when it ends without a verdict. */
export function presentOver(link: FrameLink, presented: Presented, random: Random): Promise<ProbeAnswer> {
  const admission = newAdmissionId(random);
  const head: OperationHead = { admission, method: "GET", headers: [], ...presented };
  return new Promise((resolve, reject) => {
    let answer: Omit<ProbeAnswer, "bodyBytes"> | undefined;
    let bodyBytes = 0;
    const done = (): void => {
      if (answer === undefined) reject(new Error("the worker ended without a verdict"));
      else resolve({ ...answer, bodyBytes });
    };
    const stream = link.open(
      JSON.stringify(head),
      {
        onHead(bytes) {
          const { status, headers } = parseAnswerHead(JSON.parse(bytes.toString("utf8")));
          answer = { status, verdict: readVerdict(headers, admission) };
        },
        onData(chunk) {
          bodyBytes += chunk.length;
          stream.consumed(chunk.length);
        },
        onEnd: done,
        onReset: done,
      },
      true,
    );
  });
}

function readVerdict(headers: readonly string[], admission: string): ProbeAnswer["verdict"] {
  if (headerValue(headers, "space-admitted") === admission) return "match";
  if (headerValue(headers, "space-admission") !== admission) return "none";
  const verdict = headerValue(headers, verdictHeader);
  return verdict === "refresh-route" || verdict === "deny" ? verdict : "none";
}
