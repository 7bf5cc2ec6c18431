// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// WATCH: what changes in a folder, told on a connection of its own. The kernel queues events within its own limit; while
// the host does not read, nothing is taken from there, and what the kernel then drops is told as OVERFLOW.
#include "common.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { RECURSIVE = 1, WITH_ENTRIES = 2, NETWORK_MOUNTS = 4, MAX_FOLDERS = 8192, MAX_DEPTH = 128 };
enum { CREATED = 1, WRITTEN, REMOVED, RENAMED, MODE_CHANGED };

static const uint32_t interest = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;

struct folder {
  int wd;
  char *name;  // relative to the root; empty for the root itself
};

struct watch {
  struct conn *c;
  int fd;
  uint32_t flags;
  const char *root;
  size_t root_length;
  struct folder *folders;
  size_t nfolders, cap;
  bool overflowed;
};

// Closing an instance waits until the whole kernel has left its watches: milliseconds, more on a busy host, in which the
// thread would count against the guest's limit. So instances are kept, empty, for the next watch. What is more than
// enough is closed by one thread at a time.
enum { KEPT_INSTANCES = 16, MAX_INSTANCES = 1024 };
static pthread_mutex_t instances_lock = PTHREAD_MUTEX_INITIALIZER;
static int instances[MAX_INSTANCES];
static int ninstances;
static bool closing;

static int take_instance(void) {
  pthread_mutex_lock(&instances_lock);
  int fd = ninstances > 0 ? instances[--ninstances] : -1;
  pthread_mutex_unlock(&instances_lock);
  return fd >= 0 ? fd : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

// `fd` watches nothing any more, and its queue is empty. An event still on its way names a watch that is none: `tell`
// passes over it.
static void give_instance(int fd) {
  pthread_mutex_lock(&instances_lock);
  instances[ninstances++] = fd;
  bool closer = !closing;
  if (closer) closing = true;
  while (closer && ninstances > KEPT_INSTANCES) {
    int last = instances[--ninstances];
    pthread_mutex_unlock(&instances_lock);
    close(last);
    pthread_mutex_lock(&instances_lock);
  }
  if (closer) closing = false;
  pthread_mutex_unlock(&instances_lock);
}

static struct folder *find(struct watch *w, int wd) {
  for (size_t i = 0; i < w->nfolders; i++) {
    if (w->folders[i].wd == wd) return &w->folders[i];
  }
  return NULL;
}

static void forget(struct watch *w, struct folder *f) {
  free(f->name);
  *f = w->folders[--w->nfolders];
}

// False: there is no room to tell, now or later, of what changes below.
static bool remember(struct watch *w, int wd, const char *name) {
  struct folder *known = find(w, wd);
  char *copy = strdup(name);
  if (copy == NULL) return false;
  if (known != NULL) {  // the same folder under another name
    free(known->name);
    known->name = copy;
    return true;
  }
  if (w->nfolders == w->cap) {
    size_t cap = w->cap == 0 ? 8 : w->cap * 2;
    struct folder *larger = w->nfolders >= MAX_FOLDERS ? NULL : realloc(w->folders, cap * sizeof *larger);
    if (larger == NULL) {
      free(copy);
      return false;
    }
    w->folders = larger;
    w->cap = cap;
  }
  w->folders[w->nfolders++] = (struct folder){.wd = wd, .name = copy};
  return true;
}

// "root/name", or "root" for an empty name. False when it is too long to exist.
static bool full_path(const struct watch *w, const char *name, char path[PATH_MAX]) {
  int n = snprintf(path, PATH_MAX, *name == 0 ? "%s%s" : "%s/%s", w->root_length == 1 && *name != 0 ? "" : w->root, name);
  return n > 0 && n < PATH_MAX;
}

static void put_event(struct watch *w, uint8_t type, const char *name) {
  struct out *o = &w->c->out;
  char path[PATH_MAX];
  out_begin(o, FR_EVENT);
  put_u8(o, type);
  put_string(o, *name == 0 ? "." : name);
  bool wants = (w->flags & WITH_ENTRIES) != 0 && type != REMOVED && type != RENAMED && full_path(w, name, path);
  size_t flag = o->len;
  put_u8(o, wants);
  if (wants && !files_put_entry(o, path, path) && !o->failed) {  // it is gone already
    o->len = flag;
    put_u8(o, 0);
  }
  out_end(o);
}

static void put_overflow(struct watch *w) {
  out_begin(&w->c->out, FR_OVERFLOW);
  out_end(&w->c->out);
}

// Watches a folder, and below it when asked to. `fresh`: it has just appeared, so what it holds already is told too.
static bool add(struct watch *w, const char *name, bool fresh, int depth) {
  char path[PATH_MAX], child[PATH_MAX];
  if (!full_path(w, name, path)) return true;
  bool is_root = *name == 0;
  int wd = inotify_add_watch(w->fd, path, interest | IN_ONLYDIR | (is_root ? 0 : IN_DONT_FOLLOW));
  // A folder below may be gone again, or be none any more; too many of them are too many.
  if (wd < 0) return !is_root && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP);
  if (!remember(w, wd, name)) {
    inotify_rm_watch(w->fd, wd);
    errno = ENOSPC;
    return false;
  }
  if ((w->flags & RECURSIVE) == 0 || depth >= MAX_DEPTH) return true;
  DIR *dir = opendir(path);
  if (dir == NULL) return true;
  bool complete = true;
  struct dirent *e;
  while (complete && (e = readdir(dir)) != NULL) {
    struct stat s;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (snprintf(child, sizeof child, "%s%s%s", name, is_root ? "" : "/", e->d_name) >= (int)sizeof child) continue;
    if (fresh) put_event(w, CREATED, child);
    bool is_folder = e->d_type == DT_DIR;
    if (e->d_type == DT_UNKNOWN) is_folder = fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode);
    if (is_folder) complete = add(w, child, fresh, depth + 1);
  }
  int error = errno;
  closedir(dir);
  errno = error;
  return complete;
}

