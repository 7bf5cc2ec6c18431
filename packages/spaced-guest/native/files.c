// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// File operations, done by the guest's root inside the guest's own mount namespace: a path or a symlink can lead
// anywhere in the guest, and the guest holds nothing else.
#include "common.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { MAX_LIST_DEPTH = 128, LIST_FRAME = 48 * 1024 };

static bool answer_ok(struct conn *c) {
  out_begin(&c->out, FR_OK);
  out_end(&c->out);
  return conn_answer(c);
}

bool files_put_entry(struct out *o, const char *path, const char *shown) {
  struct stat link, target;
  char text[PATH_MAX];
  text[0] = 0;
  if (lstat(path, &link) < 0) return false;
  bool is_link = S_ISLNK(link.st_mode);
  target = link;
  if (is_link && (stat(path, &target) < 0 || realpath(path, text) == NULL)) {
    target = link;  // dangling, or a loop
    ssize_t n = readlink(path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
  }
  put_u8(o, S_ISREG(target.st_mode) ? 1 : S_ISDIR(target.st_mode) ? 2 : 3);
  put_u8(o, is_link);
  put_u32(o, target.st_mode & 07777);
  put_u32(o, target.st_uid);
  put_u32(o, target.st_gid);
  put_u64(o, (uint64_t)target.st_size);
  put_u64(o, (uint64_t)target.st_mtim.tv_sec);
  put_u32(o, (uint32_t)target.st_mtim.tv_nsec);
  put_string(o, shown);
  put_string(o, text);
  return true;
}

static bool answer_entry(struct conn *c, const char *path, const char *step) {
  out_begin(&c->out, FR_OK);
  if (!files_put_entry(&c->out, path, path)) return conn_error(c, errno, step);
  out_end(&c->out);
  return conn_answer(c);
}

// mkdir -p. 1 made the last component, 0 it was there, -1 errno.
static int make_directories(char *path, uid_t uid, gid_t gid) {
  int made = 0;
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') path[--length] = 0;
  for (char *at = path;; at++) {
    if (at == path || (*at != '/' && *at != 0)) continue;
    char kept = *at;
    *at = 0;
    made = mkdir(path, 0755) == 0;
    int error = made ? 0 : errno;
    struct stat found;
    if (made) {
      // by path, not descriptor: whoever could exchange it owns the parent inside the guest anyway
      if (lchown(path, uid, gid) < 0) error = errno;
    } else if (error == EEXIST) {
      error = stat(path, &found) < 0 ? errno : S_ISDIR(found.st_mode) ? 0 : ENOTDIR;
    }
    *at = kept;
    if (error != 0) {
      errno = error;
      return -1;
    }
    if (kept == 0) return made;
  }
}

static int make_parents(const char *path, uid_t uid, gid_t gid) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return 0;
  char *parent = strndup(path, (size_t)(slash - path));
  if (parent == NULL) return -1;
  int result = make_directories(parent, uid, gid);
  int error = errno;
  free(parent);
  errno = error;
  return result;
}

// ---- LIST

struct listing {
  struct conn *c;
  uint32_t depth;
  char path[PATH_MAX];
  bool broken;  // the peer is gone
};

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void free_names(char **names, size_t n) {
  for (size_t i = 0; i < n; i++) free(names[i]);
  free(names);
}

static bool read_names(const char *path, char ***found, size_t *count) {
  DIR *dir = opendir(path);
  char **names = NULL;
  size_t n = 0, cap = 0;
  if (dir == NULL) return false;
  struct dirent *e;
  while ((errno = 0, e = readdir(dir)) != NULL) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (n == cap) {
      cap = cap == 0 ? 32 : cap * 2;
      char **larger = realloc(names, cap * sizeof *names);
      if (larger == NULL) break;
      names = larger;
    }
    names[n] = strdup(e->d_name);
    if (names[n] == NULL) break;
    n++;
  }
  int error = errno;
  closedir(dir);
  if (error != 0) {
    free_names(names, n);
    errno = error;
    return false;
  }
  if (n > 0) qsort(names, n, sizeof *names, by_name);
  *found = names;
  *count = n;
  return true;
}

