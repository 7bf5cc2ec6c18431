// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import koffi from "koffi";
import { GuestError } from "../guest-error.ts";

/** The C library that this Node is linked to, for the few system calls that Node has no API for. */
export const libc: ReturnType<typeof koffi.load> = koffi.load(null);

/** System call numbers where they differ; those above 424 are the same everywhere. */
export const callNumbers: Readonly<
  Record<"pivotRoot" | "seccomp" | "setgroups" | "setresuid" | "setresgid", number>
> =
  process.arch === "arm64"
    ? { pivotRoot: 41, seccomp: 277, setgroups: 159, setresuid: 147, setresgid: 149 }
    : { pivotRoot: 155, seccomp: 317, setgroups: 116, setresuid: 117, setresgid: 119 };

/** The result of a call that has just returned; throws `GuestError` with its errno when it failed. */
export function checked(result: unknown, step: string): number {
  const value = Number(result);
  if (value < 0) throw new GuestError(koffi.errno(), step);
  return value;
}

/** The Linux errno in whatever was thrown; EIO when it has none. */
export function errnoOf(error: unknown): number {
  if (error instanceof GuestError) return error.errno;
  const errno: unknown = error instanceof Error && "errno" in error ? error.errno : undefined;
  return typeof errno === "number" && errno < 0 ? -errno : 5;
}

/** Runs synchronous work and rethrows its failure as `GuestError` at the step named. */
export function during<T>(step: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof GuestError ? error : new GuestError(errnoOf(error), step);
  }
}

/** The same for a promise. */
export async function awaiting<T>(step: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof GuestError ? error : new GuestError(errnoOf(error), step);
  }
}
