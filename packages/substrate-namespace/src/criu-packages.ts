// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { PrefixPackage } from "@space/platform-linux";

/**
 * CRIU and all that it loads, as Debian's forky had them when they were tried: version, and SHA-256 of the package's file
 * for amd64. Debian 12's CRIU is 3.17.1 and Debian 13's 4.1.1: see criu-build.ts.
 */
const pins: readonly (readonly [name: string, version: string, sha256: string])[] = [
  ["libbsd0", "0.12.2-3", "0383e47d704a5e58080606cbcafd2f2aa725702767ccf8b877fb224d04ff38c5"],
  ["libc6", "2.43-7", "5c71715c51103beb4fbba9fe9f8dff604af6610dfa71c70bff342f54a7860803"],
  ["libcompel1", "4.2.1-1", "c41087440d28973c9abc04dcd31674a28969e5dc0cefde5023a89aaf07ef357d"],
  ["libffi8", "3.8.0-2", "8f52979b2f3831088c419aae858f10fd3ad7e42cc6c1d28967bae996a98223a4"],
  ["libgcc-s1", "16.2.0-3", "e716dc8baad27e884c45ff83a76955047a7a9e33a80e94f9459ee996ebb800b0"],
  ["libgmp10", "2:6.3.0+dfsg-5+b2", "032743c787f0e1e644e4dcfbdb38f01be8cb150cb9633f8be5e79aba6938f349"],
  ["libgnutls30t64", "3.8.13-1", "81f7f28a3968228293cabf6a92f7d6b2a8807f64ccf57469f2ce9a06b7b226af"],
  ["libhogweed6t64", "3.10.2-1+b1", "d5872392a9d3b9b6e06f3dbd07a3f954346226d9fa2f318c4a3b5732b060fc44"],
  ["libidn2-0", "2.3.8-5", "25a38f7d9ba5bb3daf47a21ad5d348303e602f3c9037a48d621683fe87e7ce28"],
  ["libjansson4", "2.15.1-1", "024a1537ca17a8215c7b03c6e84ea961ae96d3ecce9cd1db6a5226c180568419"],
  ["libmd0", "1.3.0-1", "b93615e08319799bedd98a68643d607b06a7713365f829fb3cae131f8a3b81b1"],
  ["libmnl0", "1.0.5-3+b2", "5c058833d7f95cea335627f8ae48dbac38749493867ed3151113150e1612b264"],
  ["libnet9", "1.3+dfsg-3+b2", "2a27e79bb376a1052a77b6373e17b3c2e71b2b2d15bc05d899f2a6318e5d36ea"],
  ["libnettle8t64", "3.10.2-1+b1", "213f9f0119cd63efc2529401547bad5f6d2cea4cae5d05cffdef22f19aabb30e"],
  ["libnftables1", "1.1.7-3", "a9fe852108aa99288b9305534203869e406aedaebeb833a48a32c48e50affd75"],
  ["libnftnl11", "1.3.2-1", "409b62c0d383ae181e3550d0ec9279359856d98a449d8bce9983f69e1995dbc6"],
  ["libnl-3-200", "3.12.0-2+b1", "a5ca78bbb9d5cc067b78952c5d38b7caac831d42e94b85b91edf1f6f00dfd48a"],
  ["libp11-kit0", "0.26.5-1", "7f6187247766dca57582c4fa327928fb612de3cd17a13786c1762c57357b4930"],
  ["libprotobuf-c1", "1.5.1-1+b2", "8f0f2c76c4574b986aec4d3ed53e5b5939a8ce26c21294adf9020ebed9d2b3da"],
  ["libtasn1-6", "4.21.0-2+b1", "097059368c29f6bac5253cc9a4ee3b8c2f449326de016feddf5a00b896fabe49"],
  ["libunistring5", "1.4.2-1", "509fb596f6b4de34f1d9cb5a0001abc3c6c51f4800e908ef888262ebdaaefa3b"],
  ["libuuid1", "2.42.4-1", "bdef15911ca5748219f5257bf4f1e81444fb40966499c02b1176bfbbcd9a2d08"],
  ["libxtables12", "1.8.13-1", "08ca0b50ecc24b84faf75716b4a7a279a5e5fb01d7a5c602fe3f473b6d9ffcb9"],
  ["criu", "4.2.1-1", "4039578de7dd6480964754c1348416f0f0658fba3eadaa918bfe43e9a5fb9b04"],
];

export const criuSuite = "forky";

/** CRIU last: it is what is spoken of when something is wrong with any of them. */
export const criuPackages: readonly PrefixPackage[] = pins.map(([name, version, sha256]) => ({
  name,
  pin: { version, sha256 },
}));
