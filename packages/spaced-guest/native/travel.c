// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// A guest that travels: CRIU saves its processes with all their memory and restores them elsewhere, pid 1 among them.
//
// CRIU opens what a process has open by its path in the guest's own tree, and makes the namespaces of a restored one inside
// its user namespace. So here pid 1 executes a program that the tree has, and the namespaces are the guest's from the
// beginning: no process of it ever holds the capability that this gives meaning to. Before it is saved, pid 1 lets go of
// every connection and of its socket, and waits at its meeting socket for the word of who it is from then on. That socket
// is in the guest's network, so anybody there may connect: heard is only who is outside its pid namespace.
#include "common.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { BACKLOG = 128, MEETING_BACKLOG = 8, WORD_SECONDS = 5, LISTEN_FD = 3, STATUS_FD = 4, IDENTITY_FD = 5 };

static const char meeting_name[] = "space-guest-meeting";
static int meeting = -1;
static int answer_fd = -1;

bool travels(void) { return meeting >= 0; }

static socklen_t meeting_address(struct sockaddr_un *address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy(address->sun_path + 1, meeting_name, sizeof meeting_name - 1);  // abstract: in the network namespace, not in the tree
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof meeting_name);
}

static bool make_meeting(void) {
  struct sockaddr_un address;
  socklen_t length = meeting_address(&address);
  meeting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return meeting >= 0 && bind(meeting, (struct sockaddr *)&address, length) == 0 && listen(meeting, MEETING_BACKLOG) == 0;
}

// ---- the start

static bool copy_file(const char *from, const char *to) {
  char bytes[64 * 1024];
  ssize_t n = -1;
  int source = open(from, O_RDONLY | O_CLOEXEC), copy = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  while (source >= 0 && copy >= 0 && (n = read(source, bytes, sizeof bytes)) > 0) {
    if (write(copy, bytes, (size_t)n) != n) break;
  }
  bool ok = n == 0 && fchmod(copy, 0755) == 0;
  int error = errno;
  if (source >= 0) close(source);
  if (copy >= 0) close(copy);
  errno = error;
  return ok;
}

bool place_program(struct start *s, const char *programs_path) {
  static char place[PATH_MAX], part[PATH_MAX];
  errno = EINVAL;
  if (s->nbinds == 0) return false;
  char **source = &s->binds[s->nbinds - 1].source;
  const char *slash = strrchr(*source, '/');
  if (slash == NULL) return false;
  snprintf(place, sizeof place, "%s%s", programs_path, slash);
  snprintf(part, sizeof part, "%s/part", programs_path);
  bool there = access(place, X_OK) == 0 || (copy_file(*source, part) && rename(part, place) == 0);
  *source = place;
  return there;
}

void own_namespaces(int status_fd) {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0) fail_start(status_fd, "namespaces");
  if (!raise_loopback()) fail_start(status_fd, "loopback");
}

_Noreturn void become_traveller(const struct start *s, int listen_fd, int status_fd) {
  struct guest_identity identity = {0};
  int file = memfd_create("identity", MFD_CLOEXEC);
  if (strlen(s->activation) > MAX_ACTIVATION) errno = EINVAL, fail_start(status_fd, "activation");
  strcpy(identity.activation, s->activation);
  memcpy(identity.secret, s->secret, sizeof identity.secret);
  if (file < 0 || write(file, &identity, sizeof identity) != sizeof identity) fail_start(status_fd, "identity");
  explicit_bzero(&identity, sizeof identity);
  int *kept[] = {&listen_fd, &status_fd, &file};
  int null = open("/dev/null", O_RDWR);
  if (null < 0) fail_start(status_fd, "null");
  keep_descriptors(null, kept, 3);  // to LISTEN_FD and so on
  for (int fd = LISTEN_FD; fd <= IDENTITY_FD; fd++) fcntl(fd, F_SETFD, 0);
  char *argv[] = {"space-guest", "--travel", NULL}, *envp[] = {NULL};
  execve(s->program, argv, envp);
  fail_start(STATUS_FD, "program");
}

