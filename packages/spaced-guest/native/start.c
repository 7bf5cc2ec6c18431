// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// What the launcher's children do between fork and their own main: guests, bridges, and the tools run under a guest's
// user ids.
#include "common.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { RANGE = 65536, HOLDER_STACK = 8192, BACKLOG = 128 };

_Noreturn void fail_start(int status_fd, const char *step) {
  struct report report = {.error = errno == 0 ? EIO : errno};
  strncpy(report.step, step, sizeof report.step - 1);
  ssize_t ignored = write(status_fd, &report, sizeof report);
  (void)ignored;
  _exit(1);
}

static bool write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  size_t length = strlen(text);
  bool ok = fd >= 0 && write(fd, text, length) == (ssize_t)length;
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return ok;
}

void enter_groups(char *const *cgroup_files, uint32_t count, int status_fd) {
  for (uint32_t i = 0; i < count; i++) {
    if (!write_file(cgroup_files[i], "0")) fail_start(status_fd, "cgroup");
  }
}

static bool map_range(pid_t pid, uint32_t base) {
  char path[64], map[64];
  snprintf(map, sizeof map, "0 %u %u\n", base, RANGE);
  snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
  if (!write_file(path, map)) return false;
  snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
  return write_file(path, map);
}

static int hold(void *unused) {
  (void)unused;
  for (;;) pause();
  return 0;
}

static pid_t holder;  // killed, and perhaps not yet reaped

void reap_holder(bool wait) {
  int error = errno;
  pid_t reaped = 0;
  while (holder != 0 && (reaped = waitpid(holder, NULL, __WALL | (wait ? 0 : WNOHANG))) < 0 && errno == EINTR) continue;
  if (reaped != 0) holder = 0;
  errno = error;
}

// The kernel counts what a namespace's processes hold (inotify instances, pending signals, locked memory) against the
// user who made it too: were that root, one guest could use up what all others and the host may have. So the user is the
// guest's own root. Rights stay, as some hosts let nobody without them make a user namespace.
static pid_t clone_holder(uint32_t owner) {
  static uint8_t stack[HOLDER_STACK] __attribute__((aligned(16)));
  int bits = prctl(PR_GET_SECUREBITS);
  if (bits < 0 || prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP) < 0) return -1;
  pid_t made = -1;
  if (syscall(SYS_setresuid, -1, owner, -1) == 0) {
    made = clone(hold, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER, NULL);
    int error = errno;
    if (syscall(SYS_setresuid, -1, 0, -1) < 0) abort();
    errno = error;
  }
  int error = errno;
  // A change of user id may have made this memory dumpable.
  if (prctl(PR_SET_SECUREBITS, bits) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0) abort();
  errno = error;
  return made;
}

// CRIU needs this right over what it saves. Root that has not got it (a container's) has it over namespaces of its own.
static bool may_set_limits(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & 1U << CAP_SYS_RESOURCE) != 0;
}

int make_user_namespace(uint32_t base, bool is_saved) {
  // The holder shares this memory (no page tables are copied) and sleeps until it is killed. It sends no signal when it
  // has ended, so nobody else reaps it; its end is not waited for, only that of the one before, whose stack this was.
  reap_holder(true);
  pid_t made = clone_holder(is_saved && !may_set_limits() ? 0 : base);
  if (made < 0) return -1;
  holder = made;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/user", holder);
  int fd = map_range(holder, base) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  int error = errno;
  kill(holder, SIGKILL);
  errno = error;
  return fd;
}

bool make_dev_template(const char *path) {
  static const struct {
    const char *name;
    unsigned minor_number, major_number;
  } nodes[] = {{"null", 3, 1}, {"zero", 5, 1}, {"full", 7, 1}, {"random", 8, 1}, {"urandom", 9, 1}, {"tty", 0, 5}};
  static const char *const links[][2] = {{"/proc/self/fd", "fd"},         {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
                                         {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}};
  umask(0);
  if (mkdir(path, 0700) < 0 && errno != EEXIST) return false;
  if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=32") < 0) return false;
  int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool ok = dir >= 0 && mkdirat(dir, "pts", 0755) == 0 && mkdirat(dir, "shm", 0755) == 0;
  for (size_t i = 0; ok && i < sizeof nodes / sizeof *nodes; i++) {
    ok = mknodat(dir, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major_number, nodes[i].minor_number)) == 0;
  }
  for (size_t i = 0; ok && i < sizeof links / sizeof *links; i++) ok = symlinkat(links[i][0], dir, links[i][1]) == 0;
  if (dir >= 0) close(dir);
  return ok;
}

// Standard input, output and error become the given file; every other descriptor is closed but the kept ones, which
// move to 3, 4, ... in their order.
void keep_descriptors(int standard, int *kept[], int n) {
  int moved[4];
  // First above all targets, so that no move overwrites a source.
  for (int i = 0; i < n; i++) moved[i] = fcntl(*kept[i], F_DUPFD, 64);
  int std = fcntl(standard, F_DUPFD, 64);
  for (int i = 0; i < 3; i++) dup2(std, i);
  for (int i = 0; i < n; i++) {
    dup3(moved[i], 3 + i, O_CLOEXEC);
    *kept[i] = 3 + i;
  }
  syscall(SYS_close_range, 3 + n, ~0U, 0);
}

