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
#include <limits.h>
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

// One tmpfs for two things, the shared memory folder and the boot id, mounted for a moment at `path`. Returns the boot id's
// file, still empty.
static int make_shm(const struct start *s, const char *path, int trees[2], int status_fd) {
  char options[96], shm[PATH_MAX], boot_id[PATH_MAX];
  snprintf(shm, sizeof shm, "%s/shm", path);
  snprintf(boot_id, sizeof boot_id, "%s/boot_id", path);
  snprintf(options, sizeof options, "size=%u,nr_inodes=16384,mode=0755", s->tmpfs_bytes);
  if (mount_on("tmpfs", path, MS_NOSUID | MS_NODEV, options) < 0) fail_start(status_fd, "shm");
  int id = open(boot_id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (id < 0) fail_start(status_fd, "boot-id");
  if (mkdir(shm, 0700) < 0 || chown(shm, s->uid_base, s->uid_base) < 0 || chmod(shm, 01777) < 0) fail_start(status_fd, "shm");
  trees[0] = open_tree_at(AT_FDCWD, shm);
  trees[1] = open_tree_at(AT_FDCWD, boot_id);
  if (trees[0] < 0 || umount2(path, MNT_DETACH) < 0) fail_start(status_fd, "shm");
  if (trees[1] < 0 || set_mount(trees[1], quiet | MOUNT_ATTR_RDONLY, -1) < 0) fail_start(status_fd, "boot-id");
  return id;
}

// Returns the boot id's file, still empty.
static int mount_dev(const struct start *s, int dev, int status_fd) {
  char options[96];
  int trees[2];
  if (attach(dev, "/dev") < 0) fail_start(status_fd, "dev");
  snprintf(options, sizeof options, "newinstance,ptmxmode=0666,mode=0620,gid=%u", s->uid_base + 5);
  if (mount_on("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, options) < 0) fail_start(status_fd, "devpts");
  int id = make_shm(s, "/dev/shm", trees, status_fd);
  if (attach(trees[0], "/dev/shm") < 0) fail_start(status_fd, "shm");
  if (attach(trees[1], "/proc/sys/kernel/random/boot_id") < 0) fail_start(status_fd, "boot-id");
  return id;
}

static void clone_binds(const struct start *s, int binds[MAX_BINDS], int userns_fd, int status_fd) {
  for (uint32_t i = 0; i < s->nbinds; i++) {
    binds[i] = open_tree_at(AT_FDCWD, s->binds[i].source);
    uint64_t attributes = quiet | (s->binds[i].read_only ? MOUNT_ATTR_RDONLY : 0);
    if (binds[i] < 0 || set_mount(binds[i], attributes, userns_fd) < 0) fail_start(status_fd, "bind");
  }
}

static int clone_dev(const char *dev_path, int userns_fd, int status_fd) {
  int dev = open_tree_at(AT_FDCWD, dev_path);
  if (dev < 0 || set_mount(dev, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, -1) < 0) fail_start(status_fd, "dev");
  set_mount(dev, 0, userns_fd);  // cosmetic (owners show as root), and only newer kernels map a tmpfs
  return dev;
}

int confine_mounts(struct start *s, const char *dev_path, int userns_fd, int status_fd) {
  int binds[MAX_BINDS];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail_start(status_fd, "private");
  clone_binds(s, binds, userns_fd, status_fd);
  int dev = clone_dev(dev_path, userns_fd, status_fd);
  mount_root(s, userns_fd, status_fd);

  if (chdir(s->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) fail_start(status_fd, "pivot");
  if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) fail_start(status_fd, "pivot");
  for (uint32_t i = 0; i < s->nbinds; i++) {
    if (attach(binds[i], s->binds[i].target) < 0) fail_start(status_fd, "bind-target");
  }
  if (mount_on("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) fail_start(status_fd, "proc");
  return mount_dev(s, dev, status_fd);
}

// A place on the stage for a tree: a folder or a file, as the tree is.
static void stage(int tree, const char *folder, const char *name, int status_fd) {
  char path[PATH_MAX];
  struct stat found;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (fstat(tree, &found) < 0) fail_start(status_fd, "stage");
  bool made = S_ISDIR(found.st_mode) ? mkdir(path, 0700) == 0 : mknod(path, S_IFREG | 0600, 0) == 0;
  if (!made || attach(tree, path) < 0) fail_start(status_fd, "stage");
}

// All that a restored guest is to find, in a mount namespace of the restorer's own: on a stage, each under a name of its own
// (PROTOCOL.md, RESTORE).
const char *stage_mounts(struct start *s, const struct launcher *l, int userns_fd, const char *images, int status_fd) {
  char name[16], root[PATH_MAX], made[PATH_MAX];
  int binds[MAX_BINDS], shm[2];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail_start(status_fd, "private");
  clone_binds(s, binds, userns_fd, status_fd);
  int dev = clone_dev(l->dev_path, userns_fd, status_fd), image = open_tree_at(AT_FDCWD, images);
  if (image < 0) fail_start(status_fd, "images");
  static const char folder[] = "/run/stage";  // where every user id may go
  if (mount(l->run_path, "/run", NULL, MS_BIND, NULL) < 0) fail_start(status_fd, "run");
  snprintf(root, sizeof root, "%s/root", folder);
  snprintf(made, sizeof made, "%s/made", folder);
  if (mount("stage", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=0711") < 0) fail_start(status_fd, "stage");
  if (mkdir(root, 0711) < 0 || mkdir(made, 0711) < 0) fail_start(status_fd, "stage");
  s->root = root;
  mount_root(s, userns_fd, status_fd);
  for (uint32_t i = 0; i < s->nbinds; i++) {
    snprintf(name, sizeof name, "bind%u", i);
    stage(binds[i], folder, name, status_fd);
  }
  stage(dev, folder, "dev", status_fd);
  stage(image, folder, "images", status_fd);
  int id = make_shm(s, made, shm, status_fd);
  size_t length = strlen(s->boot_id);
  if (write(id, s->boot_id, length) != (ssize_t)length || write(id, "\n", 1) != 1) fail_start(status_fd, "boot-id");
  close(id);
  stage(shm[0], folder, "shm", status_fd);
  stage(shm[1], folder, "boot_id", status_fd);
  return "/run/stage/shm";
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

static int set_capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  for (int i = 0; i < 2; i++) {
    data[i].effective = (uint32_t)(effective >> 32 * i);
    data[i].permitted = (uint32_t)(permitted >> 32 * i);
    data[i].inheritable = (uint32_t)(inheritable >> 32 * i);
  }
  return (int)syscall(SYS_capset, &header, data);
}

bool keep_guest_capabilities(void) {
  drop_bounding_set(guest_root_capabilities);
  return set_capabilities(guest_root_capabilities, guest_root_capabilities, 0) == 0;
}

// Means nothing in a user namespace. Who has it permitted can be traced, and have its memory read, by nobody who has not.
static const uint64_t distinction = CAP(WAKE_ALARM);

// Inherited through the one exec that follows; the bounding set keeps it from all others.
static bool keep_traveller_capabilities(void) {
  bool kept = set_capabilities(guest_root_capabilities, guest_root_capabilities | distinction, distinction) == 0;
  drop_bounding_set(guest_root_capabilities);  // after it: what is inheritable is so within this set only
  return kept;
}

bool keep_distinction(void) { return set_capabilities(guest_root_capabilities, guest_root_capabilities | distinction, 0) == 0; }

void confine_privileges(const struct launcher *l, const struct start *s, int status_fd) {
  bool traveller = s->program[0] != 0;
  struct sock_fprog program = {.len = (unsigned short)l->filter_length, .filter = l->filter};
  struct rlimit core = {0, 0}, file = {s->file_bytes, s->file_bytes};
  setrlimit(RLIMIT_CORE, &core);
  if (s->file_bytes > 0) setrlimit(RLIMIT_FSIZE, &file);
  if (!(traveller ? keep_traveller_capabilities : keep_guest_capabilities)()) fail_start(status_fd, "capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail_start(status_fd, "no-new-privileges");
  // Not dumpable: the guest's own root can neither trace this process nor read its memory, where the secret lies. (CRIU
  // cannot save what is not; for one that it saves, see `distinction`.)
  if (!traveller && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) fail_start(status_fd, "dumpable");
  if (l->filter_length > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) fail_start(status_fd, "seccomp");
}
