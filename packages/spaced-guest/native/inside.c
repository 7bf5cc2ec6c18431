// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// The guest's pid 1 inside a user-space kernel (gVisor). No socket can be handed in from outside, and one that the host
// has bound cannot be saved: so it is made from inside, in a folder of the host's, and unmade before each checkpoint.
//
// The folder is how the two sides meet: `identity` says who this is, at the start and after each restore; `go-on` says
// that the sandbox which stands still was not moved; `s` is the socket. What is in it is the host's disk, so no process of the user's may
// see it: all but the first thread, and every process, live in a mount namespace without it. No descriptor leads there
// either, for gVisor lets the guest's root pass through those of others in /proc. The first thread does nothing but this.
#include "common.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

enum { BACKLOG = 128, NAME_ROOM = 16 };

static const char *folder;  // NULL: not inside
static struct guest_identity identity;
static int first_socket;

// What is asked of the first thread, one at a time.
typedef int task(void *argument);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static task *asked;
static void *argument;
static int answer;

bool is_inside(void) { return folder != NULL; }

static int at_the_folder(task *what, void *with) {
  pthread_mutex_lock(&lock);
  asked = what;
  argument = with;
  pthread_cond_broadcast(&change);
  while (asked != NULL) pthread_cond_wait(&change, &lock);
  int result = answer;
  pthread_mutex_unlock(&lock);
  return result;
}

static _Noreturn void serve_tasks(void) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (asked == NULL) pthread_cond_wait(&change, &lock);
    answer = asked(argument);
    asked = NULL;
    pthread_cond_broadcast(&change);
  }
}

// ---- what the first thread does

static const char *in_folder(const char *name, char *path, size_t size) {
  snprintf(path, size, "%s/%s", folder, name);
  return path;
}

static int remove_named(void *name) {
  char path[128];
  return unlink(in_folder(name, path, sizeof path));
}

// The file: the secret, then the activation to the end. The host makes it whole under another name first.
static int take_identity(void *into) {
  struct guest_identity *next = into;
  uint8_t bytes[sizeof next->secret + MAX_ACTIVATION + 1];
  char path[128];
  int fd = open(in_folder("identity", path, sizeof path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -1;
  ssize_t n = read(fd, bytes, sizeof bytes);
  close(fd);
  size_t length = n < 0 ? 0 : (size_t)n;
  bool fits = length > sizeof next->secret && length < sizeof bytes && unlink(path) == 0;
  if (fits) {
    size_t name = length - sizeof next->secret;
    memcpy(next->secret, bytes, sizeof next->secret);
    memcpy(next->activation, bytes + sizeof next->secret, name);
    next->activation[name] = 0;
  }
  explicit_bzero(bytes, sizeof bytes);
  return fits ? 0 : -1;
}

static int make_socket(void *unused) {
  (void)unused;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  in_folder("s", address.sun_path, sizeof address.sun_path);
  unlink(address.sun_path);  // restored, it finds the folder as the host has made it
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // Nobody else makes a file while this thread does: its mask is the process's, so the mode is set after all.
  bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && chmod(address.sun_path, 0600) == 0;
  if (ok && listen(fd, BACKLOG) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

bool inside_told_to_go_on(void) { return at_the_folder(remove_named, "go-on") == 0; }
void inside_stop_listening(void) { at_the_folder(remove_named, "s"); }
bool inside_take_identity(struct guest_identity *next) { return at_the_folder(take_identity, next) == 0; }
int inside_listen(void) { return at_the_folder(make_socket, NULL); }

// ---- the start

static _Noreturn void fail(const char *step) {
  fprintf(stderr, "space-guest: %s: %s\n", step, strerror(errno));
  _exit(1);
}

// Below the mount the kernel still shows what the host's folder holds: an empty, closed folder goes over it.
static bool hide(const char *path) {
  return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && umount2(path, MNT_DETACH) == 0 &&
         mount("none", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0700") == 0;
}

// The second thread, from which all others come: the guest as everywhere else.
static void *serve_guest(void *unused) {
  (void)unused;
  if (!hide(folder)) fail("hide");
  if (!keep_guest_capabilities()) fail("capabilities");
  // Nothing of the host's stays open.
  int null = open("/dev/null", O_RDWR);
  if (null < 0) fail("null");
  for (int fd = 0; fd < 3; fd++) dup2(null, fd);
  if (null > 2) close(null);
  uint8_t secret[32];
  memcpy(secret, identity.secret, sizeof secret);
  explicit_bzero(identity.secret, sizeof identity.secret);
  guest_main(first_socket, identity.activation, secret);
}

// What is saved must hold the program too: were it a file of the host's, that could be another one at the restore.
static void become_own_copy(const char *path) {
  uint8_t bytes[64 * 1024];
  ssize_t n;
  int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), copy = memfd_create("space-guest", MFD_CLOEXEC);
  if (from < 0 || copy < 0) fail("copy");
  while ((n = read(from, bytes, sizeof bytes)) > 0) {
    if (write(copy, bytes, (size_t)n) != n) fail("copy");
  }
  close(from);
  char *argv[] = {"space-guest", "--inside-copied", (char *)path, NULL};
  syscall(SYS_execveat, copy, "", argv, environ, AT_EMPTY_PATH);
  fail("copy");
}

_Noreturn void run_inside(const char *path, bool copied) {
  struct rlimit core = {0, 0};
  sigset_t all;
  pthread_t guest;
  if (!copied) become_own_copy(path);
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  if (strlen(path) + NAME_ROOM > sizeof((struct sockaddr_un *)NULL)->sun_path) fail("folder");
  folder = path;
  setrlimit(RLIMIT_CORE, &core);
  // Not dumpable: the guest's own root can neither trace this process nor read its memory, where the secret lies.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) fail("dumpable");
  if (take_identity(&identity) < 0) fail("identity");
  first_socket = make_socket(NULL);
  if (first_socket < 0) fail("listen");
  if (pthread_create(&guest, NULL, serve_guest, NULL) != 0) fail("thread");
  if (!keep_guest_capabilities()) fail("capabilities");
  prctl(PR_SET_NAME, "space-guest");
  serve_tasks();
}