// Directories that vanish or may not be read below the root are shown and not entered.
static bool list_directory(struct listing *l, size_t length, uint32_t depth) {
  char **names = NULL;
  size_t n = 0;
  if (!read_names(l->path, &names, &n)) return false;
  for (size_t i = 0; i < n && !l->broken; i++) {
    size_t name = strlen(names[i]);
    size_t at = length;
    if (at + name + 2 > sizeof l->path) continue;
    if (at == 0 || l->path[at - 1] != '/') l->path[at++] = '/';
    memcpy(l->path + at, names[i], name + 1);
    struct out *o = &l->c->out;
    if (o->len == 0) out_begin(o, FR_DATA);
    struct stat s;
    bool enter = depth < l->depth && lstat(l->path, &s) == 0 && S_ISDIR(s.st_mode);
    files_put_entry(o, l->path, l->path);
    if (o->len > LIST_FRAME || o->failed) {
      out_end(o);
      l->broken = !conn_answer(l->c);
    }
    if (enter && !l->broken) list_directory(l, at + name, depth + 1);
    l->path[length] = 0;
  }
  free_names(names, n);
  return true;
}

static bool list(struct conn *c, struct cursor *payload) {
  const char *path = take_string(payload);
  uint32_t depth = take_u32(payload);
  if (payload->bad) return false;
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  if (length >= PATH_MAX - 1) return conn_error(c, ENAMETOOLONG, "list");
  struct listing *l = malloc(sizeof *l);
  if (l == NULL) return conn_error(c, ENOMEM, "list");
  l->c = c;
  l->depth = depth < 1 ? 1 : depth > MAX_LIST_DEPTH ? MAX_LIST_DEPTH : depth;
  l->broken = false;
  memcpy(l->path, path, length);
  l->path[length] = 0;
  if (!list_directory(l, length, 1)) {
    int error = errno;
    free(l);
    return conn_error(c, error, "list");
  }
  bool broken = l->broken;
  free(l);
  if (broken) return false;
  if (c->out.len > 0) out_end(&c->out);
  out_begin(&c->out, FR_END);
  out_end(&c->out);
  return conn_answer(c);
}

// ---- READ and WRITE

static bool send_content(struct conn *c, int fd, bool regular, uint64_t offset, uint64_t left) {
  while (left > 0) {
    size_t wanted = left < DATA_CHUNK ? (size_t)left : DATA_CHUNK;
    out_begin(&c->out, FR_DATA);
    uint8_t *room = out_room(&c->out, wanted);
    if (room == NULL) return false;
    ssize_t n = regular ? pread(fd, room, wanted, (off_t)offset) : read(fd, room, wanted);
    if (n < 0 && errno == EINTR) n = 0, c->out.len = c->out.frame;
    else if (n < 0 && errno != EAGAIN) {
      int error = errno;
      c->out.len = c->out.frame;  // what precedes is whole
      out_error(&c->out, error, "read");
      return conn_answer(c);
    } else if (n <= 0) {
      c->out.len = c->out.frame;
      break;
    } else {
      c->out.len -= wanted - (size_t)n;
      out_end(&c->out);
      left -= (uint64_t)n;
      offset += (uint64_t)n;
      // A short read is nearly always the end: the next read decides, and END joins the same write.
      if ((size_t)n == wanted && left > 0 && !conn_answer(c)) return false;
      if (c->out.len > DATA_CHUNK && !conn_answer(c)) return false;
    }
  }
  out_begin(&c->out, FR_END);
  out_end(&c->out);
  return conn_answer(c);
}

static bool read_file(struct conn *c, struct cursor *payload) {
  const char *path = take_string(payload);
  uint64_t offset = take_u64(payload), length = take_u64(payload);
  struct stat s;
  if (payload->bad) return false;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return conn_error(c, errno, "open");
  int error = fstat(fd, &s) < 0 ? errno : S_ISDIR(s.st_mode) ? EISDIR : offset > INT64_MAX ? EINVAL : 0;
  if (error == 0) {
    out_begin(&c->out, FR_OK);
    if (files_put_entry(&c->out, path, path)) out_end(&c->out);
    else error = errno;
  }
  bool open_still = error != 0 ? conn_error(c, error, "read") : send_content(c, fd, S_ISREG(s.st_mode), offset, length);
  close(fd);
  return open_still;
}

// Appends CONTENT of a file that has no more than `limit` bytes. 0, or errno; EFBIG also for what is no plain file.
static int put_small_content(struct out *o, int fd, size_t limit) {
  struct stat s;
  if (fstat(fd, &s) < 0) return errno;
  if (S_ISDIR(s.st_mode)) return EISDIR;
  if (!S_ISREG(s.st_mode) || (uint64_t)s.st_size > limit) return EFBIG;
  out_begin(o, FR_CONTENT);
  put_u64(o, (uint64_t)s.st_size);
  put_u64(o, (uint64_t)s.st_mtim.tv_sec);
  put_u32(o, (uint32_t)s.st_mtim.tv_nsec);
  size_t known = (size_t)s.st_size, total = 0;
  for (;;) {
    // One byte more than there should be: getting all of them but that one is the end. A size of 0 says nothing (/proc).
    size_t wanted = known > total ? known + 1 - total : limit + 1 - total;
    uint8_t *room = out_room(o, wanted);
    if (room == NULL) return 0;  // the connection fails
    ssize_t n = pread(fd, room, wanted, (off_t)total);
    int error = n < 0 ? errno : 0;
    o->len -= wanted - (n > 0 ? (size_t)n : 0);
    if (error == EINTR) continue;
    if (error != 0) return error;
    total += (size_t)n;
    if (total > limit) return EFBIG;
    if (n == 0 || (known > 0 && total == known)) break;
  }
  out_end(o);
  return 0;
}

