// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { continuationOf, positionHeaders, type StreamPosition } from "@space/wire";
import { enveloped, type HostRig, type RigAnswer } from "./host-rig.ts";
import { settle } from "./virtual-clock.ts";

let names = 0;

/** What a gateway does for one streaming call: it counts what it has received, and goes on there after a cut. */
export class ContinuingCaller {
  readonly key = `adm_${(names++).toString(32).padStart(26, "a")}`;
  /** The answer's body as the caller sees it: one, whatever was cut. */
  body: Buffer = Buffer.alloc(0);
  current: RigAnswer;
  readonly #rig: HostRig;
  readonly #path: string;

  private constructor(rig: HostRig, path: string, open: (key: string) => RigAnswer) {
    this.#rig = rig;
    this.#path = path;
    this.current = open(this.key);
  }

  /** Presents a call for the first time. `message` undefined: the body goes on. */
  static async open(
    rig: HostRig,
    method: string,
    message: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ContinuingCaller> {
    const path = `/${method}`;
    const caller = new ContinuingCaller(rig, path, (key) =>
      rig.open("POST", path, {
        headers: { "content-type": "application/connect+json", ...headers, ...flat({ key }) },
        ...(message === undefined ? {} : { body: enveloped(JSON.stringify(message)) }),
      }),
    );
    await settle();
    return caller;
  }

  /** Takes what has come; afterwards nothing of it comes again. */
  take(): Buffer {
    const bytes = this.current.body;
    this.current.chunks = [];
    this.body = Buffer.concat([this.body, bytes]);
    return bytes;
  }

  /** What has come so far, as the caller sees it. */
  messages(): unknown[] {
    this.take();
    this.current.chunks = [this.body];
    const found = this.current.messages();
    this.current.chunks = [];
    return found;
  }

  /** Presents the call again after what was taken. */
  async goOn(
    changes: Partial<StreamPosition> & { readonly activation?: HostRig["activationId"] } = {},
  ): Promise<RigAnswer> {
    const { activation, ...position } = changes;
    const again = continuationOf("POST", this.#path);
    if (again === undefined) throw new TypeError(`${this.#path} does not go on`);
    this.current = this.#rig.open("POST", again.path, {
      headers: {
        "content-type": "application/connect+json",
        ...flat({ key: this.key, answerOffset: this.body.length, ...position }),
      },
      ...(again.kind === "both" ? {} : { body: "" }),
      ...(activation === undefined ? {} : { activation }),
    });
    await settle();
    return this.current;
  }
}

/** A position as one object of headers. */
export function flat(position: StreamPosition): Record<string, string> {
  const headers = positionHeaders(position);
  const found: Record<string, string> = {};
  for (let at = 0; at + 1 < headers.length; at += 2) found[headers[at] ?? ""] = headers[at + 1] ?? "";
  return found;
}
