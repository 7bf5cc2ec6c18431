// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Turns a fresh child of the launcher into a guest: its own file tree, its own root, nothing of the host's.
//
// The pid, mount, network, IPC, UTS and cgroup namespaces are made while still in the host's user namespace, so the
// guest's root owns none of them: it cannot mount, change its network or its host name even if seccomp let it try.
// After pivot_root every target is resolved inside the guest's tree and without following symlinks: the tree may come
// from a snapshot that a hostile guest has prepared.
#include "common.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define CAP(name) (1ull << CAP_##name)
// What root means inside a guest; each has an effect only on what the guest's user namespace owns or maps.
const uint64_t guest_root_capabilities = CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FOWNER) | CAP(FSETID) | CAP(KILL) | CAP(SETGID) |
                                         CAP(SETUID) | CAP(SETPCAP) | CAP(NET_BIND_SERVICE);

static const uint64_t quiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// Raw calls: Debian 12's glibc 2.36 has most of them, older ones have none.
static int open_tree_at(int dir, const char *path) {
  return (int)syscall(SYS_open_tree, dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (*path == 0 ? AT_EMPTY_PATH : 0));
}

static int set_mount(int fd, uint64_t attributes, int userns_fd) {
  struct mount_attr attr = {.attr_set = attributes};
  if (userns_fd >= 0) {
    attr.attr_set |= MOUNT_ATTR_IDMAP;
    attr.userns_fd = (uint64_t)userns_fd;
  }
  return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

// A place in the guest's tree. Refuses symlinks anywhere in the path.
static int open_target(const char *path) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_IN_ROOT};
  return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static int attach(int fd, const char *path) {
  int target = open_target(path);
  if (target < 0) return -1;
  int result = (int)syscall(SYS_move_mount, fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  int error = errno;
  close(target);
  close(fd);
  errno = error;
  return result;
}

// mount(2) on a target that is no symlink: through the working directory, which is "/" before and after.
static int mount_on(const char *type, const char *path, unsigned long flags, const char *options) {
  int target = open_target(path);
  if (target < 0 || fchdir(target) < 0) return -1;
  int result = mount(type, ".", type, flags, options);
  int error = errno;
  close(target);
  if (chdir("/") < 0) return -1;
  errno = error;
  return result;
}

static void mount_root(struct start *s, int userns_fd, int status_fd) {
  int lower = open_tree_at(AT_FDCWD, s->lower);
  if (lower < 0 || set_mount(lower, quiet | MOUNT_ATTR_RDONLY, userns_fd) < 0) fail_start(status_fd, "lower");
  // rootDir carries the id-mapped lower layer first and then, over it, the overlay made of it.
  if (syscall(SYS_move_mount, lower, "", AT_FDCWD, s->root, MOVE_MOUNT_F_EMPTY_PATH) < 0) fail_start(status_fd, "lower");
  close(lower);
  int layers[3] = {open(s->root, O_PATH | O_CLOEXEC), open(s->upper, O_PATH | O_CLOEXEC), open(s->work, O_PATH | O_CLOEXEC)};
  if (layers[0] < 0 || layers[1] < 0 || layers[2] < 0) fail_start(status_fd, "layers");
  // Descriptors instead of paths: the guest reads these options in /proc/mounts and learns nothing about the host.
  // volatile: the layer dies with the host's crash anyway, and without it every stop would sync the host's file system.
  char options[160];
  snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,userxattr,volatile",
           layers[0], layers[1], layers[2]);
  if (mount("root", s->root, "overlay", MS_NOSUID | MS_NODEV, options) < 0) fail_start(status_fd, "overlay");
  for (int i = 0; i < 3; i++) close(layers[i]);
}

