// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** An answer that is none of success, in the API's own words. */
export class ApiRefusal extends Error {
  override readonly name = "ApiRefusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
