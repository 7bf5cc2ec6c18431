// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Starting a process: a vfork-like clone (the child borrows this memory until exec, so nothing is copied).
//
// Between clone and exec the child must not call anything that takes a lock or touches other threads: only system calls,
// and raw ones where glibc would involve all threads (setuid and its kin).
#include "common.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "process.h"

enum { CHILD_STACK = 32 * 1024, MAX_STRINGS = 65536, MAX_GROUPS = 64, STDIN_OPEN = 1, WITH_PTY = 2 };

struct request {
  uint32_t flags, uid, gid, ngroups, argc, envc;
  gid_t groups[MAX_GROUPS];
  char *cwd, **argv, **envp;
  uint16_t cols, rows;
};

struct child {
  const struct request *r;
  int stdio[3];
  char *const *candidates;  // paths to try to execute, in order
  volatile int error;       // shared memory: written by the child
  const char *volatile step;
};

static char **take_strings(struct cursor *c, uint32_t *count) {
  *count = take_u32(c);
  if (c->bad || *count > MAX_STRINGS || *count > c->left / 4) {
    c->bad = true;
    return NULL;
  }
  char **strings = calloc(*count + 1, sizeof *strings);
  for (uint32_t i = 0; strings != NULL && i < *count; i++) strings[i] = take_string(c);
  return strings;
}

static int parse(struct request *r, struct cursor *c) {
  r->flags = take_u32(c);
  r->uid = take_u32(c);
  r->gid = take_u32(c);
  r->ngroups = take_u32(c);
  if (r->ngroups > MAX_GROUPS) return EINVAL;
  for (uint32_t i = 0; i < r->ngroups; i++) r->groups[i] = take_u32(c);
  r->cwd = take_string(c);
  r->argv = take_strings(c, &r->argc);
  r->envp = take_strings(c, &r->envc);
  r->cols = take_u16(c);
  r->rows = take_u16(c);
  if (c->bad || r->argc == 0) return EINVAL;
  return r->argv == NULL || r->envp == NULL ? ENOMEM : 0;
}

// The paths execvp would try, from the PATH of the process's own environment. One allocation holds all.
static char **make_candidates(const struct request *r) {
  const char *name = r->argv[0], *path = "/usr/local/bin:/usr/bin:/bin";
  for (uint32_t i = 0; i < r->envc; i++) {
    if (strncmp(r->envp[i], "PATH=", 5) == 0) path = r->envp[i] + 5;
  }
  size_t parts = 1, length = strlen(name);
  bool search = strchr(name, '/') == NULL && length > 0;
  for (const char *p = path; search && *p != 0; p++) parts += *p == ':';
  char **list = calloc(1, (parts + 1) * sizeof *list + strlen(path) + parts * (length + 3));
  if (list == NULL || !search) {
    if (list != NULL) list[0] = (char *)name;
    return list;
  }
  char *text = (char *)(list + parts + 1);
  for (size_t i = 0; i < parts; i++) {
    size_t n = strcspn(path, ":");
    list[i] = text;
    memcpy(text, n == 0 ? "." : path, n == 0 ? 1 : n);
    text += n == 0 ? 1 : n;
    *text++ = '/';
    memcpy(text, name, length + 1);
    text += length + 1;
    path += n + 1;
  }
  return list;
}

static int fail(struct child *c, const char *step) {
  c->error = errno;
  c->step = step;
  return 127;  // clone's return ends the child
}

static int child_main(void *argument) {
  struct child *c = argument;
  const struct request *r = c->r;
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigset_t none;
  sigemptyset(&none);
  sigaction(SIGPIPE, &standard, NULL);
  if (setsid() < 0) return fail(c, "setsid");
  if ((r->flags & WITH_PTY) != 0 && ioctl(c->stdio[0], TIOCSCTTY, 0) < 0) return fail(c, "terminal");
  // The three may lie anywhere above 2 (0 to 2 are /dev/null in this process), so plain dup2 cannot overwrite a source.
  for (int i = 0; i < 3; i++) {
    if (dup2(c->stdio[i], i) < 0) return fail(c, "stdio");
  }
  syscall(SYS_close_range, 3, ~0U, 0);
  umask(022);
  if (syscall(SYS_setgroups, (size_t)r->ngroups, r->groups) < 0) return fail(c, "setgroups");
  if (syscall(SYS_setresgid, r->gid, r->gid, r->gid) < 0) return fail(c, "setgid");
  if (syscall(SYS_setresuid, r->uid, r->uid, r->uid) < 0) return fail(c, "setuid");
  if (chdir(r->cwd) < 0) return fail(c, "chdir");
  sigprocmask(SIG_SETMASK, &none, NULL);
  int error = ENOENT;
  for (char *const *path = c->candidates; *path != NULL; path++) {
    execve(*path, r->argv, r->envp);
    if (errno == EACCES) error = EACCES;  // as execvp: remembered, the search goes on
    else if (errno != ENOENT && errno != ENOTDIR) {
      error = errno;
      break;
    }
  }
  errno = error;
  return fail(c, "exec");
}