// Returns the boot id's file, still empty.
static int mount_dev(const struct start *s, int dev, int status_fd) {
  char options[96];
  if (attach(dev, "/dev") < 0) fail_start(status_fd, "dev");
  snprintf(options, sizeof options, "newinstance,ptmxmode=0666,mode=0620,gid=%u", s->uid_base + 5);
  if (mount_on("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, options) < 0) fail_start(status_fd, "devpts");
  // One tmpfs for two things: the shared memory folder, bound over it, and the boot id.
  snprintf(options, sizeof options, "size=%u,nr_inodes=16384,mode=0755", s->tmpfs_bytes);
  if (mount_on("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, options) < 0) fail_start(status_fd, "shm");
  int id = open("/dev/shm/boot_id", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (id < 0) fail_start(status_fd, "boot-id");
  if (mkdir("/dev/shm/shm", 0700) < 0 || chown("/dev/shm/shm", s->uid_base, s->uid_base) < 0 || chmod("/dev/shm/shm", 01777) < 0) {
    fail_start(status_fd, "shm");
  }
  int boot_id = open_tree_at(AT_FDCWD, "/dev/shm/boot_id"), shm = open_tree_at(AT_FDCWD, "/dev/shm/shm");
  if (boot_id < 0 || set_mount(boot_id, quiet | MOUNT_ATTR_RDONLY, -1) < 0) fail_start(status_fd, "boot-id");
  if (attach(boot_id, "/proc/sys/kernel/random/boot_id") < 0) fail_start(status_fd, "boot-id");
  if (shm < 0 || attach(shm, "/dev/shm") < 0) fail_start(status_fd, "shm");
  return id;
}

int confine_mounts(struct start *s, const char *dev_path, int userns_fd, int status_fd) {
  int binds[MAX_BINDS];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail_start(status_fd, "private");
  for (uint32_t i = 0; i < s->nbinds; i++) {
    binds[i] = open_tree_at(AT_FDCWD, s->binds[i].source);
    uint64_t attributes = quiet | (s->binds[i].read_only ? MOUNT_ATTR_RDONLY : 0);
    if (binds[i] < 0 || set_mount(binds[i], attributes, userns_fd) < 0) fail_start(status_fd, "bind");
  }
  int dev = open_tree_at(AT_FDCWD, dev_path);
  if (dev < 0 || set_mount(dev, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, -1) < 0) fail_start(status_fd, "dev");
  set_mount(dev, 0, userns_fd);  // cosmetic (owners show as root), and only newer kernels map a tmpfs
  mount_root(s, userns_fd, status_fd);

  if (chdir(s->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) fail_start(status_fd, "pivot");
  if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) fail_start(status_fd, "pivot");
  for (uint32_t i = 0; i < s->nbinds; i++) {
    if (attach(binds[i], s->binds[i].target) < 0) fail_start(status_fd, "bind-target");
  }
  if (mount_on("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) fail_start(status_fd, "proc");
  return mount_dev(s, dev, status_fd);
}

void confine_names(const struct start *s, int boot_id_fd, int status_fd) {
  size_t length = strlen(s->boot_id);
  if (write(boot_id_fd, s->boot_id, length) != (ssize_t)length || write(boot_id_fd, "\n", 1) != 1) fail_start(status_fd, "boot-id");
  close(boot_id_fd);
  if (sethostname(s->hostname, strlen(s->hostname)) < 0) fail_start(status_fd, "hostname");
}

void confine_identity(int userns_fd, int status_fd) {
  if (setns(userns_fd, CLONE_NEWUSER) < 0) fail_start(status_fd, "user-namespace");
  if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0) fail_start(status_fd, "identity");
}

void drop_bounding_set(uint64_t keep) {
  for (unsigned long cap = 0; cap < 64; cap++) {
    if ((keep >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap) < 0 && errno == EINVAL) break;  // past the last one
  }
}

static int set_capabilities(uint64_t caps) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
                                           {.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)}};
  return (int)syscall(SYS_capset, &header, data);
}

bool keep_guest_capabilities(void) {
  drop_bounding_set(guest_root_capabilities);
  return set_capabilities(guest_root_capabilities) == 0;
}

void confine_privileges(const struct launcher *l, uint64_t file_bytes, int status_fd) {
  struct sock_fprog program = {.len = (unsigned short)l->filter_length, .filter = l->filter};
  struct rlimit core = {0, 0}, file = {file_bytes, file_bytes};
  setrlimit(RLIMIT_CORE, &core);
  if (file_bytes > 0) setrlimit(RLIMIT_FSIZE, &file);
  if (!keep_guest_capabilities()) fail_start(status_fd, "capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail_start(status_fd, "no-new-privileges");
  // Not dumpable: the guest's own root can neither trace this process nor read its memory, where the secret lies.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) fail_start(status_fd, "dumpable");
  if (l->filter_length > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) fail_start(status_fd, "seccomp");
}
