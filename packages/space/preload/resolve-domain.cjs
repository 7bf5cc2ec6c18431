// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

"use strict";

// For machines without wildcard DNS: makes E2B_DOMAIN and every name below it mean this machine, in one Node program.
//
//   node --require ./packages/space/preload/resolve-domain.cjs agent.mjs
//
// Names outside the domain are looked up as always. Does nothing without E2B_DOMAIN. Runs under the caller's own Node.

const dns = require("node:dns");
const { syncBuiltinESMExports } = require("node:module");

const loopback = Object.freeze({ address: "127.0.0.1", family: 4 });
const domain = (process.env.E2B_DOMAIN ?? "").toLowerCase().replace(/:\d+$/, "");

/** Whether the name is the domain or below it, and an IPv4 address will do. */
function isOurs(hostname, options) {
  if (domain === "" || typeof hostname !== "string") return false;
  const name = hostname.toLowerCase().replace(/\.$/, "");
  const family = typeof options === "number" ? options : options?.family;
  return (name === domain || name.endsWith(`.${domain}`)) && family !== 6 && family !== "IPv6";
}

function replaceLookup(owner, make) {
  const original = owner.lookup;
  const replaced = make(original);
  Object.defineProperties(replaced, Object.getOwnPropertyDescriptors(original)); // util.promisify reads one of them
  owner.lookup = replaced;
}

replaceLookup(
  dns,
  (original) =>
    function lookup(hostname, options, callback) {
      const answer = typeof options === "function" ? options : callback;
      if (typeof answer !== "function" || !isOurs(hostname, options)) return original.apply(this, arguments);
      if (options?.all === true) process.nextTick(answer, null, [{ ...loopback }]);
      else process.nextTick(answer, null, loopback.address, loopback.family);
      return {};
    },
);

replaceLookup(
  dns.promises,
  (original) =>
    async function lookup(hostname, options) {
      if (!isOurs(hostname, options)) return original.apply(this, arguments);
      return options?.all === true ? [{ ...loopback }] : { ...loopback };
    },
);

syncBuiltinESMExports();
