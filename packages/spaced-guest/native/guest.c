// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// The guest's pid 1: accepts connections, proves its identity, gives each connection a thread, reaps every orphan.
//
// A thread per connection, because file operations block and the host keeps few connections: a stuck one holds only
// itself. Some threads wait in advance, so that a guest which has used up its pids limit can still be served.
#include "common.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { SPARE_THREADS = 2, MAX_IDLE_THREADS = 6, MAX_CONNECTIONS = 1024, STACK_BYTES = 128 * 1024, STILL_MS = 5, DRAIN_MS = 2000, DRAIN_TURNS = 200, BACKLOG = 128 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct conn *connections;  // all of them, for a rekey
static int nconnections;
static int queue[MAX_CONNECTIONS];  // accepted, waiting for a thread
static int queued, idle_threads;

static char activation[MAX_ACTIVATION + 1];
static uint8_t secret[32];
static uint64_t epoch;
static bool still;       // nobody is let in, until the word comes from outside
static int still_asked;  // an eventfd

bool conn_frame(struct conn *c, uint8_t *type, struct cursor *payload) {
  for (;;) {
    int found = in_frame(&c->in, type, payload);
    if (found != 0) return found > 0;
    if (c->out.len > 0 && !conn_answer(c)) return false;  // of requests that were sent ahead
    if (in_receive(&c->in, c->fd, 0) <= 0) return false;
  }
}

bool conn_answer(struct conn *c) { return out_send(&c->out, c->fd); }

bool conn_error(struct conn *c, int error, const char *step) {
  c->out.len = 0;
  out_error(&c->out, error, step);
  return conn_answer(c);
}

bool conn_was_rekeyed(const struct conn *c) {
  pthread_mutex_lock(&lock);
  bool rekeyed = c->epoch != epoch;
  pthread_mutex_unlock(&lock);
  return rekeyed;
}

void conn_own(struct conn *c) {
  pthread_mutex_lock(&lock);
  c->owned = true;
  pthread_mutex_unlock(&lock);
}

bool conn_disown(struct conn *c) {
  pthread_mutex_lock(&lock);
  bool current = c->epoch == epoch;
  if (current) c->owned = false;
  pthread_mutex_unlock(&lock);
  return current;
}

// Were the descriptor closed with bytes unread, or refused it more of them, the host's end would break before the host
// has read the rest.
void conn_drain(struct conn *c) {
  uint8_t ignored[4096];
  struct pollfd wait = {.fd = c->fd, .events = POLLIN};
  for (int turns = 0; turns < DRAIN_TURNS && poll(&wait, 1, DRAIN_MS / DRAIN_TURNS) >= 0; turns++) {
    if (wait.revents != 0 && recv(c->fd, ignored, sizeof ignored, MSG_DONTWAIT) <= 0 && errno != EAGAIN) return;
  }
}

int conn_release(struct conn *c) {
  pthread_mutex_lock(&lock);
  int fd = c->fd;
  c->fd = -1;
  pthread_mutex_unlock(&lock);
  return fd;
}

void conn_hold(struct conn *c, int fd, uint64_t identity) {
  pthread_mutex_lock(&lock);
  c->fd = fd;
  c->epoch = identity;
  pthread_mutex_unlock(&lock);
}

static bool say_hello(struct conn *c) {
  static const char tag[] = "space-guest-hello";  // its NUL is part of the message
  uint8_t type, mac[32];
  struct cursor payload;
  if (!conn_frame(c, &type, &payload) || type != FR_HELLO || payload.left != 32) return false;
  pthread_mutex_lock(&lock);
  const void *parts[] = {tag, payload.at, activation};
  const size_t lengths[] = {sizeof tag, 32, strlen(activation)};
  hmac_sha256(secret, parts, lengths, 3, mac);
  c->epoch = epoch;
  if (still) {
    pthread_mutex_unlock(&lock);
    return false;
  }
  out_begin(&c->out, FR_HELLO_OK);
  put_string(&c->out, activation);
  put_raw(&c->out, mac, sizeof mac);
  out_end(&c->out);
  pthread_mutex_unlock(&lock);
  return conn_answer(c);
}