_Noreturn void run_traveller(int argc, char **argv) {
  static struct guest_identity identity;
  int32_t ready = 0;
  for (int fd = LISTEN_FD; fd <= IDENTITY_FD; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
  // The guest's own root can neither trace this process nor read its memory, where the secret lies: it has not this.
  if (!keep_distinction()) fail_start(STATUS_FD, "capabilities");
  if (pread(IDENTITY_FD, &identity, sizeof identity, 0) != sizeof identity) fail_start(STATUS_FD, "identity");
  close(IDENTITY_FD);
  for (int i = 1; i < argc; i++) memset(argv[i], 0, strlen(argv[i]));  // what /proc/1/cmdline shows
  prctl(PR_SET_NAME, "space-guest");
  if (setsid() < 0 || !make_meeting()) fail_start(STATUS_FD, "meeting");
  if (listen(LISTEN_FD, BACKLOG) < 0) fail_start(STATUS_FD, "listen");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail_start(STATUS_FD, "death-signal");
  if (write(STATUS_FD, &ready, sizeof ready) != sizeof ready) _exit(1);
  close(STATUS_FD);
  uint8_t secret[32];
  memcpy(secret, identity.secret, sizeof secret);
  explicit_bzero(identity.secret, sizeof identity.secret);
  guest_main(LISTEN_FD, identity.activation, secret);
}

// ---- standing still, and the word that ends it

// The word: a claim whose activation is empty where the guest stays who it was, with its socket beside it.
static int hear_word(int fd, struct claim *word) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control;
  struct ucred peer;
  socklen_t length = sizeof peer;
  struct timeval limit = {.tv_sec = WORD_SECONDS};
  struct iovec data = {.iov_base = word, .iov_len = sizeof *word};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  // Whoever is in this pid namespace has a number in it.
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid != 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (n != (ssize_t)sizeof *word || header == NULL || header->cmsg_type != SCM_RIGHTS) return -1;
  int socket_fd;
  memcpy(&socket_fd, CMSG_DATA(header), sizeof socket_fd);
  return socket_fd;
}

int travel_meet(int children, struct guest_identity *next, bool *restored) {
  static struct claim word;
  // CRIU looks at it from inside its user namespace. The processes that it started took this from it, with their memory
  // still its own; who may trace it is said by its capabilities.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  for (;;) {
    struct pollfd waits[] = {{.fd = meeting, .events = POLLIN}, {.fd = children, .events = POLLIN}};
    if (poll(waits, 2, -1) < 0) continue;
    if (waits[1].revents != 0) return -1;
    int fd = accept4(meeting, NULL, NULL, SOCK_CLOEXEC);
    int socket_fd = fd < 0 ? -1 : hear_word(fd, &word);
    if (socket_fd >= 0) {
      *restored = word.activation[0] != 0;
      strcpy(next->activation, word.activation);
      memcpy(next->secret, word.secret, sizeof next->secret);
      explicit_bzero(&word, sizeof word);
      answer_fd = fd;
      return socket_fd;
    }
    if (fd >= 0) close(fd);
  }
}

void travel_answer(bool listens) {
  struct report report = {.error = listens ? 0 : errno == 0 ? EIO : errno, .step = "listen"};
  ssize_t ignored = send(answer_fd, &report, sizeof report, MSG_NOSIGNAL);
  (void)ignored;
  close(answer_fd);
  answer_fd = -1;
}

// ---- the launcher's side

