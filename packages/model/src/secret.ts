// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

const hidden = "[secret]";

/**
 * A value that must not be printed. It shows as `[secret]` in JSON, `util.inspect` and template strings;
 * `reveal` is the one way to the value, so each use can be found.
 */
export class Secret<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return hidden;
  }

  toJSON(): string {
    return hidden;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return hidden;
  }
}