// The folder has moved away: what changes in it is no longer told, or under its new name.
static void drop(struct watch *w, const char *name) {
  size_t length = strlen(name);
  for (size_t i = w->nfolders; i-- > 0;) {
    struct folder *f = &w->folders[i];
    if (strncmp(f->name, name, length) != 0 || (f->name[length] != 0 && f->name[length] != '/')) continue;
    inotify_rm_watch(w->fd, f->wd);
    forget(w, f);
  }
}

static void tell(struct watch *w, const struct inotify_event *e) {
  char name[PATH_MAX];
  if ((e->mask & IN_Q_OVERFLOW) != 0) return put_overflow(w);
  struct folder *f = find(w, e->wd);
  if (f == NULL) return;
  if ((e->mask & IN_IGNORED) != 0) return forget(w, f);
  bool is_self = e->len == 0 || e->name[0] == 0;
  if (is_self && *f->name != 0) return;  // the folder above tells it
  int n = is_self ? snprintf(name, sizeof name, "%s", f->name) : snprintf(name, sizeof name, "%s%s%s", f->name, *f->name == 0 ? "" : "/", e->name);
  if (n >= (int)sizeof name) return;
  bool is_folder = (e->mask & IN_ISDIR) != 0 && !is_self && (w->flags & RECURSIVE) != 0;
  if (is_folder && (e->mask & (IN_MOVED_FROM | IN_DELETE)) != 0) drop(w, name);
  if ((e->mask & (IN_CREATE | IN_MOVED_TO)) != 0) put_event(w, CREATED, name);
  if ((e->mask & IN_MODIFY) != 0) put_event(w, WRITTEN, name);
  if ((e->mask & (IN_DELETE | IN_DELETE_SELF)) != 0) put_event(w, REMOVED, name);
  if ((e->mask & (IN_MOVED_FROM | IN_MOVE_SELF)) != 0) put_event(w, RENAMED, name);
  if ((e->mask & IN_ATTRIB) != 0) put_event(w, MODE_CHANGED, name);
  if (is_folder && (e->mask & (IN_CREATE | IN_MOVED_TO)) != 0 && !add(w, name, (e->mask & IN_CREATE) != 0, 0)) put_overflow(w);
}

// Whole frames only: blocks while the host does not read, and ends when the host does.
static void serve(struct watch *w) {
  _Alignas(struct inotify_event) char events[8192];
  struct pollfd waits[] = {{.fd = w->fd, .events = POLLIN}, {.fd = w->c->fd, .events = POLLIN}};
  for (;;) {
    if (poll(waits, 2, -1) < 0) continue;
    if (waits[1].revents != 0) return;  // the host says nothing more but that it is gone
    ssize_t n = read(w->fd, events, sizeof events);
    for (char *at = events; at < events + n;) {
      const struct inotify_event *e = (const struct inotify_event *)at;
      tell(w, e);
      at += sizeof *e + e->len;
    }
    if (w->c->out.len > 0 && !conn_answer(w->c)) return;
  }
}

static int open_root(struct watch *w, const char *path) {
  struct statfs fs;
  struct stat s;
  if (stat(path, &s) < 0 || statfs(path, &fs) < 0) return errno;
  if (!S_ISDIR(s.st_mode)) return ENOTDIR;
  switch ((unsigned long)fs.f_type) {
    case 0x6969: case 0xff534d42: case 0xfe534d42: case 0x65735546: case 0x01021997:  // NFS, CIFS, SMB2, FUSE, 9p
      if ((w->flags & NETWORK_MOUNTS) == 0) return EOPNOTSUPP;
  }
  w->fd = take_instance();
  return w->fd < 0 || !add(w, "", false, 0) ? errno : 0;
}

static void end(struct watch *w) {
  char ignored[8192];
  for (size_t i = 0; i < w->nfolders; i++) {
    inotify_rm_watch(w->fd, w->folders[i].wd);
    free(w->folders[i].name);
  }
  free(w->folders);
  if (w->fd < 0) return;
  while (read(w->fd, ignored, sizeof ignored) > 0) continue;
  give_instance(w->fd);
}

bool watch_serve(struct conn *c, struct cursor *payload) {
  char *path = take_string(payload);
  struct watch w = {.c = c, .fd = -1, .flags = take_u8(payload), .root = path};
  if (payload->bad || *path != '/') return false;
  // The string lies in the connection's own buffer, which this thread no longer reads into.
  w.root_length = strlen(path);
  while (w.root_length > 1 && path[w.root_length - 1] == '/') path[--w.root_length] = 0;
  int error = open_root(&w, path);
  c->out.len = 0;
  if (error != 0) conn_error(c, error, "watch");
  else {
    out_begin(&c->out, FR_OK);
    out_end(&c->out);
    if (conn_answer(c)) serve(&w);
  }
  end(&w);
  return false;
}
