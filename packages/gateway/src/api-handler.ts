// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** Serves what is not a sandbox's: the control plane's REST API. The gateway has read nothing of the body. */
export type ApiHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void;