static int open_slave(int master) {
  int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC), number;
  if (slave >= 0 || (errno != ENOTTY && errno != EINVAL) || ioctl(master, TIOCGPTN, &number) < 0) return slave;
  char path[32];
  snprintf(path, sizeof path, "/dev/pts/%d", number);
  return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int open_pty(struct process *p, const struct request *r, int *slave) {
  int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), unlock = 0;
  struct winsize size = {.ws_col = r->cols, .ws_row = r->rows};
  if (master < 0) return errno;
  p->output[0] = master;
  p->input = fcntl(master, F_DUPFD_CLOEXEC, 3);
  if (p->input < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0) return errno;
  *slave = open_slave(master);
  if (*slave < 0 || fchown(*slave, r->uid, (gid_t)-1) < 0) return errno;
  return size.ws_col != 0 && ioctl(master, TIOCSWINSZ, &size) < 0 ? errno : 0;
}

// `ours` reads when `which` is an output. The process may reopen its end through /dev/stdout, so it owns the pipe.
static int open_pipe(const struct request *r, int which, int *ours, int *theirs) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return errno;
  *ours = ends[which == 0];
  *theirs = ends[which != 0];
  if (fchown(*theirs, r->uid, r->gid) < 0) return errno;
  return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? errno : 0;
}

static int open_stdio(struct process *p, const struct request *r, int stdio[3]) {
  if ((r->flags & WITH_PTY) != 0) {
    p->pty = true;
    int error = open_pty(p, r, &stdio[0]);
    stdio[1] = stdio[2] = stdio[0];
    return error;
  }
  int error = 0;
  if ((r->flags & STDIN_OPEN) != 0) error = open_pipe(r, 0, &p->input, &stdio[0]);
  else if ((stdio[0] = fcntl(0, F_DUPFD_CLOEXEC, 3)) < 0) error = errno;  // the guest's /dev/null
  if (error == 0) error = open_pipe(r, 1, &p->output[0], &stdio[1]);
  if (error == 0) error = open_pipe(r, 2, &p->output[1], &stdio[2]);
  return error;
}

// Out of memory, the guest's processes go before its pid 1, which keeps 0. Done from here, after the exec: before it the
// child shares this process's memory, which is not dumpable, so its files in /proc are not its own.
static void let_it_be_killed_first(pid_t pid) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;  // it has exited
  ssize_t ignored = write(fd, "100", 3);
  (void)ignored;
  close(fd);
}

static int run(struct process *p, struct child *c) {
  uint8_t *stack = malloc(CHILD_STACK);
  if (stack == NULL) return c->step = "spawn", ENOMEM;
  int pidfd = -1;
  int flags = CLONE_VM | CLONE_VFORK | CLONE_CHILD_SETTID | SIGCHLD;
  void *top = (void *)((uintptr_t)(stack + CHILD_STACK) & ~(uintptr_t)15);
  int pid = clone(child_main, top, flags | CLONE_PIDFD, c, &pidfd, NULL, &p->pid);
  if (pid < 0 && errno == EINVAL) pid = clone(child_main, top, flags, c, NULL, NULL, &p->pid);  // a kernel without pidfds
  int error = pid < 0 ? errno : 0;
  free(stack);
  if (error != 0) return c->step = "spawn", error;
  p->pidfd = pidfd;
  if (c->step == NULL) let_it_be_killed_first(pid);
  if (c->step != NULL) process_reap();
  return c->step != NULL ? c->error : 0;
}

static struct process *new_process(uint64_t owner_epoch) {
  struct process *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->owner_epoch = owner_epoch;
  p->pidfd = p->input = p->output[0] = p->output[1] = p->attached = -1;
  p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  process_register(p);
  return p;
}

bool process_spawn(struct conn *conn, struct cursor *payload) {
  struct request r = {0};
  int stdio[3] = {-1, -1, -1};
  struct child child = {.r = &r, .step = "request"};
  int error = parse(&r, payload);
  char **candidates = error == 0 ? make_candidates(&r) : NULL;
  struct process *p = candidates == NULL ? NULL : new_process(conn->epoch);
  if (error == 0 && p == NULL) error = ENOMEM;
  if (error == 0) {
    child.step = (r.flags & WITH_PTY) != 0 ? "terminal" : "stdio";
    error = open_stdio(p, &r, stdio);
  }
  if (error == 0) {
    child.step = NULL;
    child.candidates = candidates;
    memcpy(child.stdio, stdio, sizeof stdio);
    error = run(p, &child);
  }
  for (int i = 0; i < ((r.flags & WITH_PTY) != 0 ? 1 : 3); i++) {
    if (stdio[i] >= 0) close(stdio[i]);
  }
  free(candidates);
  free(r.argv);
  free(r.envp);
  if (error != 0) {
    if (p != NULL) process_free(p);
    return conn_error(conn, error, child.step);
  }
  process_put_started(p);
  bool goes_on = process_serve(p, conn);
  process_free(p);
  return goes_on;
}
