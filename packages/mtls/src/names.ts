// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isIPv4, isIPv6 } from "node:net";

import { SpaceError } from "@space/model";

import { type Der, element, explicit, implicit, sequence } from "./der.ts";

const dnsLimit = 253;
const dnsForm =
  /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** A name that a certificate stands for: an address, or a DNS name whose first label may be `*`. */
type Name = { readonly kind: "dns"; readonly text: string } | { readonly kind: "ip"; readonly bytes: Buffer };

/** Throws `input/invalid` for what is neither an IP address nor a lower-case DNS name. */
function parseName(text: string): Name {
  if (isIPv4(text)) return { kind: "ip", bytes: Buffer.from(text.split(".").map(Number)) };
  if (isIPv6(text)) return { kind: "ip", bytes: ipv6Bytes(text) };
  if (text.length <= dnsLimit && dnsForm.test(text)) return { kind: "dns", text };
  throw new SpaceError("input/invalid", {
    field: "names",
    problem: "must be IP addresses or lower-case DNS names",
  });
}

function ipv6Bytes(text: string): Buffer {
  if (text.includes(".") || text.includes("%")) {
    throw new SpaceError("input/invalid", { field: "names", problem: "IPv6 must be written in groups only" });
  }
  const [head = "", tail] = text.split("::", 2);
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const gap = Array.from({ length: 8 - before.length - after.length }, () => "0");
  const groups = [...before, ...gap, ...after].map((group) => Number.parseInt(group, 16));
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

/** The GeneralNames of a subjectAltName. */
export function alternativeNames(names: readonly string[]): Der {
  return sequence(
    ...names.map((text) => {
      const name = parseName(text);
      return name.kind === "ip" ? implicit(7, name.bytes) : implicit(2, Buffer.from(name.text, "ascii"));
    }),
  );
}

/**
 * The NameConstraints that let an authority vouch for these names (and DNS names below them), and for no other DNS
 * name or address, whoever comes to hold its key.
 */
export function nameConstraints(names: readonly string[]): Der {
  const parsed = names.map(parseName);
  const dns = parsed.flatMap((name) => (name.kind === "dns" ? [name.text.replace(/^\*\./, "")] : []));
  const addresses = parsed.flatMap((name) => (name.kind === "ip" ? [name.bytes] : []));
  const permitted = [
    ...[...new Set(dns)].map((text) => subtree(implicit(2, Buffer.from(text, "ascii")))),
    ...addresses.map((bytes) =>
      subtree(implicit(7, Buffer.concat([bytes, Buffer.alloc(bytes.length, 0xff)]))),
    ),
  ];
  // A kind without a permitted name would be unconstrained: exclude all of it.
  const excluded = [
    ...(dns.length === 0 ? [subtree(implicit(2, Buffer.alloc(0)))] : []),
    ...(addresses.length === 0 ? [8, 32].map((length) => subtree(implicit(7, Buffer.alloc(length)))) : []),
  ];
  return sequence(
    ...(permitted.length === 0 ? [] : [explicit(0, Buffer.concat(permitted))]),
    ...(excluded.length === 0 ? [] : [explicit(1, Buffer.concat(excluded))]),
  );
}

const subtree = (base: Uint8Array): Der => element(0x30, base);
