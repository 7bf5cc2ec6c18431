// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// spaced-launch: the small root process that is the parent of every guest and bridge of a worker. It forks guests from
// itself without exec, so they share its pages and start in a millisecond or two. One thread, one poll loop.
#include "common.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

enum {
  L_START = 1, L_STARTED, L_FAILED, L_KILL, L_DONE, L_LIST, L_LISTING, L_HOST, L_QUIT, L_EXITED, L_PREPARE, L_CLAIM, L_LEASE, L_RUN, L_RESTORE, L_GO_ON,
  MAX_CLIENTS = 32, MAX_CHILDREN = 8192, MAX_NAME = 256, MAX_UNSENT = 4 * MAX_FRAME,
};

struct client {
  int fd;
  uint64_t serial;  // tells a client from a later one in the same slot
  struct in in;
  struct out out;
};

struct child {
  struct child *next;
  pid_t pid;
  uint64_t start_time;
  enum { STARTING, PREPARING, PREPARED, RUNNING, FAILED } stage;
  int status_fd;  // its reports, until it runs; a prepared one's claim goes the other way
  uint64_t client;
  uint32_t request;
  pid_t guest;  // the guest's pid 1, with its start time: the child itself, or what a restorer has restored and keeps
  struct claim *word;  // what a guest that is being restored will be told
  int listen_fd;       // of a traveller: its socket, which it lets go of before it is saved; -1: none
  bool travels;        // it can be saved and restored
  bool told_again;     // of a guest that has run before
  bool meets;          // the status will come from the guest, which has been told
  char *freezer;  // the file that freezes its control group; NULL for a bridge
  bool fenced;    // frozen because the lease has run out, and by nobody else
  int32_t error;  // once it has failed: told when it has been reaped, so that its name is free by then
  char step[24];
  char name[MAX_NAME + 1];
};

struct waiter {  // a KILL, or the QUIT, that waits for a child to be reaped
  struct waiter *next;
  uint64_t client;
  uint32_t request;
  pid_t pid;
};

static const struct launcher *launcher;
static struct client clients[MAX_CLIENTS];
static struct child *children;
static struct waiter *waiters;
static int nchildren, quit_client = -1, orphan_timer = -1, orphan_limit = -1;
static bool orphaned, is_fenced;
static uint32_t quit_request;
static uint64_t next_serial = 1;

