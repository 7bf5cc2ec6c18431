// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Starts a `spaced-host`: a process that holds the secrets of several activations and parses what callers send. It gets
// its own user id, no network, no capabilities, and a root with only the paths that it needs, each at its own place, so
// that a checkout under somebody's private home can run and nothing else of the host can be read.
#include "common.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char stage[] = "/mnt";  // hidden by the new root in this process's own mount namespace only

static int clone_path(const struct host_bind *bind) {
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | (bind->read_only ? MOUNT_ATTR_RDONLY : 0)};
  if (strncmp(bind->path, "/dev/", 5) != 0) attr.attr_set |= MOUNT_ATTR_NODEV;
  int fd = (int)syscall(SYS_open_tree, AT_FDCWD, bind->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? -1 : fd;
}

// Makes the folders above the path, and the path itself as a folder or a file, below the stage.
static bool make_place(const char *path, bool folder, char *place, size_t size) {
  if (snprintf(place, size, "%s%s", stage, path) >= (int)size) return false;
  for (char *at = place + sizeof stage; *at != 0; at++) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(place, 0755);  // exists already, or the open below fails
    *at = '/';
  }
  if (folder) return mkdir(place, 0755) == 0 || errno == EEXIST;
  int fd = open(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  close(fd);
  return true;
}

static void confine_root(const struct host *h, int status_fd) {
  static const char *const links[] = {"bin", "lib", "lib64", "sbin"};
  int trees[MAX_BINDS];
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail_start(status_fd, "mounts");
  for (uint32_t i = 0; i < h->nbinds; i++) {
    trees[i] = clone_path(&h->binds[i]);
    if (trees[i] < 0) fail_start(status_fd, "bind");
  }
  if (mount("root", stage, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") < 0) fail_start(status_fd, "root");
  for (uint32_t i = 0; i < h->nbinds; i++) {
    char place[4096];
    struct stat s;
    if (fstat(trees[i], &s) < 0 || !make_place(h->binds[i].path, S_ISDIR(s.st_mode), place, sizeof place)) fail_start(status_fd, "bind-target");
    if (syscall(SYS_move_mount, trees[i], "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0) fail_start(status_fd, "bind-target");
    close(trees[i]);
  }
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    char target[32], place[32];
    snprintf(target, sizeof target, "usr/%s", links[i]);
    snprintf(place, sizeof place, "%s/%s", stage, links[i]);
    if (symlink(target, place) < 0) fail_start(status_fd, "root");
  }
  if (mount(NULL, stage, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0) fail_start(status_fd, "root");
  if (chdir(stage) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0) fail_start(status_fd, "pivot");
}

_Noreturn void start_host(struct host *h, int status_fd) {
  int log = open(h->stderr_path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0640), null = open("/dev/null", O_RDWR);
  if (log < 0 || null < 0) fail_start(status_fd, "log");
  int *kept[] = {&status_fd, &log};
  keep_descriptors(null, kept, 2);
  dup2(log, 2);
  if (setsid() < 0 || unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0) fail_start(status_fd, "namespaces");
  if (h->nbinds > 0) confine_root(h, status_fd);
  umask(077);
  drop_bounding_set(0);
  if (setgroups(0, NULL) < 0 || setresgid(h->gid, h->gid, h->gid) < 0 || setresuid(h->uid, h->uid, h->uid) < 0) fail_start(status_fd, "identity");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail_start(status_fd, "privileges");
  if (chdir("/") < 0) fail_start(status_fd, "chdir");
  unblock_signals();
  signal(SIGPIPE, SIG_DFL);
  execve(h->argv[0], h->argv, h->envp);  // close-on-exec closes the status pipe: its silent end is success
  fail_start(status_fd, "exec");
}
