// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/** Configuration that programs under /usr need and that holds nothing of the host's own. Everything else stays out. */
const copiedFromEtc: readonly string[] = [
  "alternatives",
  "bash.bashrc",
  "bash_completion.d",
  "bindresvport.blacklist",
  "ca-certificates",
  "ca-certificates.conf",
  "debian_version",
  "fonts",
  "gai.conf",
  "groff",
  "host.conf",
  "inputrc",
  "issue",
  "java-17-openjdk",
  "java-21-openjdk",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "login.defs",
  "magic",
  "magic.mime",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "perl",
  "profile",
  "protocols",
  "python3",
  "python3.11",
  "python3.12",
  "python3.13",
  "rpc",
  "services",
  "shells",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
  "vim",
  "xattr.conf",
];

const folders: readonly (readonly [path: string, mode: number])[] = [
  ["boot", 0o755],
  ["dev", 0o755],
  ["etc", 0o755],
  ["home", 0o755],
  ["home/user", 0o755],
  ["media", 0o755],
  ["mnt", 0o755],
  ["opt", 0o755],
  ["proc", 0o555],
  ["root", 0o700],
  ["run", 0o755],
  ["run/lock", 0o1777],
  ["run/space", 0o755],
  ["srv", 0o755],
  ["sys", 0o555],
  ["tmp", 0o1777],
  ["usr", 0o755],
  ["var", 0o755],
  ["var/cache", 0o755],
  ["var/lib", 0o755],
  ["var/local", 0o755],
  ["var/log", 0o755],
  ["var/mail", 0o755],
  ["var/opt", 0o755],
  ["var/spool", 0o755],
  ["var/tmp", 0o1777],
];

const files: Readonly<Record<string, readonly [content: string, mode: number]>> = {
  "etc/passwd": [
    [
      "root:x:0:0:root:/root:/bin/bash",
      "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin",
      "bin:x:2:2:bin:/bin:/usr/sbin/nologin",
      "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin",
      "user:x:1000:1000:user:/home/user:/bin/bash",
      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
      "",
    ].join("\n"),
    0o644,
  ],
  "etc/group": [
    [
      "root:x:0:",
      "daemon:x:1:",
      "bin:x:2:",
      "adm:x:4:",
      "tty:x:5:",
      "disk:x:6:",
      "mail:x:8:",
      "sudo:x:27:user",
      "www-data:x:33:",
      "shadow:x:42:",
      "utmp:x:43:",
      "staff:x:50:",
      "users:x:100:user",
      "user:x:1000:",
      "nogroup:x:65534:",
      "",
    ].join("\n"),
    0o644,
  ],
  // No password opens anything.
  "etc/shadow": ["root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n", 0o640],
  "etc/hosts": ["127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n", 0o644],
  // No network but the loopback, hence no resolver.
  "etc/resolv.conf": ["", 0o644],
  "etc/hostname": ["sandbox\n", 0o644],
  "etc/fstab": ["", 0o644],
  "etc/environment": ["", 0o644],
  // Over which the program of a guest that can be saved with its memory is bound.
  "run/space/guest": ["", 0o644],
};

const dotFiles: readonly string[] = [".bashrc", ".profile", ".bash_logout"];

/**
 * Makes the read-only lower layer of every guest: a root folder tree with the host's public configuration and none of
 * its secrets; /usr is bound over it. Atomic: `path` exists only when it is whole.
 */
export function buildSkeleton(path: string): void {
  const draft = `${path}.draft`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  chmodSync(draft, 0o755);
  for (const [folder, mode] of folders) {
    mkdirSync(join(draft, folder));
    chmodSync(join(draft, folder), mode); // exactly, whatever the umask
  }
  linkMergedUsr(draft);
  symlinkSync("/run", join(draft, "var/run"));
  symlinkSync("/run/lock", join(draft, "var/lock"));
  symlinkSync("/proc/mounts", join(draft, "etc/mtab"));
  for (const name of copiedFromEtc) copyPublic(join("/etc", name), join(draft, "etc", name));
  for (const [name, [content, mode]] of Object.entries(files)) {
    writeFileSync(join(draft, name), content);
    chmodSync(join(draft, name), mode);
  }
  for (const name of dotFiles) {
    copyPublic(join("/etc/skel", name), join(draft, "root", name));
    copyPublic(join("/etc/skel", name), join(draft, "home/user", name));
  }
  chownSync(join(draft, "home/user"), 1000, 1000);
  for (const name of readdirSync(join(draft, "home/user")))
    chownSync(join(draft, "home/user", name), 1000, 1000);
  renameSync(draft, path);
}

/** /bin, /lib and so on are links into /usr on every Debian since 12. */
function linkMergedUsr(root: string): void {
  for (const name of ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]) {
    try {
      symlinkSync(readlinkSync(join("/", name)), join(root, name));
    } catch {
      // not on this host or architecture
    }
  }
}

/** Copies what everybody on the host may read; a file that only some may read is left out. Owners become root. */
function copyPublic(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(join(to, ".."), { recursive: true, mode: 0o755 });
  cpSync(from, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (source) => {
      const found = lstatSync(source);
      if (found.isSymbolicLink()) return true;
      return (found.isFile() || found.isDirectory()) && (found.mode & 0o004) !== 0;
    },
  });
}
