// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Why a snapshot's sealed chain is refused. */
export type SealedChainProblem =
  /** One of its objects is not there. */
  | "missing"
  /** One of its objects is not the bytes of its name, or not of the form. */
  | "damaged"
  | "other sandbox"
  /** A link does not follow the one before it. */
  | "broken link"
  /** A link is signed by a key that no bundle of the root holds, or a bundle by another root. */
  | "unknown key"
  | "signature"
  /** It ends elsewhere than where the control plane says that it does now. */
  | "not the newest"
  | "too long";