static uint64_t read_start_time(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  char *at = strrchr(text, ')');  // the name before it may hold anything
  for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
  return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

// ---- whether anybody is there

static int count_clients(void) {
  int n = 0;
  for (int i = 0; i < MAX_CLIENTS; i++) n += clients[i].fd >= 0;
  return n;
}

// To be called when the last client has gone or the first has come. One moment on a clock that runs on while the host
// sleeps: nothing else that wakes the launcher puts it off.
static void watch_for_orphans(void) {
  struct itimerspec when = {0};
  if (orphan_limit >= 0 && count_clients() == 0) {
    when.it_value.tv_sec = orphan_limit;
    when.it_value.tv_nsec = 1;  // none at all would disarm it
  }
  timerfd_settime(orphan_timer, 0, &when, NULL);
}

// ---- answering

static void drop_client(struct client *c) {
  close(c->fd);
  in_free(&c->in);
  out_free(&c->out);
  c->fd = -1;
  if (count_clients() == 0) watch_for_orphans();
}

static void send_pending(struct client *c) {
  size_t sent = 0;
  while (sent < c->out.len) {
    ssize_t n = send(c->fd, c->out.buf + sent, c->out.len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) return drop_client(c);
    sent += (size_t)n;
  }
  memmove(c->out.buf, c->out.buf + sent, c->out.len - sent);
  c->out.len -= sent;
  if (c->out.failed || c->out.len > MAX_UNSENT) drop_client(c);  // it does not read its answers
}

static struct client *find_client(uint64_t serial) {
  for (int i = 0; i < MAX_CLIENTS; i++) {
    if (clients[i].fd >= 0 && clients[i].serial == serial) return &clients[i];
  }
  return NULL;
}

static void answer_failed(struct client *c, uint32_t request, int error, const char *step) {
  if (c == NULL) return;
  out_begin(&c->out, L_FAILED);
  put_u32(&c->out, request);
  put_u32(&c->out, (uint32_t)error);
  put_string(&c->out, step);
  out_end(&c->out);
}

static void answer_done(struct client *c, uint32_t request) {
  if (c == NULL) return;
  out_begin(&c->out, L_DONE);
  put_u32(&c->out, request);
  out_end(&c->out);
}

static void answer_started(struct client *c, const struct child *child) {
  if (c == NULL) return;
  out_begin(&c->out, L_STARTED);
  put_u32(&c->out, child->request);
  put_u32(&c->out, (uint32_t)child->guest);
  put_u64(&c->out, child->start_time);
  out_end(&c->out);
}

// ---- fencing

static void fence(struct child *child) {
  bool may_run = child->stage == RUNNING || child->stage == STARTING;
  if (may_run && child->freezer != NULL && !child->fenced) child->fenced = fence_freeze(child->freezer);
}

static void end_lease(void) {
  is_fenced = true;
  for (struct child *child = children; child != NULL; child = child->next) fence(child);
}

// Until when the worker may serve. What was frozen only because it might not goes on before this is answered.
static void take_lease(struct client *c, uint32_t request, struct cursor *p) {
  uint64_t until = take_u64(p);
  if (p->bad || !fence_at(until)) return answer_failed(c, request, EINVAL, "record");
  if (fence_has_passed()) end_lease();
  else {
    is_fenced = false;
    for (struct child *child = children; child != NULL; child = child->next) {
      if (child->fenced) fence_thaw(child->freezer);
      child->fenced = false;
    }
  }
  answer_done(c, request);
}

// ---- starting

static struct child *find_child(const char *name) {
  struct child *c = children;
  while (c != NULL && strcmp(c->name, name) != 0) c = c->next;
  return c;
}

// `fork` into a new pid namespace, and into a cgroup v2 directory when there is one: entering by clone needs no global lock.
static pid_t fork_into(uint64_t flags, int cgroup_fd) {
  struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = (uint64_t)cgroup_fd;
  }
  return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static void add_child(struct client *c, uint32_t request, const char *name, pid_t pid, int status_fd) {
  struct child *child = calloc(1, sizeof *child);
  if (child == NULL) abort();  // the process exists and must not be forgotten; the guests die with the launcher
  child->pid = child->guest = pid;
  child->listen_fd = -1;
  child->start_time = read_start_time(pid);
  child->status_fd = status_fd;
  child->client = c->serial;
  child->request = request;
  strcpy(child->name, name);
  child->next = children;
  children = child;
  nchildren++;
}

static bool name_is_free(struct client *c, uint32_t request, const char *name) {
  size_t length = strlen(name);
  int error = length == 0 || length > MAX_NAME ? EINVAL : find_child(name) != NULL ? EEXIST : nchildren >= MAX_CHILDREN ? EAGAIN : 0;
  if (error != 0) answer_failed(c, request, error, "name");
  return error == 0;
}

// Takes a v2 `cgroup.procs` out of the list and returns its directory, or -1.
static int take_cgroup2(struct start *s) {
  for (uint32_t i = 0; i < s->ncgroups; i++) {
    char *slash = strrchr(s->cgroups[i], '/');
    if (slash == NULL || strcmp(slash, "/cgroup.procs") != 0) continue;
    struct statfs fs;
    *slash = 0;
    int fd = open(s->cgroups[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC) {
      s->cgroups[i] = s->cgroups[--s->ncgroups];
      return fd;
    }
    *slash = '/';
    if (fd >= 0) close(fd);
  }
  return -1;
}

static void start(struct client *c, uint32_t request, struct cursor *payload, bool prepare) {
  static struct start s;
  int ends[2] = {-1, -1}, userns = -1, cgroup = -1;
  const char *step = "user-namespace";
  pid_t pid = -1;
  if (!parse_start(&s, payload) || payload->left != 0) return answer_failed(c, request, EINVAL, "record");
  if (!name_is_free(c, request, s.activation)) return;
  if (s.program[0] != 0 && !place_program(&s, launcher->programs_path)) return answer_failed(c, request, errno, "program");
  userns = make_user_namespace(s.uid_base, s.program[0] != 0);
  char *freezer = fence_file(s.cgroups, s.ncgroups);
  if (userns >= 0) {
    step = "fork";
    cgroup = take_cgroup2(&s);
    bool keeps = s.program[0] != 0 && !prepare;
    if (keeps && (s.listen_fd = bind_socket(s.socket_path, s.socket_uid)) < 0) step = "socket";
    else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) pid = fork_into(CLONE_NEWPID, cgroup);
  }
  if (pid == 0) {
    close(ends[0]);
    start_guest(launcher, &s, prepare, userns, ends[1]);
  }
  int error = errno;
  explicit_bzero(s.secret, sizeof s.secret);
  if (userns >= 0) close(userns);
  if (cgroup >= 0) close(cgroup);
  if (ends[1] >= 0) close(ends[1]);
  if (pid > 0) {
    add_child(c, request, s.activation, pid, ends[0]);
    children->stage = prepare ? PREPARING : STARTING;
    children->freezer = freezer;
    children->listen_fd = s.listen_fd;
    children->travels = s.program[0] != 0;
    return;
  }
  if (s.listen_fd >= 0) close(s.listen_fd);
  free(freezer);
  if (ends[0] >= 0) close(ends[0]);
  answer_failed(c, request, error, step);
}

static void forget_word(struct child *child) {
  if (child->word != NULL) explicit_bzero(child->word, sizeof *child->word);
  free(child->word);
  child->word = NULL;
}

// What the guest is to be told once it is there.
static struct claim *make_word(const struct start *s) {
  struct claim *word = calloc(1, sizeof *word);
  bool fits = word != NULL && strlen(s->activation) < sizeof word->activation && strlen(s->hostname) < sizeof word->hostname;
  if (!fits) {
    free(word);
    errno = EINVAL;
    return NULL;
  }
  strcpy(word->activation, s->activation);
  strcpy(word->hostname, s->hostname);
  memcpy(word->secret, s->secret, sizeof word->secret);
  return word;
}

static void restore(struct client *c, uint32_t request, struct cursor *payload) {
  static struct start s;
  char **argv = NULL, *images = NULL;
  int ends[2] = {-1, -1}, userns = -1, socket_fd = -1;
  const char *step = "record";
  pid_t pid = -1;
  struct claim *word = NULL;
  errno = EINVAL;
  bool parsed = parse_restore(&s, payload, &images, &argv);
  if (parsed && !name_is_free(c, request, s.activation)) return free(argv);
  if (parsed) step = "program";
  if (parsed && place_program(&s, launcher->programs_path) && (word = make_word(&s)) != NULL) {
    step = "socket";
    socket_fd = bind_socket(s.socket_path, s.socket_uid);
  }
  if (socket_fd >= 0) {
    step = "user-namespace";
    userns = make_user_namespace(s.uid_base, true);
  }
  if (userns >= 0) {
    step = "fork";
    pid = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -1 : fork_into(0, -1);
  }
  if (pid == 0) start_restorer(launcher, &s, images, argv, userns, ends[1]);
  int error = errno;
  explicit_bzero(s.secret, sizeof s.secret);
  if (userns >= 0) close(userns);
  if (ends[1] >= 0) close(ends[1]);
  free(argv);
  if (pid > 0) {
    add_child(c, request, s.activation, pid, ends[0]);
    children->stage = STARTING;
    children->freezer = fence_file(s.cgroups, s.ncgroups);
    children->word = word;
    children->listen_fd = socket_fd;
    return;
  }
  if (ends[0] >= 0) close(ends[0]);
  if (socket_fd >= 0) close(socket_fd);
  free(word);
  answer_failed(c, request, error, step);
}

static void start_program(struct client *c, uint32_t request, struct cursor *p, bool runtime) {
  struct host h = {0};
  int ends[2];
  if (!(runtime ? parse_run : parse_host)(&h, p)) answer_failed(c, request, EINVAL, "record");
  else if (name_is_free(c, request, h.name)) {
    pid_t pid = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -1 : fork_into(0, -1);
    if (pid == 0) {
      close(ends[0]);
      if (runtime) start_runtime(&h, ends[1]);
      start_host(&h, ends[1]);
    }
    if (pid < 0) answer_failed(c, request, errno, "fork");
    else {
      close(ends[1]);
      add_child(c, request, h.name, pid, ends[0]);
      children->freezer = fence_file(h.cgroups, h.ncgroups);
    }
  }
  host_free(&h);
}

static void note_failure(struct child *child, int32_t error, const char *step) {
  child->stage = FAILED;
  child->error = error;
  snprintf(child->step, sizeof child->step, "%s", step);
}

// The guest has been told, and will say whether it listens.
static bool tell_guest(struct child *child, const struct claim *word) {
  int fd = meet_traveller(child->guest, word, child->listen_fd);
  if (fd < 0) return false;
  child->status_fd = fd;
  child->meets = true;
  child->stage = STARTING;
  return true;
}

// The restorer has succeeded: what it keeps is the guest from now on.
static void note_restored(struct child *child, pid_t guest) {
  child->guest = guest;
  child->start_time = read_start_time(guest);
  bool told = tell_guest(child, child->word);
  int error = errno;
  forget_word(child);
  if (told) return;
  note_failure(child, error, "meeting");
  kill(child->pid, SIGKILL);
}

// A guest that was to go on and has not: it runs, and nobody reaches it. What becomes of it is for who asked to say.
static void note_unmet(struct child *child, int error) {
  child->stage = RUNNING;
  answer_failed(find_client(child->client), child->request, error, "meeting");
}

// A child reports: zero (or a silent end, by exec) is success, otherwise errno and step.
static void note_status(struct child *child) {
  struct report report = {0};
  ssize_t n = read(child->status_fd, &report, sizeof report);
  bool met = child->meets, prepared = child->stage == PREPARING && n > 0 && report.error == 0;
  child->meets = false;
  child->stage = prepared ? PREPARED : RUNNING;
  if (!prepared) {
    close(child->status_fd);
    child->status_fd = -1;
  }
  report.step[sizeof report.step - 1] = 0;
  if (met && child->told_again && (n <= 0 || report.error != 0)) return note_unmet(child, n <= 0 ? ECONNRESET : report.error);
  if (n >= (ssize_t)sizeof report.error && report.error != 0) return note_failure(child, report.error, report.step);
  if (child->word != NULL) {
    if (n >= (ssize_t)offsetof(struct report, step) && report.guest > 0) return note_restored(child, report.guest);
    return note_failure(child, ECHILD, "restore");
  }
  // A silent end is an exec, or a death before it (out of memory, say).
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/exe", child->pid);
  char exe;
  if (n <= 0 && (met || readlink(path, &exe, 1) < 0)) return note_failure(child, ECHILD, "died");
  answer_started(find_client(child->client), child);
  if (is_fenced) fence(child);
}

// Gives a prepared guest its identity and its socket, which only this side of its walls can bind.
static void claim(struct client *c, uint32_t request, struct cursor *p) {
  static struct claim record;
  char *spare, *socket_path;
  uint32_t socket_uid;
  if (!parse_claim(&record, p, &spare, &socket_path, &socket_uid)) return answer_failed(c, request, EINVAL, "record");
  struct child *child = find_child(spare);
  if (child == NULL || child->stage != PREPARED) return answer_failed(c, request, ESRCH, "claim");
  if (!name_is_free(c, request, record.activation)) return;
  int fd = bind_socket(socket_path, socket_uid);
  if (fd < 0) return answer_failed(c, request, errno, "socket");
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  struct iovec data = {.iov_base = &record, .iov_len = sizeof record};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  bool sent = sendmsg(child->status_fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof record;
  int error = errno;
  if (sent && child->travels) child->listen_fd = fd;
  else close(fd);
  explicit_bzero(record.secret, sizeof record.secret);
  if (!sent) return answer_failed(c, request, error, "claim");
  strcpy(child->name, record.activation);
  child->client = c->serial;
  child->request = request;
  child->stage = STARTING;
}

// A guest that let go of its socket gets it back, and stays who it is.
static void go_on(struct client *c, uint32_t request, struct cursor *p) {
  static const struct claim as_before;
  const char *name = take_string(p);
  if (p->bad || p->left != 0) return answer_failed(c, request, EINVAL, "record");
  struct child *child = find_child(name);
  if (child == NULL || child->stage != RUNNING || child->listen_fd < 0) return answer_failed(c, request, ESRCH, "go-on");
  child->client = c->serial;
  child->request = request;
  child->told_again = true;
  if (!tell_guest(child, &as_before)) answer_failed(c, request, errno, "meeting");
}

// ---- the other requests

static void kill_named(struct client *c, uint32_t request, struct cursor *p) {
  const char *name = take_string(p);
  if (p->bad) return answer_failed(c, request, EINVAL, "record");
  struct child *child = find_child(name);
  struct waiter *w = child == NULL ? NULL : malloc(sizeof *w);
  if (w == NULL) return child == NULL ? answer_done(c, request) : answer_failed(c, request, ENOMEM, "kill");
  *w = (struct waiter){.next = waiters, .client = c->serial, .request = request, .pid = child->pid};
  waiters = w;
  // Ours and not yet reaped, so the pid cannot be another's. What a restorer keeps dies with it.
  kill(child->pid, SIGKILL);
}

static void list(struct client *c, uint32_t request) {
  out_begin(&c->out, L_LISTING);
  put_u32(&c->out, request);
  put_u32(&c->out, (uint32_t)nchildren);
  for (struct child *child = children; child != NULL; child = child->next) {
    put_string(&c->out, child->name);
    put_u32(&c->out, (uint32_t)child->guest);
    put_u64(&c->out, child->start_time);
    put_u8(&c->out, child->stage == RUNNING);
  }
  out_end(&c->out);
}

static void reaped(pid_t pid, int status) {
  struct child **link = &children;
  while (*link != NULL && (*link)->pid != pid) link = &(*link)->next;
  struct child *child = *link;
  if (child == NULL) return;  // an orphan of a bridge
  *link = child->next;
  nchildren--;
  if (child->stage == STARTING || child->stage == PREPARING) note_status(child);
  else if (child->status_fd >= 0) close(child->status_fd);
  if (child->stage == FAILED) answer_failed(find_client(child->client), child->request, child->error, child->step);
  for (int i = 0; i < MAX_CLIENTS && child->stage != FAILED; i++) {
    if (clients[i].fd < 0) continue;
    out_begin(&clients[i].out, L_EXITED);
    put_string(&clients[i].out, child->name);
    put_u32(&clients[i].out, (uint32_t)pid);
    put_u32(&clients[i].out, (uint32_t)status);
    out_end(&clients[i].out);
  }
  for (struct waiter **at = &waiters; *at != NULL;) {
    struct waiter *w = *at;
    if (w->pid != pid) {
      at = &w->next;
      continue;
    }
    answer_done(find_client(w->client), w->request);
    *at = w->next;
    free(w);
  }
  forget_word(child);
  if (child->listen_fd >= 0) close(child->listen_fd);
  free(child->freezer);
  free(child);
}

static void reap_all(void) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) reaped(pid, status);
}

