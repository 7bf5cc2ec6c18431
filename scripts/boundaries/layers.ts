// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What one package may import, apart from its own files. */
export interface Layer {
  /** Packages of this tree, by folder name. */
  readonly packages: readonly string[];
  /** Node's modules it is limited to; absent means any. Its tests are not limited. */
  readonly builtins?: readonly string[];
  /** "none" refuses every package from outside the tree. Its tests are not limited. */
  readonly thirdParty?: "none";
  /** "allowed" lets it read the clock, chance, the environment and the network itself. */
  readonly ambient?: "allowed";
}

const pure = ["model"];
const lower = ["model", "capability", "wire"];
const adapter: Layer = { packages: lower, ambient: "allowed" };
/** Replaces files durably as `platform-linux` does. */
const adapterWithFiles: Layer = { ...adapter, packages: [...lower, "platform-linux"] };
const useCase: Layer = { packages: lower };

/** Imports go only downward. A package that is not in this table is refused until it has a row. */
export const layers: Readonly<Record<string, Layer>> = {
  model: { packages: [], builtins: [], thirdParty: "none" },
  capability: { packages: pure, builtins: ["node:crypto", "node:buffer"], thirdParty: "none" },
  wire: { packages: pure },

  // Every byte that it reads or writes, every draw and every clock comes through a port.
  snapshot: { packages: pure, builtins: ["node:crypto", "node:util", "node:zlib"], thirdParty: "none" },

  mtls: adapterWithFiles,
  "audit-log": adapterWithFiles,
  "store-sqlite": adapter,
  "object-store": adapterWithFiles,
  "platform-linux": adapter,
  "spaced-guest": { packages: ["model", "wire"], ambient: "allowed" },
  "substrate-namespace": {
    packages: ["model", "wire", "platform-linux", "spaced-guest"],
    ambient: "allowed",
  },

  "substrate-gvisor": {
    // The same launcher and the same skeleton of a root as the namespace driver's.
    packages: ["model", "platform-linux", "spaced-guest", "substrate-namespace"],
    ambient: "allowed",
  },

  "control-plane": useCase,
  gateway: useCase,
  worker: useCase,
  // The bridge speaks the client half of the guest protocol; the native half is not imported by anybody.
  "spaced-host": { packages: ["model", "wire", "spaced-guest"] },
  "e2b-api": { packages: ["model", "wire"] },

  space: {
    packages: [
      ...lower,
      "mtls",
      "audit-log",
      "store-sqlite",
      "object-store",
      "snapshot",
      "platform-linux",
      "spaced-guest",
      "substrate-namespace",
      "substrate-gvisor",
      "control-plane",
      "gateway",
      "worker",
      "spaced-host",
      "e2b-api",
    ],
    ambient: "allowed",
  },
  testing: {
    packages: [
      ...lower,
      "mtls",
      "audit-log",
      "store-sqlite",
      "object-store",
      "snapshot",
      "platform-linux",
      "spaced-guest",
      "substrate-namespace",
      "substrate-gvisor",
      "control-plane",
      "gateway",
      "worker",
      "spaced-host",
      "e2b-api",
      "space",
    ],
    ambient: "allowed",
  },
};
