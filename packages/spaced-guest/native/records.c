// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// The records of the launch protocol (PROTOCOL.md section 2). Field by field in statements: initialisers have no order.
#include "common.h"

bool parse_start(struct start *s, struct cursor *p) {
  s->activation = take_string(p);
  const uint8_t *secret = take_raw(p, sizeof s->secret);
  if (secret != NULL) memcpy(s->secret, secret, sizeof s->secret);
  s->socket_path = take_string(p);
  s->socket_uid = take_u32(p);
  s->uid_base = take_u32(p);
  s->hostname = take_string(p);
  s->lower = take_string(p);
  s->upper = take_string(p);
  s->work = take_string(p);
  s->root = take_string(p);
  s->nbinds = take_u32(p);
  if (s->nbinds > MAX_BINDS) return false;
  for (uint32_t i = 0; i < s->nbinds; i++) {
    s->binds[i].source = take_string(p);
    s->binds[i].target = take_string(p);
    s->binds[i].read_only = take_u8(p) != 0;
  }
  s->boot_id = take_string(p);
  s->ncgroups = take_u32(p);
  if (s->ncgroups > MAX_CGROUPS) return false;
  for (uint32_t i = 0; i < s->ncgroups; i++) s->cgroups[i] = take_string(p);
  s->tmpfs_bytes = take_u32(p);
  s->file_bytes = take_u64(p);
  s->program = take_string(p);
  s->listen_fd = -1;
  return !p->bad && s->uid_base >= 65536 && s->uid_base <= UINT32_MAX - 65536;
}

// Copies a string into a fixed field; false when it does not fit.
static bool copy_text(char *to, size_t size, const char *from) {
  if (from == NULL || strlen(from) >= size) return false;
  strcpy(to, from);
  return true;
}

bool parse_claim(struct claim *c, struct cursor *p, char **spare, char **socket_path, uint32_t *socket_uid) {
  *spare = take_string(p);
  bool fits = copy_text(c->activation, sizeof c->activation, take_string(p));
  const uint8_t *secret = take_raw(p, sizeof c->secret);
  if (secret != NULL) memcpy(c->secret, secret, sizeof c->secret);
  *socket_path = take_string(p);
  *socket_uid = take_u32(p);
  fits = copy_text(c->hostname, sizeof c->hostname, take_string(p)) && fits;
  fits = copy_text(c->boot_id, sizeof c->boot_id, take_string(p)) && fits;
  c->file_bytes = take_u64(p);
  return fits && !p->bad && p->left == 0;
}

static char **take_list(struct cursor *p, uint32_t *count) {
  *count = take_u32(p);
  char **list = *count > p->left / 4 ? NULL : calloc(*count + 1, sizeof *list);
  for (uint32_t i = 0; list != NULL && i < *count; i++) list[i] = take_string(p);
  return list;
}

bool parse_host(struct host *h, struct cursor *p) {
  h->name = take_string(p);
  h->uid = take_u32(p);
  h->gid = take_u32(p);
  h->argv = take_list(p, &h->argc);
  h->envp = take_list(p, &h->envc);
  h->stderr_path = take_string(p);
  h->nbinds = take_u32(p);
  for (uint32_t i = 0; i < h->nbinds && i < MAX_BINDS; i++) {
    h->binds[i].path = take_string(p);
    h->binds[i].read_only = take_u8(p) != 0;
  }
  if (p->bad || p->left != 0 || h->argv == NULL || h->envp == NULL) return false;
  return h->argc > 0 && h->uid != 0 && h->gid != 0 && h->nbinds <= MAX_BINDS;
}

bool parse_restore(struct start *s, struct cursor *p, char **images, char ***argv) {
  uint32_t argc = 0;
  bool fits = parse_start(s, p);
  *images = take_string(p);
  *argv = take_list(p, &argc);
  return fits && !p->bad && p->left == 0 && *argv != NULL && argc > 0;
}

bool parse_run(struct host *h, struct cursor *p) {
  h->name = take_string(p);
  h->argv = take_list(p, &h->argc);
  h->envp = take_list(p, &h->envc);
  h->stderr_path = take_string(p);
  h->ncgroups = take_u32(p);
  for (uint32_t i = 0; i < h->ncgroups && i < MAX_CGROUPS; i++) h->cgroups[i] = take_string(p);
  if (p->bad || p->left != 0 || h->argv == NULL || h->envp == NULL) return false;
  return h->argc > 0 && h->ncgroups <= MAX_CGROUPS;
}

void host_free(struct host *h) {
  free(h->argv);
  free(h->envp);
}
