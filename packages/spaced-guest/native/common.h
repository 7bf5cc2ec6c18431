// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Shared by every file of spaced-launch. Everything that arrives in a frame is hostile: it is read only through
// struct cursor, which never leaves its payload.
#ifndef SPACE_COMMON_H
#define SPACE_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MAX_FRAME = 1024 * 1024, HEADER = 5, DATA_CHUNK = 60 * 1024 };

// ---- frames.c: reading fields

struct cursor {
  uint8_t *at;
  size_t left;
  bool bad;  // set once a field did not fit or held something it may not; everything read afterwards is zero
};

uint8_t take_u8(struct cursor *c);
uint16_t take_u16(struct cursor *c);
uint32_t take_u32(struct cursor *c);
uint64_t take_u64(struct cursor *c);
const uint8_t *take_raw(struct cursor *c, size_t length);
// A NUL-terminated string, moved in place over its own length prefix; a NUL inside makes the cursor bad.
char *take_string(struct cursor *c);

// ---- frames.c: writing frames

struct out {
  uint8_t *buf;
  size_t len, cap;
  size_t frame;  // where the open frame begins
  bool failed;   // out of memory: nothing more is added, sending fails
};

void out_begin(struct out *o, uint8_t type);
void out_end(struct out *o);
void put_u8(struct out *o, uint8_t v);
void put_u16(struct out *o, uint16_t v);
void put_u32(struct out *o, uint32_t v);
void put_u64(struct out *o, uint64_t v);
void put_raw(struct out *o, const void *bytes, size_t length);
void put_string(struct out *o, const char *text);
// Room for `length` bytes at the end, or NULL.
uint8_t *out_room(struct out *o, size_t length);
void out_error(struct out *o, int error, const char *step);
void out_free(struct out *o);

// ---- frames.c: sockets

struct in {
  uint8_t *buf;
  size_t start, len, cap;  // bytes [start, start + len) are not yet consumed
};

// Takes the next whole frame out of `in`: 1 found, 0 more bytes are needed, -1 the peer broke the protocol.
int in_frame(struct in *in, uint8_t *type, struct cursor *payload);
// One recv(2) into `in`: as recv. ENOBUFS when there is no memory.
ssize_t in_receive(struct in *in, int fd, int flags);
void in_free(struct in *in);
// Writes everything (blocking) and empties `o`. False when the peer is gone.
bool out_send(struct out *o, int fd);

// ---- hmac.c

struct sha256 {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[64];
};
void hmac_sha256(const uint8_t key[32], const void *const parts[], const size_t lengths[], int n, uint8_t mac[32]);
bool same_bytes(const uint8_t *a, const uint8_t *b, size_t length);  // constant time

// ---- records.c

struct start;
struct host;
struct claim;
bool parse_start(struct start *s, struct cursor *p);  // what follows it stays in the payload
bool parse_restore(struct start *s, struct cursor *p, char **images, char ***argv);  // `argv` to be freed, also when it fails
bool parse_host(struct host *h, struct cursor *p);  // to be freed with host_free, also when it fails
bool parse_run(struct host *h, struct cursor *p);   // as parse_host
void host_free(struct host *h);
// `spare` and `socket_path` stay in the payload.
bool parse_claim(struct claim *c, struct cursor *p, char **spare, char **socket_path, uint32_t *socket_uid);

// ---- the guest's side (guest.c, process.c, files.c)

enum {
  FR_HELLO = 1, FR_HELLO_OK = 2, FR_REKEY = 3, FR_OK = 16, FR_ERROR = 17, FR_DATA = 18, FR_END = 19, FR_CONTENT = 20,
  FR_STAT = 32, FR_LIST, FR_READ, FR_WRITE, FR_MKDIR, FR_RENAME, FR_REMOVE, FR_SYNC, FR_STATFS, FR_SPAWN, FR_DIAL, FR_KILLALL, FR_ATTACH, FR_WATCH, FR_FETCH, FR_QUIESCE, FR_FORSAKE = 56,
  FR_STARTED = 48, FR_STDOUT, FR_STDERR, FR_PTY, FR_EXITED, FR_STDIN_TAKEN, FR_EVENT, FR_OVERFLOW,
  FR_STDIN = 64, FR_STDIN_EOF, FR_SIGNAL, FR_RESIZE,
};

