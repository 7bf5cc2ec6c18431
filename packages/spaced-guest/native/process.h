// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
#ifndef SPACE_PROCESS_H
#define SPACE_PROCESS_H

#include "common.h"

#include <sys/types.h>

struct process {
  struct process *next;
  volatile pid_t pid;  // stored by the kernel, before the child runs
  volatile bool reaped;
  int status, pidfd, wake;
  bool pty, stdin_eof, exit_sent, lingering;
  bool detached;  // waits for ATTACH; under the lock, as are:
  int attached;   // a connection handed over by ATTACH, or -1
  volatile bool left;  // nobody knows of it: its output is dropped
  uint64_t owner_epoch;  // of the connection that owns it, or did
  int output[2];  // stdout (or the terminal) and stderr; -1 when ended
  int input;
  size_t remaining[2];  // of each output, once lingering
  int64_t exited_at;
  int64_t gather_until;  // `out` begins with STARTED and is sent by then; 0: it is sent at once
  struct out out;  // frames for the host, of which `sent` bytes are gone
  size_t sent;
  uint64_t output_sent;     // bytes of output ever sent,
  size_t output_unsent;     // and in the frames of `out`
  uint64_t stdin_received;  // bytes of STDIN ever accepted
  uint8_t *stdin_bytes;
  size_t stdin_start, stdin_len;
  uint32_t stdin_unacknowledged, stdin_taken;
  size_t stdin_unowned;  // queued by a connection that is gone: acknowledged to nobody
};

// ---- process.c

void process_free(struct process *p);
void process_put_started(struct process *p);
// Serves the process until it has exited and all is sent, or its connection ended. Whether the connection goes on.
bool process_serve(struct process *p, struct conn *c);

// ---- processes.c

void process_register(struct process *p);
void process_forget(struct process *p);
void process_kill_group(struct process *p);
void process_signal(struct process *p, int number);
// Its connection was closed by a rekey: an ATTACH may have it. It is told by `wake`, and takes what it was
// handed, if anything.
void process_offer(struct process *p);
bool process_take(struct process *p, struct conn *c);

#endif