// Under the lock: a new epoch, in which `c` is the only connection.
static void close_others(struct conn *c) {
  c->epoch = ++epoch;
  for (struct conn *other = connections; other != NULL; other = other->next) {
    if (other != c && other->fd >= 0) shutdown(other->fd, other->owned ? SHUT_WR : SHUT_RDWR);
  }
}

static bool rekey(struct conn *c, struct cursor *payload) {
  static const char tag[] = "space-guest-rekey";
  uint8_t expected[32];
  const uint8_t *mac = take_raw(payload, 32);
  struct cursor rest = *payload;
  const uint8_t *next_secret = take_raw(&rest, 32);
  if (mac == NULL || next_secret == NULL) return false;
  const void *parts[] = {tag, payload->at};
  const size_t lengths[] = {sizeof tag, payload->left};
  pthread_mutex_lock(&lock);
  hmac_sha256(secret, parts, lengths, 2, expected);
  bool genuine = same_bytes(mac, expected, 32) && c->epoch == epoch;
  const char *next = genuine ? take_string(&rest) : NULL;
  bool usable = next != NULL && strlen(next) <= MAX_ACTIVATION && rest.left == 0;
  if (usable) {
    memcpy(secret, next_secret, sizeof secret);
    strcpy(activation, next);
    close_others(c);
  }
  pthread_mutex_unlock(&lock);
  if (!usable) return conn_error(c, genuine ? EINVAL : EACCES, "rekey");
  process_wake_all();
  explicit_bzero(payload->at, payload->left);
  out_begin(&c->out, FR_OK);
  out_end(&c->out);
  return conn_answer(c);
}

// Lets go of every connection and of the socket, so that the kernel below can be saved: processes go on, and wait as
// after a rekey. The answer is this connection's last.
static bool quiesce(struct conn *c) {
  if (!is_inside() && !travels()) return conn_error(c, ENOSYS, "quiesce");
  pthread_mutex_lock(&lock);
  bool current = c->epoch == epoch && !still;
  if (current) {
    still = true;
    close_others(c);
  }
  pthread_mutex_unlock(&lock);
  if (!current) return false;
  process_wake_all();
  out_begin(&c->out, FR_OK);
  out_end(&c->out);
  conn_answer(c);
  uint64_t one = 1;
  ssize_t ignored = write(still_asked, &one, sizeof one);
  (void)ignored;
  return false;
}

// Whoever has taken up what it knows of says so: the other processes go on without a reader.
static bool forsake(struct conn *c) {
  process_forsake_waiting();
  out_begin(&c->out, FR_OK);
  out_end(&c->out);
  return conn_answer(c);
}

static bool kill_all(struct conn *c, struct cursor *payload) {
  uint32_t number = take_u32(payload);
  if (payload->bad) return false;
  // From pid 1, -1 means every process of the namespace but pid 1 itself. ESRCH: there was none, which is fine.
  if (kill(-1, (int)number) < 0 && errno != ESRCH) return conn_error(c, errno, "kill");
  out_begin(&c->out, FR_OK);
  out_end(&c->out);
  return conn_answer(c);
}

static void serve(struct conn *c) {
  uint8_t type;
  struct cursor payload;
  bool open = say_hello(c);
  while (open && conn_frame(c, &type, &payload)) {
    // Answers gather while requests that were sent ahead are at hand; nothing but FETCH adds to them.
    if (c->out.len > 0 && (type != FR_FETCH || c->out.len > DATA_CHUNK) && !conn_answer(c)) return;
    switch (type) {
      case FR_FETCH: open = files_fetch(c, &payload); break;
      case FR_STDIN:  // what is for a process that has ended meanwhile
      case FR_STDIN_EOF:
      case FR_SIGNAL:
      case FR_RESIZE: break;
      case FR_REKEY: open = rekey(c, &payload); break;
      case FR_QUIESCE: open = quiesce(c); break;
      case FR_FORSAKE: open = forsake(c); break;
      case FR_KILLALL: open = kill_all(c, &payload); break;
      case FR_SPAWN: open = process_spawn(c, &payload); break;
      case FR_ATTACH: open = process_attach(c, &payload); break;
      case FR_WATCH: open = watch_serve(c, &payload); break;
      case FR_DIAL: open = dial_serve(c, &payload); break;
      default: open = files_serve(c, type, &payload);
    }
  }
}