static void handle(struct client *c, uint8_t type, struct cursor *payload) {
  uint32_t request = take_u32(payload);
  if (payload->bad) return drop_client(c);
  switch (type) {
    case L_START: return start(c, request, payload, false);
    case L_PREPARE: return start(c, request, payload, true);
    case L_CLAIM: return claim(c, request, payload);
    case L_HOST: return start_program(c, request, payload, false);
    case L_RESTORE: return restore(c, request, payload);
    case L_GO_ON: return go_on(c, request, payload);
    case L_RUN: return start_program(c, request, payload, true);
    case L_KILL: return kill_named(c, request, payload);
    case L_LIST: return list(c, request);
    case L_LEASE: return take_lease(c, request, payload);
    case L_QUIT:
      quit_client = (int)(c - clients);
      quit_request = request;
      for (struct child *child = children; child != NULL; child = child->next) kill(child->pid, SIGKILL);
      return;
    default: return drop_client(c);
  }
}

static void serve_client(struct client *c) {
  ssize_t n = in_receive(&c->in, c->fd, MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN)) return drop_client(c);
  while (c->fd >= 0) {
    uint8_t type;
    struct cursor payload;
    int found = in_frame(&c->in, &type, &payload);
    if (found < 0) return drop_client(c);
    if (found == 0) break;
    uint8_t *begin = payload.at;
    size_t length = payload.left;
    handle(c, type, &payload);
    if (c->fd >= 0) explicit_bzero(begin, length);  // a START carries a secret; no later guest may inherit it
  }
}

