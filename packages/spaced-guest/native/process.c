// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// One process, its pipes or terminal, and the connection that owns it, served by one thread.
#include "common.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

#include "process.h"

enum {
  STDIN_WINDOW = 256 * 1024,
  PIPE_CHUNK = 32 * 1024,
  PTY_CHUNK = 16 * 1024,
  LINGER_MS = 100,              // output is awaited this long after the exit while a child holds the pipes
  DETACHED_MS = 10 * 60 * 1000,  // and an exit this long for somebody to attach
  GATHER_MS = 4                 // what a process does so soon after its start leaves in one piece with STARTED
};

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int milliseconds_until(int64_t moment) {
  int64_t left = moment - now_ms();
  return left < 0 ? 0 : (int)left;
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void process_free(struct process *p) {
  process_forget(p);
  for (int i = 0; i < 2; i++) close_fd(&p->output[i]);
  close_fd(&p->input);
  close_fd(&p->pidfd);
  close_fd(&p->wake);
  free(p->stdin_bytes);
  out_free(&p->out);
  free(p);
}

// ---- from the host

static bool queue_stdin(struct process *p, struct cursor *bytes) {
  if (bytes->left > STDIN_WINDOW - p->stdin_unacknowledged) return false;
  p->stdin_unacknowledged += bytes->left;
  p->stdin_received += bytes->left;
  if (p->input < 0 || p->stdin_eof) {
    p->stdin_taken += bytes->left;
    return true;
  }
  if (p->stdin_start > 0) {
    memmove(p->stdin_bytes, p->stdin_bytes + p->stdin_start, p->stdin_len);
    p->stdin_start = 0;
  }
  uint8_t *larger = realloc(p->stdin_bytes, p->stdin_len + bytes->left + 1);
  if (larger == NULL) return false;
  p->stdin_bytes = larger;
  memcpy(larger + p->stdin_len, bytes->at, bytes->left);
  p->stdin_len += bytes->left;
  return true;
}

static bool from_host(struct process *p, uint8_t type, struct cursor *payload) {
  switch (type) {
    case FR_STDIN: return queue_stdin(p, payload);
    case FR_STDIN_EOF: p->stdin_eof = !p->pty; return true;
    case FR_SIGNAL: {
      uint32_t number = take_u32(payload);
      if (!payload->bad) process_signal(p, (int)number);
      return !payload->bad;
    }
    case FR_RESIZE: {
      struct winsize size = {0};  // read in statements: initialisers have no order
      size.ws_col = take_u16(payload);
      size.ws_row = take_u16(payload);
      if (p->pty && p->output[0] >= 0 && !payload->bad) ioctl(p->output[0], TIOCSWINSZ, &size);
      return !payload->bad;
    }
    default: return false;
  }
}

static bool receive(struct process *p, struct conn *c) {
  for (;;) {
    uint8_t type;
    struct cursor payload;
    int found = in_frame(&c->in, &type, &payload);
    if (found < 0 || (found > 0 && !from_host(p, type, &payload))) return false;
    if (found > 0) continue;
    ssize_t n = in_receive(&c->in, c->fd, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
  }
}

// ---- to the process

static void feed_stdin(struct process *p) {
  while (p->input >= 0 && p->stdin_len > 0) {
    ssize_t n = write(p->input, p->stdin_bytes + p->stdin_start, p->stdin_len);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    size_t taken = n < 0 ? p->stdin_len : (size_t)n;  // EPIPE: the process closed its end, the rest is dropped
    p->stdin_start += taken;
    p->stdin_len -= taken;
    size_t unowned = taken < p->stdin_unowned ? taken : p->stdin_unowned;
    p->stdin_unowned -= unowned;
    p->stdin_taken += taken - unowned;
    if (n < 0 && !p->pty) close_fd(&p->input);
    if (n < 0) break;
  }
  if (p->stdin_len == 0 && p->stdin_bytes != NULL) {
    free(p->stdin_bytes);
    p->stdin_bytes = NULL;
    p->stdin_start = 0;
  }
  if (p->stdin_eof && p->stdin_len == 0) close_fd(&p->input);
}

// ---- to the host

static bool flush(struct process *p, struct conn *c) {
  while (p->sent < p->out.len) {
    ssize_t n = send(c->fd, p->out.buf + p->sent, p->out.len - p->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    p->sent += (size_t)n;
  }
  p->sent = p->out.len = 0;
  p->output_sent += p->output_unsent;
  p->output_unsent = 0;
  if (p->stdin_taken > 0) {
    out_begin(&p->out, FR_STDIN_TAKEN);
    put_u32(&p->out, p->stdin_taken);
    out_end(&p->out);
    p->stdin_unacknowledged -= p->stdin_taken;
    p->stdin_taken = 0;
    return flush(p, c);
  }
  return true;
}

// One read of one output. Only called with an empty send buffer, or while it gathers: a slow host thus slows the process.
static void read_output(struct process *p, int which) {
  size_t wanted = p->pty ? PTY_CHUNK : PIPE_CHUNK;
  if (p->lingering && p->remaining[which] < wanted) wanted = p->remaining[which];
  if (wanted == 0) {
    close_fd(&p->output[which]);
    return;
  }
  out_begin(&p->out, p->pty ? FR_PTY : which == 0 ? FR_STDOUT : FR_STDERR);
  uint8_t *room = out_room(&p->out, wanted);
  if (room == NULL) {
    p->out.failed = false;
    p->out.len = p->out.frame;
    return;
  }
  ssize_t n = read(p->output[which], room, wanted);
  int error = errno;
  if (n > 0) {
    p->out.len -= wanted - (size_t)n;
    out_end(&p->out);
    p->output_unsent += (size_t)n;
    if (p->lingering) p->remaining[which] -= (size_t)n;
    return;
  }
  p->out.len = p->out.frame;  // what precedes is whole
  // A terminal ends with EIO when its last slave is closed.
  if (n == 0 || (error != EAGAIN && error != EINTR)) close_fd(&p->output[which]);
}

// A child of the dead process still holds its pipes: what it has written by now is sent, no more.
static void linger(struct process *p) {
  p->lingering = true;
  for (int i = 0; i < 2; i++) {
    int available = 0;
    if (p->output[i] < 0) continue;
    if (ioctl(p->output[i], FIONREAD, &available) < 0 || available <= 0) close_fd(&p->output[i]);
    else p->remaining[i] = (size_t)available;
  }
}

static void put_exit(struct process *p) {
  bool signalled = WIFSIGNALED(p->status);
  out_begin(&p->out, FR_EXITED);
  put_u8(&p->out, signalled);
  put_u32(&p->out, (uint32_t)(signalled ? WTERMSIG(p->status) : WEXITSTATUS(p->status)));
  out_end(&p->out);
  p->exit_sent = true;
}

enum waits { W_CONN, W_OUT, W_ERR, W_IN, W_PID, W_WAKE, W_COUNT };

// Whether the send buffer takes more: it is empty, or it gathers what comes right after the start.
static bool takes_more(const struct process *p) { return p->out.len == 0 || (p->gather_until != 0 && p->out.len < PIPE_CHUNK); }

static int set_waits(struct process *p, struct conn *c, struct pollfd w[W_COUNT]) {
  bool idle = takes_more(p), attached = c->fd >= 0;
  for (int i = 0; i < W_COUNT; i++) w[i] = (struct pollfd){.fd = -1};
  w[W_CONN] = (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | (idle ? 0 : POLLOUT))};
  if (idle && (attached || p->left)) {
    w[W_OUT] = (struct pollfd){.fd = p->output[0], .events = POLLIN};
    w[W_ERR] = (struct pollfd){.fd = p->output[1], .events = POLLIN};
  }
  if (p->stdin_len > 0) w[W_IN] = (struct pollfd){.fd = p->input, .events = POLLOUT};
  if (p->exited_at == 0) w[W_PID] = (struct pollfd){.fd = p->pidfd, .events = POLLIN};
  w[W_WAKE] = (struct pollfd){.fd = p->wake, .events = POLLIN};
  if (p->gather_until != 0) return milliseconds_until(p->gather_until);
  if (p->exited_at == 0) return -1;
  if (attached && (p->lingering || !idle)) return -1;
  return milliseconds_until(p->exited_at + (attached ? LINGER_MS : DETACHED_MS));
}

static void note_exit(struct process *p) {
  process_reap();
  if (p->exited_at == 0) p->exited_at = now_ms();
}

// The host learns where both directions stand, so that each byte of either passes once.
void process_put_started(struct process *p) {
  out_begin(&p->out, FR_STARTED);
  put_u32(&p->out, (uint32_t)p->pid);
  put_u64(&p->out, p->stdin_received);
  put_u64(&p->out, p->output_sent);
  out_end(&p->out);
}

// Leaves only the output in `out`: what else was said is said anew, or holds no more.
static void keep_output(struct process *p) {
  size_t kept = 0;
  for (size_t at = 0; at < p->out.len;) {
    uint32_t length;
    memcpy(&length, p->out.buf + at, sizeof length);
    uint8_t type = p->out.buf[at + 4];
    size_t size = HEADER + length;
    if (type == FR_STDOUT || type == FR_STDERR || type == FR_PTY) {
      memmove(p->out.buf + kept, p->out.buf + at, size);
      kept += size;
    }
    at += size;
  }
  p->out.len = kept;
}

// The connection was closed by a rekey: the process waits, its pipes unread, for a connection of the new identity.
static void detach(struct process *p, struct conn *c) {
  conn_drain(c);
  int fd = conn_release(c);
  close_fd(&fd);
  c->in.len = 0;  // half a frame was not received: the host sends it again
  p->sent = 0;    // frames that may not be gone are sent again, whole: the host knows how much it has of them
  p->gather_until = 0;
  p->exit_sent = false;
  keep_output(p);
  process_offer(p);
}

// Nobody will ask for what it has said so far.
static void drop_output(struct process *p) {
  p->output_sent += p->output_unsent;
  p->output_unsent = 0;
  p->sent = p->out.len = 0;
}

static void adopt(struct process *p, struct conn *c) {
  if (!process_take(p, c)) return;  // woken to look after its connection
  // The new owner starts with a full window; what is still queued is no longer acknowledged to anyone.
  p->stdin_taken = 0;
  p->stdin_unacknowledged = 0;
  p->stdin_unowned = p->stdin_len;
  struct out kept = p->out;
  p->out = (struct out){0};
  process_put_started(p);
  put_raw(&p->out, kept.buf, kept.len);
  out_free(&kept);
}

// The host closes first, when it has read the exit: were it closed from here, a frame that the host is just sending (a
// signal, say) would break its socket before it has read the rest.
static void await_close(struct conn *c) {
  uint8_t ignored[512];
  shutdown(c->fd, SHUT_WR);
  while (recv(c->fd, ignored, sizeof ignored, 0) > 0) continue;
}

bool process_serve(struct process *p, struct conn *c) {
  struct pollfd w[W_COUNT];
  bool alive = true;
  conn_own(c);
  p->gather_until = now_ms() + GATHER_MS;
  for (unsigned turn = 0; alive; turn++) {
    int timeout = set_waits(p, c, w);
    int ready = poll(w, W_COUNT, timeout);
    if (ready < 0) continue;
    // Nothing of the old identity is taken any more, from the moment that it has ended.
    if (c->fd >= 0 && conn_was_rekeyed(c)) {
      detach(p, c);
      continue;
    }
    if (w[W_PID].revents != 0) note_exit(p);
    if (w[W_WAKE].revents != 0) {
      adopt(p, c);
      if (p->pidfd < 0 && p->reaped) note_exit(p);
    }
    if (w[W_IN].revents != 0) feed_stdin(p);
    if ((w[W_CONN].revents & ~POLLOUT) != 0) {
      alive = receive(p, c);
      if (alive) feed_stdin(p);
    }
    if (ready == 0 && c->fd < 0) break;  // nobody attached
    if (ready == 0 && p->gather_until != 0) p->gather_until = 0;
    else if (ready == 0 && p->exited_at != 0) linger(p);
    // Alternate between the two, so that one flooded pipe does not silence the other.
    for (unsigned i = 0; i < 2 && alive; i++) {
      int which = (int)((turn + i) % 2);
      if (p->output[which] >= 0 && takes_more(p) && w[W_OUT + which].revents != 0) read_output(p, which);
    }
    if (p->left && c->fd < 0) drop_output(p);
    bool ended = p->exited_at != 0 && p->output[0] < 0 && p->output[1] < 0;
    if (alive && c->fd >= 0 && ended && !p->exit_sent && takes_more(p)) put_exit(p);
    if (p->exit_sent || !takes_more(p) || now_ms() >= p->gather_until) p->gather_until = 0;
    if (alive && c->fd >= 0 && p->gather_until == 0) alive = flush(p, c);
    if (alive && p->exit_sent && p->out.len == 0) break;
    if (!alive && conn_was_rekeyed(c)) {
      detach(p, c);
      alive = true;
    }
  }
  bool goes_on = alive && c->fd >= 0 && conn_disown(c);
  if (alive && c->fd >= 0 && !goes_on) await_close(c);
  process_kill_group(p);
  process_signal(p, SIGKILL);
  return goes_on;
}
