// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { resolve } from "node:path";

/** The version of E2B's agent whose behaviour the guest's agent has: E2B's SDKs switch features on by it. */
export const agentVersion = "0.6.13";

/** The checkout that this program runs from. */
export const checkout: string = resolve(import.meta.dirname, "../../..");

/** The compiled guest program; absent on hosts without a C compiler. */
export const nativeLauncher: string = resolve(checkout, "build/native/spaced-launch");