bool files_fetch(struct conn *c, struct cursor *payload) {
  const char *path = take_string(payload);
  uint32_t limit = take_u32(payload);
  if (payload->bad) return false;
  size_t before = c->out.len;
  const char *step = "open";
  int error = 0, fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) error = errno;
  else {
    step = "read";
    error = put_small_content(&c->out, fd, limit < DATA_CHUNK ? limit : DATA_CHUNK);
    close(fd);
  }
  if (error != 0 && !c->out.failed) {
    c->out.len = before;
    out_error(&c->out, error, step);
  }
  return !c->out.failed;
}

static int open_for_writing(const char *path, mode_t mode, bool append, bool *created) {
  int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (append ? O_APPEND : O_TRUNC);
  *created = true;
  int fd = open(path, flags | O_CREAT | O_EXCL, mode);
  if (fd >= 0 || errno != EEXIST) return fd;
  *created = false;
  return open(path, flags | O_CREAT, mode);
}

// Takes DATA up to END whatever happens, so that the next frame is an operation again. False when the peer is gone.
static bool receive_content(struct conn *c, int fd, int *error) {
  for (;;) {
    uint8_t type;
    struct cursor data;
    if (!conn_frame(c, &type, &data)) return false;
    if (type == FR_END) return true;
    if (type != FR_DATA) return false;
    while (data.left > 0 && *error == 0) {
      ssize_t n = write(fd, data.at, data.left);
      if (n > 0) take_raw(&data, (size_t)n);
      else if (n < 0 && errno != EINTR) *error = errno;
    }
  }
}

static bool write_file(struct conn *c, struct cursor *payload) {
  const char *in_frame_path = take_string(payload);
  mode_t mode = take_u32(payload) & 07777;
  uid_t uid = take_u32(payload);
  gid_t gid = take_u32(payload);
  bool parents = take_u8(payload) != 0, append = (take_u8(payload) & 1) != 0, created = false;
  if (payload->bad) return false;
  char *path = strdup(in_frame_path);  // the frame's memory is reused by the DATA frames
  if (path == NULL) return false;
  int error = parents && make_parents(path, uid, gid) < 0 ? errno : 0;
  const char *step = error != 0 ? "mkdir" : "open";
  int fd = -1;
  if (error == 0) {
    fd = open_for_writing(path, mode, append, &created);
    if (fd < 0) error = errno;
    else if (fchown(fd, uid, gid) < 0 || (created && fchmod(fd, mode) < 0)) error = errno, step = "chown";
    else step = "write";
  }
  bool alive = receive_content(c, fd, &error);
  if (fd >= 0 && close(fd) < 0 && error == 0) error = errno;
  if (alive) alive = error != 0 ? conn_error(c, error, step) : answer_entry(c, path, "stat");
  free(path);
  return alive;
}

// ---- REMOVE

struct level {
  dev_t dev;
  ino_t ino;
  char name[NAME_MAX + 1];
};

static bool is_root(const char *path) {
  struct stat s, root;
  return lstat(path, &s) == 0 && stat("/", &root) == 0 && s.st_dev == root.st_dev && s.st_ino == root.st_ino;
}

// Removes everything but directories from `fd`. 1: `name` is a directory to descend into, 0: now empty, -1: errno.
static int clear_directory(int fd, char name[NAME_MAX + 1]) {
  int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = copy < 0 ? NULL : fdopendir(copy);
  if (dir == NULL) {
    if (copy >= 0) close(copy);
    return -1;
  }
  int result = 0;
  struct dirent *e;
  while (result == 0 && (errno = 0, e = readdir(dir)) != NULL) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (e->d_type != DT_DIR && unlinkat(fd, e->d_name, 0) == 0) continue;
    if (e->d_type != DT_DIR && errno == ENOENT) continue;
    if (e->d_type != DT_DIR && errno != EISDIR) result = -1;
    else if (unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
    else if (errno != ENOTEMPTY && errno != EEXIST) result = -1;
    else {
      strcpy(name, e->d_name);
      result = 1;
    }
  }
  int error = errno;
  closedir(dir);
  errno = error;
  return result == 0 && error != 0 ? -1 : result;
}

