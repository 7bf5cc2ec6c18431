// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId } from "@space/model";
import { headerValue } from "@space/wire";
import { eachFrame, isData, isHead, isOpening, isOver } from "./frames.ts";
import type { Oracle } from "./oracle.ts";
import type { SimDisk } from "./sim-disk.ts";
import { operationHeader } from "./sim-guest.ts";
import type { Tap } from "./sim-socket.ts";
import type { Presentation } from "./truth.ts";

interface SentHead {
  readonly path: string;
  readonly capability: string;
  readonly sandbox: SandboxId;
  readonly headers: readonly string[];
}

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
        eachFrame(bytes, (type, stream, payload) => {
          if (!isOpening(type)) return;
          const head = JSON.parse(payload.toString("utf8")) as SentHead; // cast: our own gateway wrote it
          const number = Number(headerValue(head.headers, operationHeader));
          const operation = oracle.operations.get(number);
          if (operation === undefined) return;
          const presentation = oracle.gateways.presented(
            { gateway, host, path: head.path },
            operation,
            head.capability,
          );
          if (presentation !== undefined) presented.set(stream, presentation);
        }),
      arrived: (bytes) =>
        eachFrame(bytes, (type, stream, payload) => {
          const presentation = isHead(type) ? presented.get(stream) : undefined;
          if (presentation === undefined) return;
          if (payload.includes('"status":421')) oracle.gateways.rejected(gateway, presentation);
          else if (payload.includes('"space-verdict","deny"')) oracle.gateways.denied(presentation);
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
      eachFrame(bytes, (type, stream, payload) => {
        if (isOpening(type)) {
          if (!payload.includes(operationHeader)) return; // a command
          const head = JSON.parse(payload.toString("utf8")) as SentHead; // cast: our own worker wrote it
          const operation = oracle.operations.get(Number(headerValue(head.headers, operationHeader)));
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
