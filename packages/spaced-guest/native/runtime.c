// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Starts a sandbox's runtime: a program of the host's that builds the walls itself (a user-space kernel). It runs as
// root in the sandbox's control groups, and dies with the launcher as guests do.
#include "common.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

_Noreturn void start_runtime(struct host *h, int status_fd) {
  enter_groups(h->cgroups, h->ncgroups, status_fd);
  int log = open(h->stderr_path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0600), null = open("/dev/null", O_RDWR);
  if (log < 0 || null < 0) fail_start(status_fd, "log");
  int *kept[] = {&status_fd, &log};
  keep_descriptors(null, kept, 2);
  dup2(log, 1);
  dup2(log, 2);
  if (setsid() < 0 || chdir("/") < 0) fail_start(status_fd, "session");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail_start(status_fd, "death-signal");
  umask(077);
  unblock_signals();
  signal(SIGPIPE, SIG_DFL);
  execve(h->argv[0], h->argv, h->envp);  // close-on-exec closes the status pipe: its silent end is success
  fail_start(status_fd, "exec");
}
