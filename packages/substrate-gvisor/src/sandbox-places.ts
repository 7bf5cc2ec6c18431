// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ActivationId,
  type EndpointEvidence,
  evidenceToText,
  parseEvidence,
  type Secret,
} from "@space/model";
import { asActivation } from "@space/substrate-namespace";

/** What must be known of a sandbox after the daemon has restarted. Holds no secret. */
export interface SandboxNote {
  /** As recorded at the start: the process that listens (runsc's file server) and the socket it began with. */
  readonly endpoint: EndpointEvidence;
  /** The sandbox's kernel, as the evidence of its process. */
  readonly kernel: EndpointEvidence["guest"];
  /** Its tasks are stopped from inside, ready to be saved. */
  readonly standsStill: boolean;
}

/** How the two sides meet: see PROTOCOL.md, section 3, of spaced-guest. */
const socketName = "s";
const identityName = "identity";
const wordName = "go-on";

/** The files of one sandbox on the host. */
export class SandboxPlaces {
  readonly activationId: ActivationId;
  /** What is only root's. */
  readonly #folder: string;
  /** What is short enough for the paths of sockets. */
  readonly #sockets: string;

  constructor(stateDir: string, socketDir: string, activationId: ActivationId) {
    this.activationId = activationId;
    this.#folder = join(stateDir, "activations", activationId);
    this.#sockets = join(socketDir, activationId);
  }

  get bundle(): string {
    return join(this.#folder, "bundle");
  }

  get image(): string {
    return join(this.#folder, "image");
  }

  get log(): string {
    return join(this.#folder, "runtime.log");
  }

  get pidFile(): string {
    return join(this.#folder, "pid");
  }

  /** runsc's own notes and its control socket. */
  get runscRoot(): string {
    return join(this.#sockets, "r");
  }

  get meeting(): string {
    return join(this.#sockets, "m");
  }

  get socket(): string {
    return join(this.meeting, socketName);
  }

  /** Makes all of it, with who the guest is. */
  create(spec: object, secret: Secret<Uint8Array>): void {
    mkdirSync(this.#folder, { mode: 0o700 });
    mkdirSync(this.bundle, { mode: 0o700 });
    mkdirSync(this.image, { mode: 0o700 });
    mkdirSync(this.#sockets, { mode: 0o711 });
    mkdirSync(this.runscRoot, { mode: 0o700 });
    mkdirSync(this.meeting, { mode: 0o711 });
    writeFileSync(join(this.bundle, "config.json"), JSON.stringify(spec), { mode: 0o600 });
    const identity = Buffer.concat([secret.reveal(), Buffer.from(this.activationId)]);
    writeWhole(join(this.meeting, identityName), identity);
  }

  /** Tells a guest that stands still that it was not moved. */
  sayGoOn(): void {
    writeWhole(join(this.meeting, wordName), Buffer.alloc(0));
  }

  note(): SandboxNote | undefined {
    try {
      return parseNote(readFileSync(join(this.#folder, "note.json"), "utf8"));
    } catch {
      return undefined; // its start was cut short, or it is not there
    }
  }

  writeNote({ endpoint, kernel, standsStill }: SandboxNote): void {
    const behind = evidenceToText({ ...endpoint, guest: kernel });
    const text = JSON.stringify([evidenceToText(endpoint), behind, standsStill]);
    writeWhole(join(this.#folder, "note.json"), Buffer.from(text));
  }

  lastWords(): string {
    try {
      return readFileSync(this.log, "utf8").slice(-2000);
    } catch {
      return ""; // it has said nothing
    }
  }

  remove(): void {
    rmSync(this.#sockets, { recursive: true, force: true });
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Sandboxes of which there are files. */
export function listPlaces(stateDir: string, socketDir: string): ReadonlySet<ActivationId> {
  const names = [...readdirSync(join(stateDir, "activations")), ...readdirSync(socketDir)];
  return new Set(names.flatMap((name) => asActivation(name) ?? []));
}

function writeWhole(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.part`, bytes, { mode: 0o600 });
  renameSync(`${path}.part`, path);
}

function parseNote(text: string): SandboxNote {
  const parts: unknown = JSON.parse(text);
  if (!Array.isArray(parts)) throw new TypeError("not a note");
  const [endpoint, behind, standsStill]: readonly unknown[] = parts;
  return {
    endpoint: parseEvidence(String(endpoint)),
    kernel: parseEvidence(String(behind)).guest,
    standsStill: standsStill === true,
  };
}
