// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// DIAL: a byte pipe between the host's connection and a TCP port on the guest's loopback.
#include "common.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { PIPE_BYTES = 64 * 1024, CONNECT_SECONDS = 5 };

struct half {
  int from, to;
  size_t start, len;
  bool ended, passed_on;  // end of stream: seen, and told to the other side
  uint8_t bytes[PIPE_BYTES];
};

static int connect_to(const struct sockaddr *address, socklen_t length) {
  struct timeval limit = {.tv_sec = CONNECT_SECONDS};
  int one = 1, fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // also bounds connect, e.g. on a full backlog
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, address, length) == 0) return fd;
  int error = errno == EINPROGRESS || errno == EAGAIN ? ETIMEDOUT : errno;
  close(fd);
  errno = error;
  return -1;
}

static int connect_loopback(uint16_t port) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = connect_to((struct sockaddr *)&v4, sizeof v4);
  if (fd >= 0 || errno != ECONNREFUSED) return fd;
  fd = connect_to((struct sockaddr *)&v6, sizeof v6);
  if (fd < 0) errno = ECONNREFUSED;  // no IPv6 at all counts as nobody listening
  return fd;
}

// Moves what can be moved now. False when either side failed.
static bool pump(struct half *h) {
  for (;;) {
    if (h->len == 0 && !h->ended) {
      ssize_t n = recv(h->from, h->bytes, sizeof h->bytes, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      h->start = 0;
      h->len = (size_t)n;
      h->ended = n == 0;
    }
    if (h->len == 0) {
      if (!h->passed_on) shutdown(h->to, SHUT_WR);
      h->passed_on = true;
      return true;
    }
    ssize_t n = send(h->to, h->bytes + h->start, h->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    h->start += (size_t)n;
    h->len -= (size_t)n;
  }
}

static void relay(struct half halves[2]) {
  bool alive = pump(&halves[0]) && pump(&halves[1]);
  while (alive && !(halves[0].passed_on && halves[1].passed_on)) {
    struct pollfd w[2] = {{.fd = halves[0].from}, {.fd = halves[1].from}};
    for (int i = 0; i < 2; i++) {
      if (halves[i].len == 0 && !halves[i].ended) w[i].events |= POLLIN;
      if (halves[i].len > 0) w[1 - i].events |= POLLOUT;
    }
    // A side of which nothing is wanted would report its hang-up for ever.
    for (int i = 0; i < 2; i++) {
      if (w[i].events == 0) w[i].fd = -1;
    }
    if (poll(w, 2, -1) < 0) continue;
    alive = pump(&halves[0]) && pump(&halves[1]);
  }
}

bool dial_serve(struct conn *c, struct cursor *payload) {
  uint16_t port = take_u16(payload);
  if (payload->bad) return false;
  int fd = connect_loopback(port);
  if (fd < 0) return conn_error(c, errno, "connect");
  struct half *halves = malloc(2 * sizeof *halves);
  if (halves == NULL) {
    close(fd);
    return conn_error(c, ENOMEM, "connect");
  }
  for (int i = 0; i < 2; i++) {
    halves[i].from = i == 0 ? c->fd : fd;
    halves[i].to = i == 0 ? fd : c->fd;
    halves[i].start = halves[i].len = 0;
    halves[i].ended = halves[i].passed_on = false;
  }
  out_begin(&c->out, FR_OK);
  out_end(&c->out);
  // Bytes that came in the same packet as the request belong to the port already.
  size_t early = c->in.len < PIPE_BYTES ? c->in.len : PIPE_BYTES;
  memcpy(halves[0].bytes, c->in.buf + c->in.start, early);
  halves[0].len = early;
  if (conn_answer(c) && early == c->in.len) relay(halves);
  close(fd);
  free(halves);
  return false;
}