struct conn {
  int fd;
  uint64_t epoch;  // of the identity it said hello under
  bool owned;      // by a process, which tells its end itself
  struct in in;
  struct out out;
  struct conn *next;
};

// Blocking: the next frame, or false when the connection ended or broke the protocol.
bool conn_frame(struct conn *c, uint8_t *type, struct cursor *payload);
bool conn_answer(struct conn *c);  // sends c->out
bool conn_error(struct conn *c, int error, const char *step);
bool conn_was_rekeyed(const struct conn *c);
// A process owns it from now on: a rekey only half-closes it, so that nothing on its way to the host is lost.
void conn_own(struct conn *c);
// Its process has ended: it serves requests again. False: not this one, its identity has ended.
bool conn_disown(struct conn *c);
// After a rekey: drops what still comes until the host has closed its end, within a limit.
void conn_drain(struct conn *c);
// Give away and take over a connection's descriptor: a rekey in another thread shuts down only what is held.
int conn_release(struct conn *c);
void conn_hold(struct conn *c, int fd, uint64_t epoch);

// One file operation; false when the connection must be closed.
bool files_serve(struct conn *c, uint8_t type, struct cursor *payload);
// FETCH: adds its answer to c->out, to be sent with those of other requests at hand.
bool files_fetch(struct conn *c, struct cursor *payload);
// Appends an entry (PROTOCOL.md "Entry") for `path`, shown as `shown`. False with errno when there is nothing there.
bool files_put_entry(struct out *o, const char *path, const char *shown);
// WATCH: serves it until the host has gone; false.
bool watch_serve(struct conn *c, struct cursor *payload);

// SPAWN: false when the connection is used up. It serves the process to its end.
bool process_spawn(struct conn *c, struct cursor *payload);
// ATTACH: as process_spawn.
bool process_attach(struct conn *c, struct cursor *payload);
// An identity has ended: every process looks after its connection.
void process_wake_all(void);
// Reaps every dead child, of any thread. Owners watch pidfds; where the kernel has none they are woken.
void process_reap(void);
// Nobody will attach to those that wait for it: what they say is dropped from now on.
void process_forsake_waiting(void);
bool dial_serve(struct conn *c, struct cursor *payload);

// ---- the launcher's side (launch.c, start.c, confine.c)

struct bind {
  char *source, *target;
  bool read_only;
};

enum { MAX_BINDS = 32, MAX_CGROUPS = 16 };

// What makes a prepared guest an activation: the message by which CLAIM reaches it, with its listening socket beside it.
struct claim {
  char activation[257], hostname[65], boot_id[65];
  uint8_t secret[32];
  uint64_t file_bytes;
};

struct start {
  char *activation, *socket_path, *hostname, *lower, *upper, *work, *root, *boot_id;
  uint8_t secret[32];
  uint32_t socket_uid, uid_base, tmpfs_bytes;
  uint64_t file_bytes;
  uint32_t nbinds, ncgroups;
  struct bind binds[MAX_BINDS];
  char *cgroups[MAX_CGROUPS];
  int listen_fd;  // bound already; -1: not yet
  char *program;  // what the guest's pid 1 executes, where it can be saved and restored; empty: it cannot
};

struct host_bind {
  char *path;
  bool read_only;
};

struct host {
  char *name, *stderr_path;
  uint32_t uid, gid, argc, envc, nbinds;
  char **argv, **envp;
  struct host_bind binds[MAX_BINDS];
  uint32_t ncgroups;  // only of a RUN
  char *cgroups[MAX_CGROUPS];
};

struct launcher {
  struct sock_filter *filter;
  size_t filter_length;
  char *dev_path;  // a read-only /dev to clone for every guest
  char *programs_path;  // travellers' programs: a guest that looks where its own lies learns nothing of the host
  char *run_path;  // a small /run for CRIU: what it finds out about the kernel is kept there
  char *title;     // argv's memory, to be overwritten in guests
  size_t title_length;
};

// Serves until QUIT (true) or until nobody has been connected for `orphan_seconds` (false; -1: never). Nothing runs any more.
int fence_timer(void);
bool fence_at(uint64_t boot_time_ns);
bool fence_has_passed(void);
char *fence_file(char *const *cgroup_files, uint32_t count);
bool fence_freeze(const char *file);
void fence_thaw(const char *file);

