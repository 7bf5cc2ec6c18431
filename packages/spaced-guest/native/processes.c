// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// All processes of the guest that were started from outside: reaping them, and ATTACH, which hands one on to another
// connection after a rekey.
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "process.h"

enum { DETACH_SECONDS = 2 };  // how long an ATTACH waits for a process's thread to notice the rekey

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;  // a process was detached, or is no more
static struct process *processes;

static void wake(struct process *p) {
  uint64_t one = 1;
  ssize_t ignored = write(p->wake, &one, sizeof one);
  (void)ignored;
}

void process_reap(void) {
  int status;
  pid_t pid;
  pthread_mutex_lock(&lock);
  while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
    for (struct process *p = processes; p != NULL; p = p->next) {
      // The kernel stores p->pid before the child runs its first instruction, so no exit can come too early.
      if (!p->reaped && p->pid == pid) {
        p->status = status;
        p->reaped = true;
        if (p->pidfd < 0) wake(p);
      }
    }
  }
  pthread_mutex_unlock(&lock);
}

void process_kill_group(struct process *p) {
  pthread_mutex_lock(&lock);
  // Its own group, which no stranger can join; and no pid is reused before the reaper, under this lock, lets it go.
  if (!p->reaped) kill(-p->pid, SIGKILL);
  pthread_mutex_unlock(&lock);
}

void process_signal(struct process *p, int number) {
  pthread_mutex_lock(&lock);
  if (!p->reaped) kill(p->pid, number);
  pthread_mutex_unlock(&lock);
}

void process_register(struct process *p) {
  pthread_mutex_lock(&lock);
  p->next = processes;
  processes = p;
  pthread_mutex_unlock(&lock);
}

void process_forget(struct process *p) {
  pthread_mutex_lock(&lock);
  struct process **link = &processes;
  while (*link != p) link = &(*link)->next;
  *link = p->next;
  int handed = p->attached;  // a connection that came too late
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
  if (handed >= 0) close(handed);
}

void process_offer(struct process *p) {
  pthread_mutex_lock(&lock);
  p->detached = true;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
}

bool process_take(struct process *p, struct conn *c) {
  uint64_t count;
  ssize_t ignored = read(p->wake, &count, sizeof count);
  (void)ignored;
  pthread_mutex_lock(&lock);
  bool handed = c->fd < 0 && p->attached >= 0;
  if (handed) {
    conn_hold(c, p->attached, p->owner_epoch);
    p->attached = -1;
  }
  pthread_mutex_unlock(&lock);
  return handed;
}

void process_forsake_waiting(void) {
  pthread_mutex_lock(&lock);
  for (struct process *p = processes; p != NULL; p = p->next) {
    if (!p->detached) continue;
    p->left = true;
    wake(p);
  }
  pthread_mutex_unlock(&lock);
}

void process_wake_all(void) {
  pthread_mutex_lock(&lock);
  for (struct process *p = processes; p != NULL; p = p->next) wake(p);
  pthread_mutex_unlock(&lock);
}

// Under the lock: the process of this pid that waits for an owner, or else one that is about to.
static struct process *find(uint32_t pid, uint64_t epoch) {
  struct process *about_to = NULL;
  for (struct process *p = processes; p != NULL; p = p->next) {
    if ((uint32_t)p->pid != pid) continue;
    if (p->detached) return p;
    if (p->owner_epoch != epoch) about_to = p;  // the rekey has closed its connection
  }
  return about_to;
}

bool process_attach(struct conn *c, struct cursor *payload) {
  uint32_t pid = take_u32(payload);
  if (payload->bad) return false;
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += DETACH_SECONDS;
  pthread_mutex_lock(&lock);
  struct process *p = find(pid, c->epoch);
  while (p != NULL && !p->detached && pthread_cond_timedwait(&change, &lock, &limit) == 0) p = find(pid, c->epoch);
  bool handed = p != NULL && p->detached;
  if (handed) {
    p->owner_epoch = c->epoch;
    p->attached = conn_release(c);
    p->detached = p->left = false;
    wake(p);
  }
  pthread_mutex_unlock(&lock);
  return handed ? false : conn_error(c, ESRCH, "attach");
}
