// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Framing: `u32 length, u8 type, payload`, little-endian (PROTOCOL.md). Built for little-endian machines only.
#include "common.h"

#include <sys/socket.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is copied as it lies in memory");

const uint8_t *take_raw(struct cursor *c, size_t length) {
  if (c->bad || length > c->left) {
    c->bad = true;
    return NULL;
  }
  const uint8_t *at = c->at;
  c->at += length;
  c->left -= length;
  return at;
}

#define TAKE(type, name)                              \
  type name(struct cursor *c) {                       \
    type value = 0;                                   \
    const uint8_t *at = take_raw(c, sizeof value);    \
    if (at != NULL) memcpy(&value, at, sizeof value); \
    return value;                                     \
  }
TAKE(uint8_t, take_u8)
TAKE(uint16_t, take_u16)
TAKE(uint32_t, take_u32)
TAKE(uint64_t, take_u64)

char *take_string(struct cursor *c) {
  uint32_t length = take_u32(c);
  uint8_t *text = (uint8_t *)take_raw(c, length);
  if (text == NULL) return NULL;
  if (memchr(text, 0, length) != NULL) {
    c->bad = true;
    return NULL;
  }
  // The four bytes of the length are consumed: the text moves over them, which leaves room for its terminator.
  char *moved = (char *)text - 4;
  memmove(moved, text, length);
  moved[length] = 0;
  return moved;
}

uint8_t *out_room(struct out *o, size_t length) {
  if (o->failed) return NULL;
  if (length > o->cap - o->len) {
    size_t cap = o->cap == 0 ? 512 : o->cap;
    while (cap - o->len < length) cap *= 2;
    uint8_t *larger = cap > 16 * MAX_FRAME ? NULL : realloc(o->buf, cap);
    if (larger == NULL) {
      o->failed = true;
      return NULL;
    }
    o->buf = larger;
    o->cap = cap;
  }
  uint8_t *at = o->buf + o->len;
  o->len += length;
  return at;
}

void put_raw(struct out *o, const void *bytes, size_t length) {
  uint8_t *at = out_room(o, length);
  if (at != NULL && length > 0) memcpy(at, bytes, length);
}

void put_u8(struct out *o, uint8_t v) { put_raw(o, &v, sizeof v); }
void put_u16(struct out *o, uint16_t v) { put_raw(o, &v, sizeof v); }
void put_u32(struct out *o, uint32_t v) { put_raw(o, &v, sizeof v); }
void put_u64(struct out *o, uint64_t v) { put_raw(o, &v, sizeof v); }

void put_string(struct out *o, const char *text) {
  size_t length = strlen(text);
  put_u32(o, (uint32_t)length);
  put_raw(o, text, length);
}

void out_begin(struct out *o, uint8_t type) {
  o->frame = o->len;
  put_u32(o, 0);
  put_u8(o, type);
}

void out_end(struct out *o) {
  if (o->failed) return;
  uint32_t length = (uint32_t)(o->len - o->frame - HEADER);
  memcpy(o->buf + o->frame, &length, sizeof length);
}

void out_error(struct out *o, int error, const char *step) {
  out_begin(o, FR_ERROR);
  put_u32(o, (uint32_t)error);
  put_string(o, step);
  out_end(o);
}

void out_free(struct out *o) {
  free(o->buf);
  *o = (struct out){0};
}

bool out_send(struct out *o, int fd) {
  size_t sent = 0;
  bool ok = !o->failed;
  while (ok && sent < o->len) {
    ssize_t n = send(fd, o->buf + sent, o->len - sent, MSG_NOSIGNAL);
    if (n > 0) sent += (size_t)n;
    else if (n < 0 && errno != EINTR) ok = false;
  }
  o->len = 0;
  // A connection waits long and rarely needs much: give a large buffer back.
  if (o->cap > 128 * 1024) out_free(o);
  return ok;
}

int in_frame(struct in *in, uint8_t *type, struct cursor *payload) {
  if (in->len < HEADER) return 0;
  uint32_t length;
  memcpy(&length, in->buf + in->start, sizeof length);
  if (length > MAX_FRAME) return -1;
  if (in->len < HEADER + length) return 0;
  *type = in->buf[in->start + 4];
  *payload = (struct cursor){.at = in->buf + in->start + HEADER, .left = length};
  in->start += HEADER + length;
  in->len -= HEADER + length;
  return 1;
}

ssize_t in_receive(struct in *in, int fd, int flags) {
  size_t wanted = 4096;  // grows to the frame that is arriving
  if (in->len >= HEADER) {
    uint32_t length;
    memcpy(&length, in->buf + in->start, sizeof length);
    if (length <= MAX_FRAME) wanted = HEADER + length;
  }
  if (in->len == 0) {
    in->start = 0;
    if (in->cap > 256 * 1024) in_free(in);
  }
  if (in->start > 0 && in->cap - in->start < wanted) {
    memmove(in->buf, in->buf + in->start, in->len);
    in->start = 0;
  }
  if (in->cap - in->start < wanted || in->cap == in->start + in->len) {
    size_t cap = in->start + wanted > 4096 ? in->start + wanted + 4096 : 4096;
    uint8_t *larger = realloc(in->buf, cap);
    if (larger == NULL) {
      errno = ENOBUFS;
      return -1;
    }
    in->buf = larger;
    in->cap = cap;
  }
  for (;;) {
    ssize_t n = recv(fd, in->buf + in->start + in->len, in->cap - in->start - in->len, flags);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) in->len += (size_t)n;
    return n;
  }
}

void in_free(struct in *in) {
  free(in->buf);
  *in = (struct in){0};
}