static void *worker(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    if (queued == 0) {
      if (idle_threads > MAX_IDLE_THREADS) break;
      pthread_cond_wait(&arrived, &lock);
      continue;
    }
    struct conn c = {.fd = queue[--queued]};
    idle_threads--;
    c.next = connections;
    connections = &c;
    pthread_mutex_unlock(&lock);

    serve(&c);

    pthread_mutex_lock(&lock);
    struct conn **link = &connections;
    while (*link != &c) link = &(*link)->next;
    *link = c.next;
    if (c.fd >= 0) close(c.fd);
    in_free(&c.in);
    out_free(&c.out);
    nconnections--;
    idle_threads++;
  }
  idle_threads--;
  pthread_mutex_unlock(&lock);
  return NULL;
}

// Keeps threads in reserve. A failure (the guest is at its pids limit) is fine: connections then wait for a thread.
static void add_threads(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_mutex_lock(&lock);
  while (idle_threads - queued < SPARE_THREADS) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, worker, NULL) != 0) break;
    idle_threads++;
  }
  pthread_mutex_unlock(&lock);
  pthread_attr_destroy(&attributes);
}

static void accept_one(int listen_fd) {
  int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) {
    // Out of descriptors or memory: give the connections that hold them a moment instead of spinning.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) poll(NULL, 0, 10);
    return;
  }
  pthread_mutex_lock(&lock);
  bool room = nconnections < MAX_CONNECTIONS;
  if (room) {
    nconnections++;
    queue[queued++] = fd;
    pthread_cond_signal(&arrived);
  }
  pthread_mutex_unlock(&lock);
  if (!room) close(fd);
}

static void reap_children(int children) {
  struct signalfd_siginfo drained[8];
  while (read(children, drained, sizeof drained) > 0) continue;
  process_reap();
}

// Whether this is the sandbox that was left, which goes on as it was, or one restored elsewhere, which has been given
// another identity: one of the two comes. Returns the new socket; it listens already where it was made from inside.
static int await_word(int children, struct guest_identity *next, bool *restored) {
  for (;;) {
    if (travels()) {
      int fd = travel_meet(children, next, restored);
      if (fd >= 0) return fd;
      reap_children(children);
      continue;
    }
    if (inside_told_to_go_on() || (*restored = inside_take_identity(next))) return -1;
    struct pollfd wait = {.fd = children, .events = POLLIN};
    if (poll(&wait, 1, STILL_MS) > 0) reap_children(children);
  }
}

// Returns the new listening socket.
static int stand_still(int listen_fd, int children) {
  struct guest_identity next;
  bool restored = false;
  uint64_t count;
  ssize_t ignored = read(still_asked, &count, sizeof count);
  (void)ignored;
  close(listen_fd);
  if (is_inside()) inside_stop_listening();
  int fd = await_word(children, &next, &restored);
  pthread_mutex_lock(&lock);
  if (restored) {
    memcpy(secret, next.secret, sizeof secret);
    strcpy(activation, next.activation);
  }
  explicit_bzero(&next, sizeof next);
  still = false;
  pthread_mutex_unlock(&lock);
  if (!travels()) return inside_listen();
  bool listens = listen(fd, BACKLOG) == 0;
  travel_answer(listens);
  return listens ? fd : -1;
}

_Noreturn void guest_main(int listen_fd, const char *id, const uint8_t key[32]) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);  // inherited by every thread; processes unblock them for themselves
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  int children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  still_asked = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  mallopt(M_ARENA_MAX, 1);  // an arena per thread would multiply idle memory
  strcpy(activation, id);   // its length was checked by the launcher
  memcpy(secret, key, sizeof secret);
  umask(0);
  add_threads();
  for (;;) {
    struct pollfd waits[] = {{.fd = listen_fd, .events = POLLIN}, {.fd = children, .events = POLLIN}, {.fd = still_asked, .events = POLLIN}};
    if (poll(waits, 3, -1) < 0) continue;
    if (waits[1].revents != 0) reap_children(children);
    if (waits[2].revents != 0) {
      listen_fd = stand_still(listen_fd, children);
      if (listen_fd < 0) _exit(1);  // it could never be reached again: its end is seen
      continue;
    }
    if (waits[0].revents != 0) {
      accept_one(listen_fd);
      add_threads();
    }
  }
}
