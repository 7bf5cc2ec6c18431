// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ConnectedSandbox, type Json, type SandboxView, unreachable } from "@space/model";

/** What every description of a sandbox carries beside the sandbox. */
export interface ViewSettings {
  /** Below which callers reach sandboxes, perhaps with a port. */
  readonly domain: string;
  /** The version of E2B's agent protocol that the guests speak. */
  readonly envdVersion: string;
}

/** E2B's deprecated member, which its schema still requires; its first SDK puts it behind the sandbox's id. */
export const clientID = "space";

/** E2B's `Sandbox`: to whoever created or connected, with the tokens. */
export function connectedJson(sandbox: ConnectedSandbox, settings: ViewSettings): Json {
  const traffic = sandbox.trafficAccessToken?.reveal();
  return {
    ...namesOf(sandbox, settings),
    domain: settings.domain,
    envdAccessToken: sandbox.accessToken.reveal(),
    ...(traffic === undefined ? {} : { trafficAccessToken: traffic }),
    ...(sandbox.recoveredFrom === null
      ? {}
      : {
          space: {
            recoveredFrom: sandbox.recoveredFrom.toString(),
            snapshot: sandbox.snapshot?.digest ?? null,
          },
        }),
  };
}

/** E2B's `SandboxDetail`, with SPACE's own part in `space`. */
export function detailJson(sandbox: SandboxView, shown: ShownState, settings: ViewSettings): Json {
  return {
    ...listedMembers(sandbox, shown, settings),
    domain: settings.domain,
    lifecycle: { autoResume: sandbox.autoResume, onTimeout: sandbox.onTimeout },
    space: {
      generation: sandbox.generation.toString(),
      workerID: sandbox.workerId,
      autoRecover: sandbox.autoRecover,
      recoveredFrom: sandbox.recoveredFrom?.toString() ?? null,
      snapshot: sandbox.snapshot === null ? null : { ...sandbox.snapshot },
    },
  };
}

/** E2B's `ListedSandbox`. */
export function listedJson(sandbox: SandboxView, shown: ShownState, settings: ViewSettings): Json {
  return listedMembers(sandbox, shown, settings);
}

function listedMembers(
  sandbox: SandboxView,
  shown: ShownState,
  settings: ViewSettings,
): { [name: string]: Json } {
  return {
    ...namesOf(sandbox, settings),
    startedAt: new Date(sandbox.startedAtMs).toISOString(),
    endAt: new Date(sandbox.endAtMs).toISOString(),
    state: shown,
    cpuCount: sandbox.cpus,
    memoryMB: sandbox.memoryMb,
    diskSizeMB: sandbox.diskMb,
    metadata: sandbox.metadata,
    volumeMounts: [],
  };
}

function namesOf(sandbox: SandboxView, settings: ViewSettings): { [name: string]: Json } {
  return {
    sandboxID: sandbox.sandboxId,
    templateID: sandbox.template,
    clientID,
    ...(sandbox.alias === null ? {} : { alias: sandbox.alias }),
    envdVersion: settings.envdVersion,
  };
}

export type ShownState = "running" | "paused" | "lost";

/**
 * E2B knows two states. What is on its way to or from a pause is paused. What was lost is never shown as either
 * (statement 5): it is listed only for who asks for `lost`. What never comes back is not there (undefined).
 */
export function shownState({ state }: SandboxView): ShownState | undefined {
  switch (state) {
    case "creating":
    case "running":
      return "running";
    case "pausing":
    case "paused":
    case "resuming":
      return "paused";
    case "lost":
      return "lost";
    case "killing":
    case "killed":
    case "failed":
      return undefined;
    default:
      return unreachable(state);
  }
}
