// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { eachFrame, isData, isHead, isOpening, isOver } from "./frames.ts";
import type { Oracle } from "./oracle.ts";
import type { SimDisk } from "./sim-disk.ts";
import { operationHeader } from "./sim-guest.ts";
import type { Tap } from "./sim-socket.ts";
import type { Presentation } from "./truth.ts";

/** The two ends of a link between a gateway and a worker: who presents what, what is rejected, and what is forwarded when. */
export function gatewayTaps(
  oracle: Oracle,
  link: { readonly gateway: string; readonly host: string; readonly disk: SimDisk },
): { readonly gatewayEnd: Tap; readonly workerEnd: Tap } {
  const { gateway, host, disk } = link;
  const presented = new Map<number, Presentation>();
  const recordOf = ({ operation }: Presentation) => disk.contents.records.get(operation.sandboxId);
  return {
    gatewayEnd: {
      sent: (bytes) =>
        eachFrame(bytes, (type, stream, from, to) => {
          if (!isOpening(type)) return;
          const head = bytes.toString("latin1", from, to);
          const operation = oracle.operations.get(operationIn(head));
          if (operation === undefined) return;
          const path = textAfter('"path":"', head);
          const capability = textAfter('"capability":"', head);
          const presentation = oracle.gateways.presented({ gateway, host, path }, operation, capability);
          if (presentation !== undefined) presented.set(stream, presentation);
        }),
      arrived: (bytes) =>
        eachFrame(bytes, (type, stream, from, to) => {
          const presentation = isHead(type) ? presented.get(stream) : undefined;
          if (presentation === undefined) return;
          const head = bytes.toString("latin1", from, to);
          if (head.includes('"status":421')) oracle.gateways.rejected(presentation);
          else if (head.includes('"space-verdict","deny"')) oracle.gateways.denied(presentation);
        }),
    },
    workerEnd: {
      arrived: (bytes) =>
        eachFrame(bytes, (type, stream) => {
          const presentation = isOpening(type) ? presented.get(stream) : undefined;
          if (presentation !== undefined) presentation.epoch = recordOf(presentation)?.epoch ?? 0n;
        }),
      sent: (bytes) =>
        eachFrame(bytes, (type, stream) => {
          const presentation = presented.get(stream);
          if (presentation === undefined) return;
          if (isData(type)) oracle.receivers.forwarded(presentation, recordOf(presentation));
          if (isOver(type)) presented.delete(stream);
        }),
    },
  };
}

/** The worker's end of its link to the bridge: what goes into guests, and when. */
export function bridgeTap(oracle: Oracle, host: string, disk: SimDisk): Tap {
  const open = new Map<number, Presentation>();
  return {
    arrived: () => undefined,
    sent: (bytes) =>
      eachFrame(bytes, (type, stream, from, to) => {
        if (isOpening(type)) {
          if (isCommand(bytes, from)) return;
          const operation = oracle.operations.get(operationIn(bytes.toString("latin1", from, to)));
          const presentation = operation?.presented.findLast(
            (other) => other.host === host && other.epoch !== undefined,
          );
          if (presentation === undefined) return;
          presentation.isForwarded = true;
          open.set(stream, presentation);
          return;
        }
        const presentation = open.get(stream);
        if (presentation === undefined) return;
        if (isData(type))
          oracle.receivers.forwarded(
            presentation,
            disk.contents.records.get(presentation.operation.sandboxId),
          );
        if (isOver(type)) open.delete(stream);
      }),
  };
}

/** Whether an opening's text begins as a command does, for which the bridge takes no operation: `{"rpc`. */
function isCommand(bytes: Buffer, at: number): boolean {
  return bytes[at + 2] === 0x72 && bytes[at + 3] === 0x70 && bytes[at + 4] === 0x63;
}

/** The operation that a head names; NaN when it names none. */
function operationIn(head: string): number {
  return Number(textAfter(`"${operationHeader}","`, head) || Number.NaN);
}

/** What a JSON text says from this mark to the end of the string; empty without the mark. What is sought has no escapes. */
function textAfter(mark: string, text: string): string {
  const at = text.indexOf(mark);
  const from = at + mark.length;
  return at < 0 ? "" : text.slice(from, text.indexOf('"', from));
}