static int open_namespace(pid_t pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

static bool name_host(pid_t guest, const char *hostname) {
  int theirs = open_namespace(guest, "uts"), ours = open_namespace(getpid(), "uts");
  bool ok = theirs >= 0 && ours >= 0 && setns(theirs, CLONE_NEWUTS) == 0;
  if (ok) {
    ok = sethostname(hostname, strlen(hostname)) == 0;
    if (setns(ours, CLONE_NEWUTS) < 0) abort();  // every guest after this one would be in its namespace
  }
  if (theirs >= 0) close(theirs);
  if (ours >= 0) close(ours);
  return ok;
}

static int connect_meeting(pid_t guest) {
  struct sockaddr_un address;
  socklen_t length = meeting_address(&address);
  int theirs = open_namespace(guest, "net"), ours = open_namespace(getpid(), "net"), fd = -1;
  if (theirs >= 0 && ours >= 0 && setns(theirs, CLONE_NEWNET) == 0) {
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0 ? errno : 0;
    if (setns(ours, CLONE_NEWNET) < 0) abort();  // as above
    if (error != 0 && fd >= 0) close(fd), fd = -1;
    errno = error;
  }
  int error = errno;
  if (theirs >= 0) close(theirs);
  if (ours >= 0) close(ours);
  errno = error;
  return fd;
}

int meet_traveller(pid_t guest, const struct claim *next, int socket_fd) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control = {.header = {.cmsg_len = CMSG_LEN(sizeof socket_fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &socket_fd, sizeof socket_fd);
  struct iovec data = {.iov_base = (void *)next, .iov_len = sizeof *next};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (next->hostname[0] != 0 && !name_host(guest, next->hostname)) return -1;
  int fd = connect_meeting(guest);
  if (fd < 0) return -1;
  bool is_guest = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid == guest;
  errno = is_guest ? 0 : EPERM;  // somebody else took its name
  if (is_guest && sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *next) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// ---- the restorer, and what takes its place

// What is to be in the shared memory before any process is restored that has it open: `shm.tar`, if there is one.
static void fill_shm(const char *folder, int images, uint32_t uid_base, int status_fd) {
  char *argv[] = {"/usr/bin/tar",   "--extract",          "--numeric-owner", "--xattrs", "--xattrs-include=user.*",
                  "--same-owner", "--same-permissions", "--file=-",        NULL};
  int status = -1, file = openat(images, "shm.tar", O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return;
  pid_t pid = file < 0 ? -1 : fork();
  if (pid == 0) {
    if (dup2(file, 0) == 0 && chdir(folder) == 0) run_in_user_namespace(uid_base, argv);
    _exit(1);
  }
  if (pid < 0) fail_start(status_fd, "shared-memory");
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  errno = EIO;
  if (status != 0) fail_start(status_fd, "shared-memory");
  close(file);
}

_Noreturn void start_restorer(const struct launcher *l, struct start *s, const char *images, char **argv, int userns_fd, int status_fd) {
  enter_groups(s->cgroups, s->ncgroups, status_fd);
  if (unshare(CLONE_NEWNS | CLONE_NEWCGROUP) < 0) fail_start(status_fd, "namespaces");
  int folder = open(images, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_start(status_fd, "images");
  const char *shm = stage_mounts(s, l, userns_fd, images, status_fd);
  unblock_signals();
  fill_shm(shm, folder, s->uid_base, status_fd);
  int *kept[] = {&status_fd};
  int null = open("/dev/null", O_RDWR);
  if (null < 0) fail_start(status_fd, "null");
  keep_descriptors(null, kept, 1);
  fcntl(status_fd, F_SETFD, 0);
  if (setsid() < 0 || chdir("/") < 0) fail_start(status_fd, "session");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail_start(status_fd, "death-signal");
  umask(077);
  signal(SIGPIPE, SIG_DFL);
  char *envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
  execve(argv[0], argv, envp);
  fail_start(status_fd, "exec");
}

// CRIU runs this after each of its steps. A guest's loopback is up before anything of it is restored.
int restore_hook(void) {
  const char *action = getenv("CRTOOLS_SCRIPT_ACTION"), *pid = getenv("CRTOOLS_INIT_PID");
  if (action == NULL || strcmp(action, "post-setup-namespaces") != 0) return 0;
  int fd = pid == NULL ? -1 : open_namespace((pid_t)strtol(pid, NULL, 10), "net");
  return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && raise_loopback() ? 0 : 1;
}

static pid_t read_pid(const char *path) {
  char text[16] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  return n <= 0 ? -1 : (pid_t)strtol(text, NULL, 10);
}

_Noreturn void keep_restored(const char *pid_file) {
  struct report report = {.guest = read_pid(pid_file)};
  int status;
  if (report.guest <= 0) report.error = ESRCH;
  if (write(LISTEN_FD, &report, sizeof report) != sizeof report || report.error != 0) _exit(1);
  syscall(SYS_close_range, 0, ~0U, 0);
  while (waitpid(report.guest, &status, 0) < 0) {
    if (errno != EINTR) _exit(1);
  }
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  signal(WTERMSIG(status), SIG_DFL);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}