bool launch_serve(const struct launcher *l, int listen_fd, int signal_fd, int orphan_seconds);
void launch_say_done(void);  // the last answer, to the client that sent QUIT

// What a started child tells the launcher, as far as it goes: zero alone is success.
struct report {
  int32_t error, guest;  // `guest`: of a restorer, the process that it has restored
  char step[24];
};

// Reports the failed step on the status pipe and ends the process. Only in children that have not yet started.
_Noreturn void fail_start(int status_fd, const char *step);
// The rest of a started child's life: confines itself and serves. `status_fd` tells the launcher. A prepared one stops
// half way, says so, and waits for its claim.
_Noreturn void start_guest(const struct launcher *l, struct start *s, bool prepared, int userns_fd, int status_fd);
int bind_socket(const char *path, uint32_t uid);
void keep_descriptors(int null_fd, int *kept[], int n);
void unblock_signals(void);
_Noreturn void start_host(struct host *h, int status_fd);
_Noreturn void start_runtime(struct host *h, int status_fd);
bool raise_loopback(void);
void enter_groups(char *const *cgroup_files, uint32_t count, int status_fd);
// Its descriptor, or -1 with errno. `is_saved`: CRIU will save what runs in it.
int make_user_namespace(uint32_t uid_base, bool is_saved);
void reap_holder(bool wait);                 // what is left of the last one's making; without waiting if it has not ended
bool make_dev_template(const char *path);
void run_in_user_namespace(uint32_t uid_base, char **argv);  // returns only when it failed, with errno

// Returns the descriptor of the guest's boot id, for confine_names.
int confine_mounts(struct start *s, const char *dev_path, int userns_fd, int status_fd);
void confine_names(const struct start *s, int boot_id_fd, int status_fd);
const char *stage_mounts(struct start *s, const struct launcher *l, int userns_fd, const char *images, int status_fd);  // where the shared memory is
void confine_identity(int userns_fd, int status_fd);
void confine_privileges(const struct launcher *l, const struct start *s, int status_fd);
void drop_bounding_set(uint64_t keep);
bool keep_guest_capabilities(void);  // and no others, for good
bool keep_distinction(void);          // of a traveller's pid 1, once it executes its own program
extern const uint64_t guest_root_capabilities;
_Noreturn void guest_main(int listen_fd, const char *activation, const uint8_t secret[32]);

enum { MAX_ACTIVATION = 256 };
struct guest_identity {
  char activation[MAX_ACTIVATION + 1];
  uint8_t secret[32];
};

// ---- travel.c: a guest whose processes are saved and restored with all their memory, by CRIU

// In the guest's user namespace: makes the namespaces anew, so that it owns them.
void own_namespaces(int status_fd);
// In the launcher: the last bind, which is the program, will be of a copy among the launcher's programs.
bool place_program(struct start *s, const char *programs_path);
// Executes the guest's program, where its own tree has it. Listens on `listen_fd` then, and says so.
_Noreturn void become_traveller(const struct start *s, int listen_fd, int status_fd);
_Noreturn void run_traveller(int argc, char **argv);
// Mounts what a restored guest is to find, and executes the restorer.
_Noreturn void start_restorer(const struct launcher *l, struct start *s, const char *images, char **argv, int userns_fd, int status_fd);
// `spaced-launch --keep PIDFILE`: in the restorer's place once it has succeeded. Ends as the guest does.
_Noreturn void keep_restored(const char *pid_file);
// `spaced-launch` without arguments: what CRIU runs between its steps.
int restore_hook(void);
bool travels(void);
// While nothing reaches the guest: until it is told who it is from now on. Returns its socket, bound; -1: it never was.
int travel_meet(int children, struct guest_identity *next, bool *restored);
void travel_answer(bool listens);
// The launcher's side. Returns the connection on which the guest will answer, or -1 with errno.
int meet_traveller(pid_t guest, const struct claim *next, int socket_fd);

// ---- inside.c: a guest that is pid 1 of a user-space kernel, which is saved and restored with all its memory

_Noreturn void run_inside(const char *folder, bool copied);
bool is_inside(void);
int inside_listen(void);          // a listening socket in the folder, or -1
void inside_stop_listening(void);  // after the socket was closed
bool inside_told_to_go_on(void);
// After a restore: whether there is one. It is taken out of the folder.
bool inside_take_identity(struct guest_identity *identity);

#endif
