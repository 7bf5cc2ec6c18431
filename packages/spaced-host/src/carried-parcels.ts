// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ActivationId, type CarriedPiece, carriedLimitBytes, SpaceError } from "@space/model";

/** Guests that are about to be adopted with what another bridge knew of them. */
const parcelLimit = 64;

interface Parcel {
  readonly totalBytes: number;
  pieces: Uint8Array[];
  heldBytes: number;
}

/** What arrives piece by piece for activations that are adopted next. Bounded: what is begun last replaces what is oldest. */
export class CarriedParcels {
  readonly #parcels = new Map<ActivationId, Parcel>();

  /** Pieces come in order; one at offset 0 begins anew. Throws `input/invalid` for a piece that fits nowhere. */
  add(activationId: ActivationId, { offset, totalBytes, bytes }: CarriedPiece): void {
    if (offset === 0) this.#begin(activationId, totalBytes);
    const parcel = this.#parcels.get(activationId);
    const fits =
      parcel !== undefined &&
      parcel.heldBytes === offset &&
      parcel.totalBytes === totalBytes &&
      offset + bytes.length <= totalBytes;
    if (!fits) throw bad("does not follow");
    parcel.pieces.push(bytes);
    parcel.heldBytes += bytes.length;
  }

  /** The whole, once; undefined where there is none. Throws `input/invalid` when some of it has not come. */
  take(activationId: ActivationId): Buffer | undefined {
    const parcel = this.#parcels.get(activationId);
    this.#parcels.delete(activationId);
    if (parcel === undefined) return undefined;
    if (parcel.heldBytes < parcel.totalBytes) throw bad("is not whole");
    return Buffer.concat(parcel.pieces);
  }

  /** None is left behind for one that is not adopted after all. */
  drop(activationId: ActivationId): void {
    this.#parcels.delete(activationId);
  }

  #begin(activationId: ActivationId, totalBytes: number): void {
    if (totalBytes > carriedLimitBytes) throw bad("is too large");
    this.#parcels.delete(activationId);
    const [oldest] = this.#parcels.keys();
    if (this.#parcels.size >= parcelLimit && oldest !== undefined) this.#parcels.delete(oldest);
    this.#parcels.set(activationId, { totalBytes, pieces: [], heldBytes: 0 });
  }
}

function bad(problem: string): SpaceError {
  return new SpaceError("input/invalid", { field: "carried", problem });
}