static void accept_client(int listen_fd) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  bool root = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == 0;
  for (int i = 0; root && i < MAX_CLIENTS; i++) {
    if (clients[i].fd >= 0) continue;
    clients[i] = (struct client){.fd = fd, .serial = next_serial++};
    watch_for_orphans();
    return;
  }
  close(fd);
}

// No worker has been connected for the whole limit: nobody will come for what runs here.
static void end_as_orphan(void) {
  orphaned = true;
  for (struct child *child = children; child != NULL; child = child->next) kill(child->pid, SIGKILL);
}

bool launch_serve(const struct launcher *l, int listen_fd, int signal_fd, int orphan_seconds) {
  launcher = l;
  for (int i = 0; i < MAX_CLIENTS; i++) clients[i].fd = -1;
  orphan_limit = orphan_seconds;
  orphan_timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (orphan_timer < 0) return false;
  watch_for_orphans();
  static struct pollfd waits[4 + MAX_CLIENTS + MAX_CHILDREN];
  static struct child *owners[MAX_CHILDREN];
  while ((quit_client < 0 && !orphaned) || nchildren > 0) {
    int n = 0, started = 0;
    waits[n++] = (struct pollfd){.fd = listen_fd, .events = POLLIN};
    waits[n++] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    for (int i = 0; i < MAX_CLIENTS; i++) {
      waits[n++] = (struct pollfd){.fd = clients[i].fd, .events = (short)(POLLIN | (clients[i].out.len > 0 ? POLLOUT : 0))};
    }
    for (struct child *child = children; child != NULL; child = child->next) {
      if (child->stage != STARTING && child->stage != PREPARING) continue;
      owners[started++] = child;
      waits[n++] = (struct pollfd){.fd = child->status_fd, .events = POLLIN};
    }
    int timer = n;
    waits[n++] = (struct pollfd){.fd = fence_timer(), .events = POLLIN};
    int orphan = n;
    waits[n++] = (struct pollfd){.fd = orphaned ? -1 : orphan_timer, .events = POLLIN};
    if (poll(waits, (nfds_t)n, -1) < 0) continue;
    reap_holder(false);
    if (waits[timer].revents != 0 && fence_has_passed()) end_lease();
    for (int i = 0; i < started; i++) {
      if (waits[2 + MAX_CLIENTS + i].revents != 0) note_status(owners[i]);
    }
    if (waits[1].revents != 0) {
      struct signalfd_siginfo drained[8];
      while (read(signal_fd, drained, sizeof drained) > 0) continue;
      reap_all();
    }
    if (waits[0].revents != 0) accept_client(listen_fd);
    for (int i = 0; i < MAX_CLIENTS; i++) {
      if (clients[i].fd >= 0 && clients[i].fd == waits[2 + i].fd && (waits[2 + i].revents & ~POLLOUT) != 0) serve_client(&clients[i]);
      if (clients[i].fd >= 0 && clients[i].out.len > 0) send_pending(&clients[i]);
    }
    if (waits[orphan].revents != 0 && count_clients() == 0) end_as_orphan();
  }
  return quit_client >= 0;
}

void launch_say_done(void) {
  struct client *c = &clients[quit_client];
  if (c->fd < 0) return;
  answer_done(c, quit_request);
  send_pending(c);
}