int bind_socket(const char *path, uint32_t uid) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  umask(0177);
  bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && chown(path, uid, (gid_t)-1) == 0;
  int error = errno;
  umask(022);
  if (ok) return fd;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

bool raise_loopback(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  if (fd >= 0) close(fd);
  // The network namespace is not the guest's own, so its root could bind no low port without this.
  return ok && write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

void unblock_signals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

// Returns the listening socket that came with the claim. Without a claim (the launcher has died) there is nothing to be.
static int await_claim(int status_fd, struct claim *claim) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control;
  struct iovec data = {.iov_base = claim, .iov_len = sizeof *claim};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  int32_t prepared = 0;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || write(status_fd, &prepared, sizeof prepared) != sizeof prepared) _exit(1);
  ssize_t n = recvmsg(status_fd, &message, MSG_CMSG_CLOEXEC);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (n != (ssize_t)sizeof *claim || header == NULL || header->cmsg_type != SCM_RIGHTS) _exit(0);
  int fd;
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

_Noreturn void start_guest(const struct launcher *l, struct start *s, bool prepared, int userns_fd, int status_fd) {
  static struct claim claim;
  if (prepared) {  // it may wait for long: nothing of the launcher's stays open in it
    int *held[] = {&userns_fd, &status_fd}, none = open("/dev/null", O_RDWR);
    if (none < 0) fail_start(status_fd, "null");
    keep_descriptors(none, held, 2);
  }
  enter_groups(s->cgroups, s->ncgroups, status_fd);
  // Still in the host's network namespace: the host finds the socket in its /proc/net/unix, and the guest does not.
  int listen_fd = prepared || s->listen_fd >= 0 ? s->listen_fd : bind_socket(s->socket_path, s->socket_uid);
  if (!prepared && listen_fd < 0) fail_start(status_fd, "socket");
  bool traveller = s->program[0] != 0;
  int others = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  if (unshare(CLONE_NEWNS | (traveller ? 0 : others)) < 0) fail_start(status_fd, "namespaces");
  if (!traveller && !raise_loopback()) fail_start(status_fd, "loopback");
  int boot_id_fd = confine_mounts(s, l->dev_path, userns_fd, status_fd);
  if (traveller) {
    confine_identity(userns_fd, status_fd);
    own_namespaces(status_fd);
  }
  if (prepared) {
    listen_fd = await_claim(status_fd, &claim);
    s->activation = claim.activation;
    s->hostname = claim.hostname;
    s->boot_id = claim.boot_id;
    s->file_bytes = claim.file_bytes;
    memcpy(s->secret, claim.secret, sizeof s->secret);
  }
  confine_names(s, boot_id_fd, status_fd);
  if (traveller) {
    confine_privileges(l, s, status_fd);
    become_traveller(s, listen_fd, status_fd);
  }
  int null = open("/dev/null", O_RDWR);
  if (null < 0) fail_start(status_fd, "null");
  int *kept[] = {&listen_fd, &userns_fd, &status_fd};
  keep_descriptors(null, kept, 3);
  confine_identity(userns_fd, status_fd);
  close(userns_fd);
  // Listening from here on, as this identity: SO_PEERCRED on the other end shows this pid and the guest's mapped root.
  if (listen(listen_fd, BACKLOG) < 0) fail_start(status_fd, "listen");
  confine_privileges(l, s, status_fd);
  memset(l->title, 0, l->title_length);  // what /proc/1/cmdline shows
  strncpy(l->title, "space-guest", l->title_length - 1);
  prctl(PR_SET_NAME, "space-guest");
  // After the last change of credentials, which would clear it. If the launcher has died before, the pipe tells.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail_start(status_fd, "death-signal");
  int32_t ready = 0;
  if (write(status_fd, &ready, sizeof ready) != sizeof ready) _exit(1);
  close(status_fd);
  uint8_t secret[32];
  memcpy(secret, s->secret, sizeof secret);
  guest_main(listen_fd, s->activation, secret);
}

// An archive is a guest's work: whatever a crafted one makes the archiver do, it writes only under the working directory.
// Best effort (Landlock, Linux 5.19): the user ids confine it too.
static void confine_writes(void) {
  const uint64_t writes = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                          LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                          LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                          LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;  // REFER: hard links
  struct landlock_ruleset_attr rules = {.handled_access_fs = writes};
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
  if (ruleset < 0) return;
  const char *const allowed[] = {".", "/dev/null"};
  for (int i = 0; i < 2; i++) {
    int fd = open(allowed[i], O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.allowed_access = i == 0 ? writes : LANDLOCK_ACCESS_FS_WRITE_FILE, .parent_fd = fd};
    if (fd < 0 || syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0) return;
    close(fd);
  }
  syscall(SYS_landlock_restrict_self, ruleset, 0);
  close(ruleset);
}

// `spaced-launch --in-user-namespace BASE COMMAND...`: for archiving a guest's layer under the guest's own user ids. It
// reads and writes only what the range owns, and what everyone may.
void run_in_user_namespace(uint32_t base, char **argv) {
  int userns = make_user_namespace(base, false);
  reap_holder(true);
  if (userns < 0 || setns(userns, CLONE_NEWUSER) < 0 || setgroups(0, NULL) < 0) return;
  if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0) return;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  confine_writes();
  execvp(argv[0], argv);
}
