// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Where the guest's program and the folder in which both sides meet are, in the guest. The skeleton has both places. */
export const guestProgramPlace = "/run/space-guest";
export const meetingPlace = "/run/space";

export interface SpecOptions {
  readonly hostname: string;
  /** The read-only root on the host; what the guest writes to it stays in its own memory. */
  readonly root: string;
  /** The host's folder in which both sides meet. */
  readonly meeting: string;
  /** The guest's program on the host. */
  readonly guestProgram: string;
  readonly memoryBytes: number;
}

/** What the guest's pid 1 starts with. It keeps the set of a guest's root, once it has hidden the meeting folder. */
const capabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_KILL",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
  "CAP_SYS_ADMIN",
] as const;

/** The bundle's `config.json`: what runsc is asked for, as the OCI runtime specification has it. */
export function ociSpec({ hostname, root, meeting, guestProgram, memoryBytes }: SpecOptions): object {
  const bind = (source: string, destination: string, access: "ro" | "rw"): object => ({
    type: "bind",
    source,
    destination,
    options: [access, "rbind"],
  });
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid: 0, gid: 0 },
      args: [guestProgramPlace, "--inside", meetingPlace],
      env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
      cwd: "/",
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    root: { path: root, readonly: false },
    hostname,
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs" },
      bind("/usr", "/usr", "ro"),
      bind(guestProgram, guestProgramPlace, "ro"),
      bind(meeting, meetingPlace, "rw"),
    ],
    linux: {
      namespaces: ["pid", "mount", "ipc", "uts", "network"].map((type) => ({ type })),
      resources: { memory: { limit: memoryBytes } },
    },
  };
}
