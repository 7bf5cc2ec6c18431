// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { matchRoute } from "./routes.ts";

const id = "iaaaaaaaaaaaaaaaaaaa1";

describe("a path", () => {
  it("leads to its operation with the id in it, whichever version's", () => {
    const expected: readonly (readonly [string, string, string])[] = [
      ["POST", "/sandboxes", "create-v1"],
      ["POST", "/v2/sandboxes", "create-v2"],
      ["GET", "/sandboxes", "list-unpaged"],
      ["GET", "/v2/sandboxes", "list"],
      ["GET", `/sandboxes/${id}`, "get"],
      ["HEAD", `/sandboxes/${id}`, "get"],
      ["DELETE", `/sandboxes/${id}`, "kill"],
      ["POST", `/sandboxes/${id}/connect`, "connect-v1"],
      ["POST", `/v2/sandboxes/${id}/connect`, "connect-v2"],
      ["POST", `/sandboxes/${id}/resume`, "resume"],
      ["POST", `/sandboxes/${id}/pause`, "pause"],
      ["POST", `/sandboxes/${id}/move`, "move"],
      ["POST", `/sandboxes/${id}/timeout`, "timeout"],
      ["POST", `/sandboxes/${id}/refreshes`, "refresh"],
    ];
    for (const [method, path, name] of expected) {
      const match = matchRoute(method, path);
      assert.equal(match.kind === "operation" ? match.name : match.kind, name, `${method} ${path}`);
    }
    const match = matchRoute("GET", `/sandboxes/${id}`);
    assert.equal(match.kind === "operation" && match.sandboxId, id);
  });

  it("may carry a client id behind the sandbox's, as E2B's first SDK writes it", () => {
    const match = matchRoute("DELETE", `/sandboxes/${id}-space`);
    assert.equal(match.kind === "operation" && match.sandboxId, id);
  });

  it("is decoded segment by segment, so an encoded slash stays inside its segment", () => {
    assert.equal(matchRoute("GET", "/sandbox%65s").kind, "operation");
    assert.equal(matchRoute("GET", "/sandboxes%2Fx").kind, "unknown");
    const named = matchRoute("DELETE", "/templates/a%2Fb%3Av1");
    assert.deepEqual(named.kind === "operation" && [named.name, named.templateId], [
      "delete-template",
      "a/b:v1",
    ]);
    assert.deepEqual(matchRoute("GET", "/templates/a%2Fb%3Av1"), {
      kind: "unsupported",
      path: "GET /templates/{templateID}",
    });
    assert.equal(matchRoute("GET", "/sandboxes/%zz").kind, "unknown");
  });

  it("that E2B has and SPACE has not yet is told from one that nobody has", () => {
    assert.equal(matchRoute("PUT", `/sandboxes/${id}/network`).kind, "unsupported");
    assert.equal(matchRoute("GET", "/sandboxes/metrics").kind, "unsupported");
    for (const path of [
      "/",
      "",
      "/nope",
      "/sandboxes/",
      "//sandboxes",
      `/sandboxes/${id}/`,
      "/v3/sandboxes",
    ]) {
      assert.equal(matchRoute("GET", path).kind, "unknown", path);
    }
  });

  it("asked with another method says which ones it has", () => {
    assert.deepEqual(matchRoute("PATCH", "/sandboxes"), {
      kind: "wrong-method",
      allow: "GET, HEAD, OPTIONS, POST",
    });
    assert.deepEqual(matchRoute("GET", `/sandboxes/${id}/pause`), {
      kind: "wrong-method",
      allow: "OPTIONS, POST",
    });
  });
});
