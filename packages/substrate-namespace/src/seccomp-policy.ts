// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Linux errno numbers that a refused call returns. */
export type Refusal = "EPERM" | "ENOSYS" | "EOPNOTSUPP" | "EAFNOSUPPORT";

export type Architecture = "x64" | "arm64";

/** When a call is refused; without a condition it always is. Arguments are compared in their low 32 bits. */
export type Condition =
  /** Any of these bits is set in the argument. */
  | { readonly kind: "any-bit"; readonly argument: number; readonly mask: number }
  /** The argument is one of these. */
  | { readonly kind: "one-of"; readonly argument: number; readonly values: readonly number[] }
  /** No line of `allowed` matches. A line matches when each argument it names has the value it gives. */
  | { readonly kind: "unless"; readonly allowed: readonly (readonly ArgumentValue[])[] };

export interface ArgumentValue {
  readonly argument: number;
  readonly value: number;
}

export interface SyscallRule {
  readonly name: string;
  /** Absent where the architecture has no such call. */
  readonly x64?: number;
  readonly arm64?: number;
  readonly refusal: Refusal;
  readonly when?: Condition;
}

/**
 * Calls numbered above this are unknown to this policy (x32 calls among them, which carry bit 30) and answer ENOSYS:
 * what nobody has looked at is not offered.
 */
export const highestKnownSyscall: number = 469;

const newNamespaces = 0x7e02_0000; // CLONE_NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWNS
const newTime = 0x80; // CLONE_NEWTIME; in clone(2) these bits are the exit signal, in unshare(2) they are not

function always(name: string, x64: number, arm64: number, refusal: Refusal = "EPERM"): SyscallRule {
  return { name, x64, arm64, refusal };
}

/** A call that has the same number everywhere (all since 5.0). */
function everywhere(name: string, number: number, refusal: Refusal = "EPERM"): SyscallRule {
  return { name, x64: number, arm64: number, refusal };
}

function onlyX64(name: string, x64: number): SyscallRule {
  return { name, x64, refusal: "EPERM" };
}

/**
 * What a guest may not ask of the host's kernel. Namespaces, the uid range and the lack of capabilities refuse nearly all
 * of this already; the filter keeps the code behind these calls out of reach, where kernel bugs have been.
 * ptrace and process_vm_* are allowed on purpose: gdb and strace work, within one uid of one guest.
 */
export const guestPolicy: readonly SyscallRule[] = [
  // New namespaces: a user namespace of the guest's own would give it every capability over new kernel objects.
  {
    name: "clone",
    x64: 56,
    arm64: 220,
    refusal: "EPERM",
    when: { kind: "any-bit", argument: 0, mask: newNamespaces },
  },
  {
    name: "unshare",
    x64: 272,
    arm64: 97,
    refusal: "EPERM",
    when: { kind: "any-bit", argument: 0, mask: newNamespaces | newTime },
  },
  always("setns", 308, 268),
  // Its flags lie in memory, where a filter cannot see them; ENOSYS makes every libc fall back to clone.
  everywhere("clone3", 435, "ENOSYS"),

  // Work done by the kernel on the caller's behalf, around this filter. ENOSYS makes libuv and others fall back.
  everywhere("io_uring_setup", 425, "ENOSYS"),
  everywhere("io_uring_enter", 426, "ENOSYS"),
  everywhere("io_uring_register", 427, "ENOSYS"),

  // The mount table is the wall.
  always("mount", 165, 40),
  always("umount2", 166, 39),
  always("pivot_root", 155, 41),
  always("chroot", 161, 51),
  everywhere("open_tree", 428),
  everywhere("move_mount", 429),
  everywhere("fsopen", 430),
  everywhere("fsconfig", 431),
  everywhere("fsmount", 432),
  everywhere("fspick", 433),
  everywhere("mount_setattr", 442),
  everywhere("open_tree_attr", 467),
  always("open_by_handle_at", 304, 265), // reaches files by inode, past every path
  always("name_to_handle_at", 303, 264, "EOPNOTSUPP"), // its other half; callers know file systems without handles
  always("fanotify_init", 300, 262),
  always("quotactl", 179, 60),
  everywhere("quotactl_fd", 443),
  always("acct", 163, 89),
  always("swapon", 167, 224),
  always("swapoff", 168, 225),

  // Kernel code and introspection.
  always("bpf", 321, 280),
  always("perf_event_open", 298, 241),
  always("userfaultfd", 323, 282), // widens every kernel race
  always("init_module", 175, 105),
  always("finit_module", 313, 273),
  always("delete_module", 176, 106),
  always("kexec_load", 246, 104),
  always("kexec_file_load", 320, 294),
  always("syslog", 103, 116),
  always("kcmp", 312, 272), // orders kernel pointers
  everywhere("memfd_secret", 447, "ENOSYS"), // memory that no snapshot of the guest could read
  always("lookup_dcookie", 212, 18),
  always("nfsservctl", 180, 42),
  onlyX64("create_module", 174),
  onlyX64("get_kernel_syms", 177),
  onlyX64("query_module", 178),
  onlyX64("sysfs", 139),
  onlyX64("uselib", 134),
  onlyX64("ustat", 136),
  onlyX64("iopl", 172),
  onlyX64("ioperm", 173),
  onlyX64("modify_ldt", 154),

  // Keyrings are not wholly separated by namespaces.
  always("add_key", 248, 217),
  always("request_key", 249, 218),
  always("keyctl", 250, 219),

  // The host's clock, name, power and memory placement.
  always("reboot", 169, 142),
  always("settimeofday", 164, 170),
  always("clock_settime", 227, 112),
  always("clock_adjtime", 305, 266),
  always("sethostname", 170, 161),
  always("setdomainname", 171, 162),
  always("vhangup", 153, 58),
  always("migrate_pages", 256, 238),
  always("move_pages", 279, 239),

  // Sockets: Unix, IPv4, IPv6, and netlink only to look at routes and sockets. No VSOCK (which would reach the host),
  // ALG, PACKET, XDP, BLUETOOTH and the rest, each with its own kernel code. EAFNOSUPPORT is the answer of a kernel built
  // without them, and callers are prepared for it: useradd, for one, gives up when audit's netlink says EPERM.
  {
    name: "socket",
    x64: 41,
    arm64: 198,
    refusal: "EAFNOSUPPORT",
    when: {
      kind: "unless",
      allowed: [
        [{ argument: 0, value: 1 }], // AF_UNIX
        [{ argument: 0, value: 2 }], // AF_INET
        [{ argument: 0, value: 10 }], // AF_INET6
        [
          { argument: 0, value: 16 }, // AF_NETLINK
          { argument: 2, value: 0 }, // NETLINK_ROUTE: getifaddrs
        ],
        [
          { argument: 0, value: 16 },
          { argument: 2, value: 4 }, // NETLINK_SOCK_DIAG: ss
        ],
      ],
    },
  },

  {
    name: "socketpair", // of Unix sockets; the kernel has no other but TIPC's
    x64: 53,
    arm64: 199,
    refusal: "EAFNOSUPPORT",
    when: { kind: "unless", allowed: [[{ argument: 0, value: 1 }]] },
  },

  // TIOCSTI types into another's terminal, TIOCLINUX pastes into a console, TIOCSETD puts a driver (n_gsm and the like)
  // behind a terminal.
  {
    name: "ioctl",
    x64: 16,
    arm64: 29,
    refusal: "EPERM",
    when: { kind: "one-of", argument: 1, values: [0x5412, 0x541c, 0x5423] },
  },
];
