// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** One end of the channel between two processes of Node: a child, or this process where it is one. */
export interface ChannelEnd {
  on(event: "message", listener: (message: unknown) => void): unknown;
  send(message: object): unknown;
}

/** What this end answers to, by name. */
export type ChannelMethods = Readonly<Record<string, (params: unknown) => Promise<unknown>>>;

type Message =
  | { readonly kind: "ask"; readonly id: number; readonly method: string; readonly params: unknown }
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly problem: string };

/**
 * Questions and answers between two processes of one drill, any number at a time and both ways. A question to a process
 * that stands still waits as long as that does: whoever asks has a limit of its own. Both ends are this program's own.
 */
export class ProcessChannel {
  readonly #end: ChannelEnd;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #last = 0;

  constructor(end: ChannelEnd, methods: ChannelMethods) {
    this.#end = end;
    end.on("message", (message) => this.#take(message as Message, methods)); // cast: our own program's word
  }

  /** Rejects with the other end's problem. */
  ask(method: string, params?: unknown): Promise<unknown> {
    this.#last += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(this.#last, answer);
    this.#tell({ kind: "ask", id: this.#last, method, params });
    return answer.promise;
  }

  /** The other end is gone: nobody is answered any more. */
  close(problem: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(problem));
    this.#waiting.clear();
  }

  #take(message: Message, methods: ChannelMethods): void {
    const { id } = message;
    if (message.kind === "ask") {
      const answered =
        methods[message.method]?.(message.params) ?? Promise.reject(new TypeError("no such method"));
      answered.then(
        (value) => this.#tell({ kind: "answer", id, value }),
        (error: unknown) => this.#tell({ kind: "failure", id, problem: String(error) }),
      );
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (message.kind === "answer") waiting?.resolve(message.value);
    else waiting?.reject(new Error(message.problem));
  }

  #tell(message: Message): void {
    this.#end.send(message);
  }
}