// Holds one descriptor and one small record per level, so that a very deep tree exhausts neither stack nor files.
static int remove_tree(int fd, struct level **levels) {
  size_t depth = 0, cap = 0;
  char name[NAME_MAX + 1];
  for (;;) {
    int state = clear_directory(fd, name);
    if (state == 0 && depth == 0) return fd;
    int next = state < 0 ? -1 : openat(fd, state == 1 ? name : "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat here;
    if (next < 0 || fstat(state == 1 ? fd : next, &here) < 0) break;
    if (state == 1) {
      if (depth == cap) {
        cap = cap == 0 ? 16 : cap * 2;
        struct level *larger = realloc(*levels, cap * sizeof *larger);
        if (larger == NULL) break;
        *levels = larger;
      }
      (*levels)[depth].dev = here.st_dev;
      (*levels)[depth].ino = here.st_ino;
      strcpy((*levels)[depth++].name, name);
    } else {
      // A process may have moved the directory meanwhile: ".." must be where we came from.
      const struct level *up = &(*levels)[--depth];
      errno = EBUSY;
      if (here.st_dev != up->dev || here.st_ino != up->ino || unlinkat(next, up->name, AT_REMOVEDIR) < 0) {
        int error = errno;
        close(next);
        errno = error;
        break;
      }
    }
    close(fd);
    fd = next;
  }
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static bool remove_path(struct conn *c, struct cursor *payload) {
  char *path = take_string(payload);
  if (payload->bad) return false;
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') path[--length] = 0;
  if (is_root(path)) return conn_error(c, EBUSY, "remove");
  if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR) return answer_ok(c);
  if (errno != EISDIR && errno != EPERM) return conn_error(c, errno, "remove");
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? answer_ok(c) : conn_error(c, errno, "remove");
  struct level *levels = NULL;
  fd = remove_tree(fd, &levels);
  int error = fd < 0 ? errno : 0;
  free(levels);
  if (fd >= 0) close(fd);
  if (error == 0 && rmdir(path) < 0 && errno != ENOENT) error = errno;
  return error != 0 ? conn_error(c, error, "remove") : answer_ok(c);
}

// ---- the rest

static bool make_directory(struct conn *c, struct cursor *payload) {
  char *path = take_string(payload);
  uid_t uid = take_u32(payload);
  gid_t gid = take_u32(payload);
  if (payload->bad) return false;
  int made = *path == 0 ? (errno = ENOENT, -1) : make_directories(path, uid, gid);
  if (made <= 0) return conn_error(c, made < 0 ? errno : EEXIST, "mkdir");
  out_begin(&c->out, FR_OK);
  put_u8(&c->out, 1);
  out_end(&c->out);
  return conn_answer(c);
}

static bool rename_path(struct conn *c, struct cursor *payload) {
  const char *from = take_string(payload), *to = take_string(payload);
  uid_t uid = take_u32(payload);
  gid_t gid = take_u32(payload);
  if (payload->bad) return false;
  struct stat s;
  if (lstat(from, &s) < 0) return conn_error(c, errno, "rename");
  if (make_parents(to, uid, gid) < 0) return conn_error(c, errno, "mkdir");
  if (rename(from, to) < 0) return conn_error(c, errno, "rename");
  return answer_entry(c, to, "stat");
}

static bool sync_root(struct conn *c) {
  int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = root < 0 || syncfs(root) < 0 ? errno : 0;
  if (root >= 0) close(root);
  return error != 0 ? conn_error(c, error, "sync") : answer_ok(c);
}

static bool file_system_size(struct conn *c) {
  struct statvfs s;
  if (statvfs("/", &s) < 0) return conn_error(c, errno, "statfs");
  out_begin(&c->out, FR_OK);
  put_u64(&c->out, (uint64_t)s.f_blocks * s.f_frsize);
  put_u64(&c->out, (uint64_t)s.f_bavail * s.f_frsize);
  out_end(&c->out);
  return conn_answer(c);
}

static bool stat_path(struct conn *c, struct cursor *payload) {
  const char *path = take_string(payload);
  return !payload->bad && answer_entry(c, path, "stat");
}

bool files_serve(struct conn *c, uint8_t type, struct cursor *payload) {
  switch (type) {
    case FR_STAT: return stat_path(c, payload);
    case FR_LIST: return list(c, payload);
    case FR_READ: return read_file(c, payload);
    case FR_WRITE: return write_file(c, payload);
    case FR_MKDIR: return make_directory(c, payload);
    case FR_RENAME: return rename_path(c, payload);
    case FR_REMOVE: return remove_path(c, payload);
    case FR_SYNC: return sync_root(c);
    case FR_STATFS: return file_system_size(c);
    default: return false;
  }
}
