// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// The launcher's start and end: its socket, its mounts, its signals.
#include "common.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct launcher launcher;
static sigset_t blocked;

static void die(const char *step) {
  fprintf(stderr, "spaced-launch: %s: %s\n", step, strerror(errno));
  exit(1);
}

static void load_filter(const char *path) {
  struct stat s;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &s) < 0) die("seccomp program");
  size_t length = (size_t)s.st_size, step = sizeof(struct sock_filter);
  errno = EINVAL;
  if (length == 0 || length % step != 0 || length / step > BPF_MAXINSNS) die("seccomp program");
  launcher.filter = malloc(length);
  if (launcher.filter == NULL || read(fd, launcher.filter, length) != (ssize_t)length) die("seccomp program");
  launcher.filter_length = length / step;
  close(fd);
}

static int listen_on(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char lock_path[sizeof address.sun_path + 8];
  errno = ENAMETOOLONG;
  if (strlen(path) >= sizeof address.sun_path) die("socket");
  strcpy(address.sun_path, path);
  snprintf(lock_path, sizeof lock_path, "%s.lock", path);
  int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0) die("another launcher holds the socket");
  unlink(path);  // of a launcher that has died
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  umask(0177);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 16) < 0) die("socket");
  return fd;
}

static void prepare(const char *socket_path) {
  static char dev_path[160];
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SIGPIPE);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // Own mounts: what the launcher mounts is invisible to the host; what the host mounts later still appears here.
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) die("mount namespace");
  snprintf(dev_path, sizeof dev_path, "%s.dev", socket_path);
  if (!make_dev_template(dev_path)) die("device template");
  launcher.dev_path = dev_path;
  // Where CRIU keeps what it has found out about the kernel: root's alone, or it could be lied to.
  static char run_path[160];
  char stage_path[192];
  snprintf(run_path, sizeof run_path, "%s.run", socket_path);
  if ((mkdir(run_path, 0700) < 0 && errno != EEXIST) ||
      mount("tmpfs", run_path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711,size=64k,nr_inodes=16") < 0) {
    die("run");
  }
  static char programs_path[160];
  snprintf(programs_path, sizeof programs_path, "%s.programs", socket_path);
  if ((mkdir(programs_path, 0700) < 0 && errno != EEXIST) ||
      mount("tmpfs", programs_path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=32m,nr_inodes=64") < 0) {
    die("programs");
  }
  launcher.programs_path = programs_path;
  snprintf(stage_path, sizeof stage_path, "%s/stage", run_path);
  if (mkdir(stage_path, 0711) < 0 || chmod(stage_path, 0711) < 0) die("stage");
  launcher.run_path = run_path;
}

// A program of the host's that finds this folder at /run, and everything else where it is.
static void run_with(const char *folder, char **argv) {
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return;
  if (mount(folder, "/run", NULL, MS_BIND, NULL) == 0) execve(argv[0], argv, environ);
}

int main(int argc, char **argv) {
  const char *socket_path = NULL, *filter = NULL;
  int orphan_seconds = -1;
  if (argc > 3 && strcmp(argv[1], "--in-user-namespace") == 0) {
    run_in_user_namespace((uint32_t)strtoul(argv[2], NULL, 10), argv + 3);
    die(argv[3]);
  }
  if (argc == 3 && strcmp(argv[1], "--inside") == 0) run_inside(argv[2], false);
  if (argc == 3 && strcmp(argv[1], "--inside-copied") == 0) run_inside(argv[2], true);
  if (argc == 2 && strcmp(argv[1], "--travel") == 0) run_traveller(argc, argv);
  if (argc == 1 && getenv("CRTOOLS_SCRIPT_ACTION") != NULL) return restore_hook();
  if (argc == 3 && strcmp(argv[1], "--keep") == 0) keep_restored(argv[2]);
  if (argc > 3 && strcmp(argv[1], "--with-run") == 0) {
    run_with(argv[2], argv + 3);
    die(argv[3]);
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--socket") == 0) socket_path = argv[i + 1];
    else if (strcmp(argv[i], "--seccomp") == 0) filter = argv[i + 1];
    else if (strcmp(argv[i], "--orphan-seconds") == 0) orphan_seconds = atoi(argv[i + 1]);
  }
  if (socket_path == NULL || filter == NULL) {
    fprintf(stderr, "usage: spaced-launch --socket PATH --seccomp FILE [--orphan-seconds N] | --in-user-namespace BASE COMMAND... | --inside FOLDER | --travel | --keep PIDFILE | --with-run FOLDER COMMAND...\n");
    return 2;
  }
  load_filter(filter);
  socket_path = strdup(socket_path);
  launcher.title = argv[0];
  launcher.title_length = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
  int listen_fd = listen_on(socket_path);
  prepare(socket_path);
  int signal_fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
  if (write(1, "ready\n", 6) != 6) return 1;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  bool asked = launch_serve(&launcher, listen_fd, signal_fd, orphan_seconds);
  unlink(socket_path);
  char *const mounted[] = {launcher.dev_path, launcher.run_path, launcher.programs_path};
  for (int i = 0; i < 3; i++) {
    umount2(mounted[i], MNT_DETACH);
    rmdir(mounted[i]);
  }
  if (asked) launch_say_done();
  return 0;
}
