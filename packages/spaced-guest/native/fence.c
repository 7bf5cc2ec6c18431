// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// The deadline until which a worker may serve. A worker daemon that stands still cannot freeze its guests, so the
// launcher does, on a clock that runs on while the host sleeps.
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>

static int timer_fd = -1;
static uint64_t deadline;  // CLOCK_BOOTTIME, nanoseconds; 0: nobody has said any, and nothing is fenced

static uint64_t boot_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int fence_timer(void) {
  if (timer_fd < 0) timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  return timer_fd;
}

// Sets when `fence_timer` becomes readable. A moment that has passed makes it so at once.
bool fence_at(uint64_t at) {
  struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)}};
  if (at == 0 || timerfd_settime(fence_timer(), TFD_TIMER_ABSTIME, &when, NULL) < 0) return false;
  deadline = at;
  return true;
}

bool fence_has_passed(void) {
  uint64_t expirations;
  while (read(timer_fd, &expirations, sizeof expirations) > 0) continue;
  return deadline != 0 && boot_time() >= deadline;
}

// The file that freezes a guest's control group: of cgroup v2, or else of the freezer of v1. NULL where there is none.
char *fence_file(char *const *cgroup_files, uint32_t count) {
  static const char *const names[] = {"cgroup.freeze", "freezer.state"};
  for (int kind = 0; kind < 2; kind++) {
    for (uint32_t i = count; i-- > 0;) {  // where hosts have both versions, the one that freezes comes last
      const char *slash = strrchr(cgroup_files[i], '/');
      char *path;
      if (slash == NULL || asprintf(&path, "%.*s/%s", (int)(slash - cgroup_files[i]), cgroup_files[i], names[kind]) < 0) continue;
      if (access(path, W_OK) == 0) return path;
      free(path);
    }
  }
  return NULL;
}

static bool is_version1(const char *file) {
  return strcmp(strrchr(file, '/'), "/freezer.state") == 0;
}

// Whether it was this call that froze it: what a pause has frozen stays frozen when the lease is back.
bool fence_freeze(const char *file) {
  char state = 0;
  int fd = open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  bool runs = read(fd, &state, 1) == 1 && (is_version1(file) ? state == 'T' : state == '0');
  bool done = runs && (is_version1(file) ? pwrite(fd, "FROZEN", 6, 0) == 6 : pwrite(fd, "1", 1, 0) == 1);
  close(fd);
  return done;
}

void fence_thaw(const char *file) {
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;  // the group is gone, and its guest with it
  ssize_t written = is_version1(file) ? write(fd, "THAWED", 6) : write(fd, "0", 1);
  (void)written;
  close(fd);
}
