// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** Runs one step; what the store refuses becomes `store/failed`. */
export async function attempt<T>(step: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof SpaceError || cause instanceof TypeError) throw cause;
    throw new SpaceError("store/failed", { step }, { cause });
  }
}
