// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isIP } from "node:net";
import { isSpaceError, parseSandboxId, type SandboxId } from "@space/model";

/** Where a request wants to go, read from its Host and, on shared hosts, from its two routing headers. */
export type Destination =
  | { readonly kind: "sandbox"; readonly sandboxId: SandboxId; readonly port: number }
  /** Well formed, but no sandbox can have this id: answered like one that does not run. */
  | { readonly kind: "no-sandbox"; readonly text: string; readonly port: number }
  /** The control plane's own API. */
  | { readonly kind: "api" }
  | { readonly kind: "bad"; readonly problem: string };

/** What the Host alone says. `shared`: a host that serves all sandboxes, so that headers decide. */
type HostMeaning = Destination | { readonly kind: "shared" };

/** The two headers that E2B's clients send with every request to a sandbox. */
export interface RoutingHeaders {
  readonly sandboxId: string | undefined;
  readonly port: string | undefined;
}

const hostCacheLimit = 4096;
const hostLimitChars = 255;

/**
 * Reads destinations as E2B's proxies do: a left-most label `<port>-<id>` names the sandbox; headers count only when the
 * host is `localhost`, an address or `sandbox.<anything>`, so that a caller's headers never override a sandbox's own host.
 */
export class Destinations {
  /** Hosts seen lately; emptied when full, since it only saves parsing. */
  readonly #known = new Map<string, HostMeaning>();

  of(host: string, headers: RoutingHeaders): Destination {
    const meaning = this.#known.get(host) ?? this.#learn(host);
    if (meaning.kind !== "shared") return meaning;
    if (headers.sandboxId === undefined && headers.port === undefined) return { kind: "api" };
    return named(headers.port ?? "", headers.sandboxId ?? "");
  }

  #learn(host: string): HostMeaning {
    const meaning = readHost(host);
    if (this.#known.size >= hostCacheLimit) this.#known.clear();
    this.#known.set(host, meaning);
    return meaning;
  }
}

function readHost(host: string): HostMeaning {
  if (host.length > hostLimitChars) return { kind: "bad", problem: "host too long" };
  const name = withoutPort(host.toLowerCase());
  if (name === "localhost" || name.startsWith("sandbox.") || isIP(name) !== 0) return { kind: "shared" };
  const dot = name.indexOf(".");
  const label = dot < 0 ? name : name.slice(0, dot);
  const dash = label.indexOf("-");
  if (dash <= 0 || !/^[0-9]+$/.test(label.slice(0, dash))) return { kind: "api" };
  return named(label.slice(0, dash), label.slice(dash + 1));
}

function withoutPort(host: string): string {
  const bracket = /^\[([^\]]*)\](?::[0-9]*)?$/.exec(host);
  if (bracket !== null) return bracket[1] ?? "";
  const colon = host.lastIndexOf(":");
  return colon >= 0 && host.indexOf(":") === colon ? host.slice(0, colon) : host;
}

/** Old ids were `<id>-<client id>`: what follows the id is ignored. */
function named(portText: string, idText: string): Destination {
  if (!/^[1-9][0-9]{0,4}$/.test(portText)) return { kind: "bad", problem: "bad port" };
  const port = Number(portText);
  if (port > 65_535) return { kind: "bad", problem: "bad port" };
  const id = idText.split("-", 1)[0] ?? "";
  if (!/^[a-z0-9]{1,64}$/.test(id)) return { kind: "bad", problem: "bad sandbox id" };
  const sandboxId = sandboxIdOf(id);
  return sandboxId === undefined
    ? { kind: "no-sandbox", text: id, port }
    : { kind: "sandbox", sandboxId, port };
}

function sandboxIdOf(text: string): SandboxId | undefined {
  try {
    return parseSandboxId(text);
  } catch (error) {
    if (isSpaceError(error)) return undefined;
    throw error;
  }
}
