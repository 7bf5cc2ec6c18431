// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export {
  type Continuation,
  continuationHeaders,
  continuationOf,
  continuationWaitMs,
  positionHeaders,
  readPosition,
  retainedBytes,
  type StreamPosition,
} from "./continuation.ts";
export {
  encodeHeader,
  type Frame,
  FrameReader,
  type FrameType,
  frameHeaderBytes,
  framePayloadLimitBytes,
  frameType,
  headLimitBytes,
} from "./frame.ts";
export {
  type HandOverAnswer,
  type HandOverHead,
  handedChunkLimitBytes,
  parseHandOverAnswer,
  parseHandOverHead,
} from "./hand-over-head.ts";
export { headerValue, isReserved, passableHeaders } from "./headers.ts";
export { hostControlHandlers, hostControlOver } from "./host-control-rpc.ts";
export { decodeJson, encodeJson } from "./json.ts";
export { FrameLink, type LinkOptions, linkBacklogLimitBytes } from "./link.ts";
export {
  LinkStream,
  type LinkStreamOptions,
  type StreamCarrier,
  type StreamHandlers,
} from "./link-stream.ts";
export {
  type AnswerHead,
  admissionHeader,
  admittedHeader,
  failureHeader,
  type HostOperationHead,
  type OperationHead,
  type OperationTarget,
  parseAnswerHead,
  parseHostOperationHead,
  parseOperationHead,
  rejectedRouteHeader,
  reservedPrefix,
  verdictHeader,
} from "./operation-head.ts";
export {
  agentPort,
  type GuestOperation,
  guestOperation,
  guestOperations,
  isBrief,
} from "./operations.ts";
export {
  feedQueueLimit,
  feedWindow,
  isFeedHead,
  receiverFeedOver,
  serveReceiverFeed,
} from "./receiver-feed-stream.ts";
export { relayTo } from "./relay.ts";
export { type ResetReason, resetReason } from "./reset-reason.ts";
export {
  callRpc,
  decodeError,
  defaultRpcDeadlineMs,
  encodeError,
  type RpcCall,
  type RpcHandler,
  rpcMethod,
  serveRpc,
} from "./rpc.ts";
export { httpStatus } from "./status.ts";
export { streamBacklogLimitBytes, streamWindowBytes } from "./stream-window.ts";
export { type OperationClass, type TransportRule, transportRules } from "./transport-rules.ts";
export { inventoryLimit, manifestToJson, parseManifestJson } from "./worker-control-codec.ts";
export {
  workerCommandDeadlinesMs,
  workerControlClient,
  workerControlHandlers,
} from "./worker-control-rpc.ts";
export {
  presenceDeadlineMs,
  workerPresenceClient,
  workerPresenceHandlers,
} from "./worker-presence-rpc.ts";
