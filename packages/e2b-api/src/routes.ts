// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unsupportedPaths } from "./unsupported-paths.ts";

/** The operations of E2B's control plane that SPACE serves. */
export type OperationName =
  | "create-v1"
  | "create-v2"
  | "connect-v1"
  | "connect-v2"
  | "resume"
  | "kill"
  | "get"
  | "list"
  | "list-unpaged"
  | "timeout"
  | "pause"
  | "move"
  | "refresh"
  | "fork"
  | "snapshot"
  | "list-snapshots"
  | "delete-template";

export type RouteMatch =
  | {
      readonly kind: "operation";
      readonly name: OperationName;
      readonly sandboxId: string;
      readonly templateId: string;
      readonly path: string;
    }
  | { readonly kind: "unsupported"; readonly path: string }
  | { readonly kind: "wrong-method"; readonly allow: string }
  | { readonly kind: "unknown" };

const parameter = /^\{.*\}$/;

const served: readonly (readonly [method: string, path: string, name: OperationName])[] = [
  ["POST", "/sandboxes", "create-v1"],
  ["POST", "/v2/sandboxes", "create-v2"],
  ["GET", "/sandboxes", "list-unpaged"],
  ["GET", "/v2/sandboxes", "list"],
  ["GET", "/sandboxes/{sandboxID}", "get"],
  ["DELETE", "/sandboxes/{sandboxID}", "kill"],
  ["POST", "/sandboxes/{sandboxID}/connect", "connect-v1"],
  ["POST", "/v2/sandboxes/{sandboxID}/connect", "connect-v2"],
  ["POST", "/sandboxes/{sandboxID}/resume", "resume"],
  ["POST", "/sandboxes/{sandboxID}/pause", "pause"],
  // SPACE's own
  ["POST", "/sandboxes/{sandboxID}/move", "move"],
  ["POST", "/sandboxes/{sandboxID}/timeout", "timeout"],
  ["POST", "/sandboxes/{sandboxID}/refreshes", "refresh"],
  ["POST", "/sandboxes/{sandboxID}/fork", "fork"],
  ["POST", "/sandboxes/{sandboxID}/snapshots", "snapshot"],
  ["GET", "/snapshots", "list-snapshots"],
  ["DELETE", "/templates/{templateID}", "delete-template"],
];

interface Route {
  readonly method: string;
  readonly path: string;
  readonly segments: readonly string[];
  readonly name?: OperationName;
}

const routes: readonly Route[] = [
  ...served.map(([method, path, name]) => ({ method, path, segments: path.split("/"), name })),
  ...unsupportedPaths.flatMap(([methods, path]) =>
    methods.split(" ").map((method) => ({ method, path, segments: path.split("/") })),
  ),
];

/** Finds the operation of a request. `HEAD` asks as `GET` does. A fixed segment wins over a parameter. */
export function matchRoute(method: string, path: string): RouteMatch {
  const segments = decodeSegments(path);
  if (segments === undefined) return { kind: "unknown" };
  const here = routes.filter((route) => matches(route.segments, segments));
  const fixed = here.filter((route) => !parameter.test(route.segments.at(-1) ?? ""));
  const candidates = fixed.length === 0 ? here : fixed;
  const asked = method === "HEAD" ? "GET" : method;
  const route = candidates.find((candidate) => candidate.method === asked);
  if (route?.name !== undefined) {
    const templateId = parameterAt(route, "{templateID}", segments);
    return {
      kind: "operation",
      name: route.name,
      sandboxId: sandboxIdAt(route, segments),
      templateId,
      path: route.path,
    };
  }
  if (route !== undefined) return { kind: "unsupported", path: `${route.method} ${route.path}` };
  if (candidates.length === 0) return { kind: "unknown" };
  return { kind: "wrong-method", allow: allowed(candidates.map((candidate) => candidate.method)) };
}

/** E2B's first SDK writes `<id>-<clientID>`; what follows the id names nothing. */
function sandboxIdAt(route: Route, segments: readonly string[]): string {
  return parameterAt(route, "{sandboxID}", segments).replace(/-[a-z0-9]{1,32}$/, "");
}

function parameterAt(route: Route, name: string, segments: readonly string[]): string {
  const at = route.segments.indexOf(name);
  return at === -1 ? "" : (segments[at] ?? "");
}

/** Undefined when the encoding is broken. A decoded `/` stays inside its segment. */
function decodeSegments(path: string): readonly string[] | undefined {
  try {
    return path.split("/").map(decodeURIComponent);
  } catch {
    return undefined; // broken percent-encoding names nothing
  }
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) => (parameter.test(part) ? segments[index] !== "" : part === segments[index]))
  );
}

function allowed(methods: readonly string[]): string {
  const head = methods.includes("GET") ? ["HEAD"] : [];
  return [...new Set([...methods, ...head, "OPTIONS"])].sort().join(", ");
}
