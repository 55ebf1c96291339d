/* What stands between a process and its files while it is simulated; loaded by LD_PRELOAD.
 *
 * Every call that changes something below one folder is carried out on real files, numbered, and written to a log that
 * the disk model replays. At a number named in the control block the process is killed before, in or after the call, or
 * the call fails. Syncs do nothing but enter the log: what they would have saved is the model's business. Random bytes
 * and the wall clock that Python and SQLite see come from the control block, so that a run can be repeated exactly.
 *
 * Nothing happens before dpsim_begin is called, which a forked child does before it works.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, TRUNCATE, SYNC, SYNC_FOLDER, RENAME, LINK, UNLINK, MKDIR, RMDIR, CHMOD, NOTE, PUNCH,
       SYNC_FAILED, SYMLINK, NAMELESS, FAULT };
/* Classes that faults and pauses count by; ANY counts all changes, READ is apart. */
enum { ANY, DATA, SYNCS, NAMES, NOTES, READS, CLASSES };
enum { GO, KILL_BEFORE, KILL_AFTER, KILL_SHORT, FAIL, SHORT };

/* Mirrored by Control in shim.py. */
struct control {
    char root[256];
    uint64_t seed;
    int64_t wall_start, wall_tick, wall_jump, wall_jump_at;
    int64_t fault_class, fault_at, fault_action, fault_errno, fault_times, fault_share;
    int64_t pauses, pause_at[8];
    int64_t log_fd, pause_out, pause_in, who;
    int64_t counted[CLASSES];
    int64_t fired;
};

/* Mirrored by RECORD in shim.py. */
struct __attribute__((packed)) record {
    uint32_t size;
    uint8_t op, who;
    uint16_t path, path2;
    uint32_t mode;
    uint64_t inode, number;
    int64_t offset, length;
};

#define MOST_FDS 4096
struct opened { char *path; uint64_t inode; int synced, append, folder; };

static struct control *now;
static struct opened opened[MOST_FDS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static size_t root_length;
static uint64_t drawn;
static char left_out[64];
static uintptr_t known_low[4], known_high[4];
static int known;

#define REAL(name) ({ static __typeof__(&name) found_; if (!found_) found_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name); found_; })

/* --- paths and descriptors --- */

static void normalise(char *path) {
    char *parts[256]; int count = 0; char copy[4096]; char *rest = copy, *part;
    snprintf(copy, sizeof copy, "%s", path);
    while ((part = strsep(&rest, "/"))) {
        if (!*part || !strcmp(part, ".")) continue;
        if (!strcmp(part, "..")) { if (count) count--; continue; }
        if (count < 256) parts[count++] = part;
    }
    char *end = path; *end = 0;
    for (int i = 0; i < count; i++) end += sprintf(end, "/%s", parts[i]);
    if (!count) strcpy(path, "/");
}

static int inside(const char *path) {
    return !strncmp(path, now->root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* The absolute path of what a call names, in `full`; whether it is ours. */
static int ours(int at, const char *path, char *full) {
    if (!now || !path) return 0;
    if (path[0] == '/') snprintf(full, 4096, "%s", path);
    else if (at == AT_FDCWD) {
        if (!getcwd(full, 2048)) return 0;
        strncat(full, "/", 4095 - strlen(full)); strncat(full, path, 4095 - strlen(full));
    } else if (at >= 0 && at < MOST_FDS && opened[at].path) snprintf(full, 4096, "%s/%s", opened[at].path, path);
    else return 0;
    normalise(full);
    return inside(full);
}

static struct opened *file_of(int fd) {
    return now && fd >= 0 && fd < MOST_FDS && opened[fd].path ? &opened[fd] : NULL;
}

static void die(const char *why, const char *what) {
    dprintf(2, "the simulator does not know this call: %s %s\n", why, what);
    abort();
}

/* --- the log, the numbers and the faults --- */

static void log_it(int op, const char *path, const char *path2, uint64_t inode, int64_t offset, int64_t length,
                   uint32_t mode, const void *data, size_t size) {
    struct record head = {.op = op, .who = now->who, .path = path ? strlen(path) : 0, .path2 = path2 ? strlen(path2) : 0,
                          .mode = mode, .inode = inode, .number = now->counted[ANY], .offset = offset, .length = length};
    struct iovec parts[4] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)path2, head.path2}, {(void *)data, size}};
    head.size = sizeof head + head.path + head.path2 + size;
    /* One append: two processes may write the same log. */
    if (REAL(writev)(now->log_fd, parts, 4) != (ssize_t)head.size) die("the log cannot be written", "");
}

static void killed(void) {
    log_it(FAULT, NULL, NULL, 0, 0, 0, now->fault_action, NULL, 0);
    REAL(syscall)(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Count a call and say what is to become of it. */
static int gate(int class) {
    if (class != READS) now->counted[ANY]++;
    now->counted[class]++;
    if (class != READS)
        for (int i = 0; i < now->pauses; i++)
            if (now->pause_at[i] == now->counted[ANY]) {
                char byte = 'p';
                if (REAL(write)(now->pause_out, &byte, 1) != 1 || REAL(read)(now->pause_in, &byte, 1) != 1) killed();
            }
    if (now->fault_action == GO) return GO;
    if (now->fault_class != class && (now->fault_class != ANY || class == READS)) return GO;
    int64_t at = now->counted[now->fault_class], last = now->fault_at + now->fault_times - 1;
    if (at < now->fault_at || (now->fault_times >= 0 && at > last)) return GO;
    /* A full disk takes no more data or names, and can still be synced. */
    if (now->fault_action == FAIL && now->fault_errno == ENOSPC && class != DATA && class != NAMES) return GO;
    if (class == NOTES && (now->fault_action == FAIL || now->fault_action == SHORT)) return GO;
    now->fired++;
    if (now->fault_action == KILL_BEFORE || (now->fault_action == KILL_SHORT && class != DATA)) killed();
    return now->fault_action;
}

static int failed(void) {
    log_it(FAULT, NULL, NULL, 0, 0, 0, now->fault_action, NULL, 0);
    errno = now->fault_errno;
    return -1;
}

/* --- for the child: begin, and say something at a moment that is in the log --- */

static int learn(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size; (void)data;
    if (known < 4 && (strstr(info->dlpi_name, "libpython") || strstr(info->dlpi_name, "sqlite") || !info->dlpi_name[0])) {
        uintptr_t low = UINTPTR_MAX, high = 0;
        for (int i = 0; i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD) {
                uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
                if (from < low) low = from;
                if (to > high) high = to;
            }
        known_low[known] = low; known_high[known++] = high;
    }
    return 0;
}

static int from_known(void *caller) {
    for (int i = 0; i < known; i++)
        if ((uintptr_t)caller >= known_low[i] && (uintptr_t)caller < known_high[i]) return 1;
    return 0;
}

void dpsim_begin(void *control) {
    struct control *given = control;
    root_length = strlen(given->root);
    dl_iterate_phdr(learn, NULL);
    drawn = given->seed;
    now = given;
}

/* A planted bug: syncs of files whose path has this part are as if they had not been asked for. */
void dpsim_leave_out(const char *part) { snprintf(left_out, sizeof left_out, "%s", part); }

void dpsim_note(const void *data, size_t size) {
    if (!now) return;
    pthread_mutex_lock(&turn);
    int what = gate(NOTES);
    log_it(NOTE, NULL, NULL, 0, 0, 0, 0, data, size);
    if (what == KILL_AFTER) killed();
    pthread_mutex_unlock(&turn);
}

/* --- opening and closing --- */

static int open_any(int at, const char *path, int flags, mode_t mode) {
    char full[4096];
    __typeof__(&openat) real = REAL(openat);
    if (!ours(at, path, full)) return real(at, path, flags, mode);
    pthread_mutex_lock(&turn);
    struct stat found;
    int nameless = (flags & O_TMPFILE) == O_TMPFILE, missing = !nameless && lstat(full, &found) != 0;
    int fd, what = GO, makes = nameless || ((flags & O_CREAT) && missing);
    int cuts = !missing && !nameless && (flags & O_TRUNC) && found.st_size > 0;
    if (makes) what = gate(NAMES);
    else if (cuts) what = gate(DATA);
    if (what == FAIL) { fd = failed(); goto out; }
    fd = real(at, path, flags, mode);
    if (fd < 0) goto out;
    if (fd >= MOST_FDS) die("too many files are open", full);
    if (fstat(fd, &found)) die("fstat", full);
    free(opened[fd].path);
    opened[fd] = (struct opened){strdup(full), found.st_ino, (flags & (O_SYNC | O_DSYNC)) != 0, (flags & O_APPEND) != 0,
                                 S_ISDIR(found.st_mode)};
    if (makes) log_it(nameless ? NAMELESS : CREATE, full, NULL, found.st_ino, 0, 0, found.st_mode & 07777, NULL, 0);
    else if (cuts) log_it(TRUNCATE, full, NULL, found.st_ino, 0, 0, 0, NULL, 0);
    if (what == KILL_AFTER || what == KILL_SHORT) killed();
out:
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return fd;
}

#define OPEN(name, ...) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
        return open_any(AT_FDCWD, path, flags, mode); }
#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
        return open_any(at, path, flags, mode); }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)
int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return open_any(at, path, flags, 0); }
int __openat64_2(int at, const char *path, int flags) { return open_any(at, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* Streams of the C library write where no call can be seen: they may read ours, and no more. */
#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) { \
        char full[4096]; \
        if (ours(AT_FDCWD, path, full) && strpbrk(mode, "wa+")) die(#name, full); \
        return REAL(name)(path, mode); }
FOPEN(fopen) FOPEN(fopen64)

#define REFUSED(name, path) char full_[4096]; if (ours(AT_FDCWD, path, full_)) die(#name, full_);
int mkstemp(char *path) { REFUSED(mkstemp, path) return REAL(mkstemp)(path); }
int mkstemp64(char *path) { REFUSED(mkstemp64, path) return REAL(mkstemp64)(path); }
int mkostemp(char *path, int flags) { REFUSED(mkostemp, path) return REAL(mkostemp)(path, flags); }
int symlink(const char *to, const char *path) { REFUSED(symlink, path) return REAL(symlink)(to, path); }

int close(int fd) {
    if (file_of(fd)) {
        pthread_mutex_lock(&turn);
        free(opened[fd].path);
        opened[fd].path = NULL;
        pthread_mutex_unlock(&turn);
    }
    return REAL(close)(fd);
}

#define DUP_REFUSED(fd) if (file_of(fd)) die("dup", opened[fd].path);
int dup(int fd) { DUP_REFUSED(fd) return REAL(dup)(fd); }
int dup2(int fd, int to) { DUP_REFUSED(fd) DUP_REFUSED(to) return REAL(dup2)(fd, to); }
int dup3(int fd, int to, int flags) { DUP_REFUSED(fd) DUP_REFUSED(to) return REAL(dup3)(fd, to, flags); }

/* --- data --- */

static ssize_t write_any(int fd, const void *data, size_t size, off_t offset, int positioned) {
    struct opened *file = file_of(fd);
    if (!file) return positioned ? REAL(pwrite)(fd, data, size, offset) : REAL(write)(fd, data, size);
    pthread_mutex_lock(&turn);
    ssize_t done;
    int what = gate(DATA);
    if (what == FAIL) { done = failed(); goto out; }
    if ((what == KILL_SHORT || what == SHORT) && size > 1) {
        size_t part = size * (now->fault_share % 100) / 100;
        size = part ? part : 1;
    }
    if (!positioned) {
        struct stat found;
        offset = file->append && !fstat(fd, &found) ? found.st_size : lseek(fd, 0, SEEK_CUR);
    }
    done = positioned ? REAL(pwrite)(fd, data, size, offset) : REAL(write)(fd, data, size);
    if (done > 0) log_it(WRITE, NULL, NULL, file->inode, offset, done, 0, data, done);
    if (done > 0 && file->synced) log_it(SYNC, NULL, NULL, file->inode, 0, 0, 0, NULL, 0);
    if (what == KILL_AFTER || what == KILL_SHORT) killed();
out:
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}

ssize_t write(int fd, const void *data, size_t size) { return write_any(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return write_any(fd, data, size, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return write_any(fd, data, size, at, 1); }

static ssize_t writev_any(int fd, const struct iovec *parts, int count, off_t offset, int positioned) {
    ssize_t all = 0;
    for (int i = 0; i < count; i++) {
        if (!parts[i].iov_len) continue;
        ssize_t done = write_any(fd, parts[i].iov_base, parts[i].iov_len, offset + all, positioned);
        if (done < 0) return all ? all : -1;
        all += done;
        if ((size_t)done < parts[i].iov_len) break;
    }
    return all;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return file_of(fd) ? writev_any(fd, parts, count, 0, 0) : REAL(writev)(fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return file_of(fd) ? writev_any(fd, parts, count, at, 1) : REAL(pwritev)(fd, parts, count, at);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return pwritev(fd, parts, count, at); }
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    if (file_of(fd)) { errno = ENOTSUP; return -1; }
    return REAL(pwritev64v2)(fd, parts, count, at, flags);
}

/* Copies inside the kernel cannot be seen: without them the C library and Python fall back to reading and writing. */
ssize_t copy_file_range(int from, off_t *a, int to, off_t *b, size_t size, unsigned flags) {
    if (file_of(to)) { errno = ENOSYS; return -1; }
    return REAL(copy_file_range)(from, a, to, b, size, flags);
}
ssize_t sendfile64(int to, int from, off_t *at, size_t size) {
    static ssize_t (*real)(int, int, off_t *, size_t);
    if (file_of(to)) { errno = ENOTSOCK; return -1; }
    if (!real) real = (ssize_t (*)(int, int, off_t *, size_t))dlsym(RTLD_NEXT, "sendfile64");
    return real(to, from, at, size);
}

static ssize_t read_any(int fd, void *data, size_t size, off_t offset, int positioned) {
    struct opened *file = file_of(fd);
    if (!file) return positioned ? REAL(pread)(fd, data, size, offset) : REAL(read)(fd, data, size);
    pthread_mutex_lock(&turn);
    ssize_t done;
    int what = gate(READS);
    if (what == FAIL) done = failed();
    else {
        if (what == KILL_AFTER) killed();
        if (what == SHORT && size > 1) size = size * (now->fault_share % 100) / 100 ?: 1;
        done = positioned ? REAL(pread)(fd, data, size, offset) : REAL(read)(fd, data, size);
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
ssize_t read(int fd, void *data, size_t size) { return read_any(fd, data, size, 0, 0); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { return read_any(fd, data, size, at, 1); }
ssize_t pread64(int fd, void *data, size_t size, off_t at) { return read_any(fd, data, size, at, 1); }

static int truncate_any(int fd, const char *path, off_t length) {
    char full[4096];
    struct opened *file = path ? NULL : file_of(fd);
    if (path ? !ours(AT_FDCWD, path, full) : !file) return path ? REAL(truncate)(path, length) : REAL(ftruncate)(fd, length);
    pthread_mutex_lock(&turn);
    struct stat found;
    int done, what = gate(DATA);
    if (what == FAIL) done = failed();
    else {
        done = path ? REAL(truncate)(path, length) : REAL(ftruncate)(fd, length);
        if (!done && !(path ? stat(full, &found) : fstat(fd, &found)))
            log_it(TRUNCATE, NULL, NULL, found.st_ino, 0, length, 0, NULL, 0);
        if (what == KILL_AFTER || what == KILL_SHORT) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int ftruncate(int fd, off_t length) { return truncate_any(fd, NULL, length); }
int ftruncate64(int fd, off_t length) { return truncate_any(fd, NULL, length); }
int truncate(const char *path, off_t length) { return truncate_any(-1, path, length); }
int truncate64(const char *path, off_t length) { return truncate_any(-1, path, length); }

static int fallocate_any(int fd, int mode, off_t offset, off_t length) {
    struct opened *file = file_of(fd);
    if (!file) return REAL(fallocate)(fd, mode, offset, length);
    if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) { errno = EOPNOTSUPP; return -1; }
    pthread_mutex_lock(&turn);
    int done, what = gate(DATA);
    if (what == FAIL) done = failed();
    else {
        done = REAL(fallocate)(fd, mode, offset, length);
        if (!done) log_it(PUNCH, NULL, NULL, file->inode, offset, length, 0, NULL, 0);
        if (what == KILL_AFTER || what == KILL_SHORT) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int fallocate(int fd, int mode, off_t at, off_t length) { return fallocate_any(fd, mode, at, length); }
int fallocate64(int fd, int mode, off_t at, off_t length) { return fallocate_any(fd, mode, at, length); }
int posix_fallocate(int fd, off_t at, off_t length) {
    return file_of(fd) ? EOPNOTSUPP : REAL(posix_fallocate)(fd, at, length);
}
int posix_fallocate64(int fd, off_t at, off_t length) { return posix_fallocate(fd, at, length); }

static void *mmap_any(void *address, size_t size, int protection, int flags, int fd, off_t at) {
    if (!(flags & MAP_ANONYMOUS) && file_of(fd) && (flags & MAP_SHARED) && (protection & PROT_WRITE)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *)REAL(syscall)(SYS_mmap, address, size, protection, flags, fd, at);
}
void *mmap(void *a, size_t size, int prot, int flags, int fd, off_t at) { return mmap_any(a, size, prot, flags, fd, at); }
void *mmap64(void *a, size_t size, int prot, int flags, int fd, off_t at) { return mmap_any(a, size, prot, flags, fd, at); }

/* --- syncs --- */

static int sync_any(int fd, int (*real)(int)) {
    struct opened *file = file_of(fd);
    if (!file) return real(fd);
    if (*left_out && strstr(file->path, left_out)) return 0;
    pthread_mutex_lock(&turn);
    int done = 0, what = gate(SYNCS);
    if (what == FAIL) {
        log_it(SYNC_FAILED, file->path, NULL, file->inode, 0, 0, 0, NULL, 0);
        done = failed();
    } else {
        log_it(file->folder ? SYNC_FOLDER : SYNC, file->path, NULL, file->inode, 0, 0, 0, NULL, 0);
        if (what == KILL_AFTER) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int fsync(int fd) { return sync_any(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_any(fd, REAL(fdatasync)); }
/* It starts writing and promises nothing. */
int sync_file_range(int fd, off64_t at, off64_t size, unsigned flags) {
    return file_of(fd) ? 0 : REAL(sync_file_range)(fd, at, size, flags);
}

/* --- names --- */

static int rename_any(int a, const char *from, int b, const char *to, unsigned flags) {
    char old[4096], new[4096];
    int in = ours(a, from, old), out = ours(b, to, new);
    if (!in && !out) return REAL(syscall)(SYS_renameat2, a, from, b, to, flags);
    if (in != out || (flags & ~1u)) die("rename", from);
    pthread_mutex_lock(&turn);
    int done, what = gate(NAMES);
    if (what == FAIL) done = failed();
    else {
        done = REAL(syscall)(SYS_renameat2, a, from, b, to, flags);
        if (!done) log_it(RENAME, old, new, 0, 0, 0, 0, NULL, 0);
        if (what == KILL_AFTER) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int rename(const char *from, const char *to) { return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return rename_any(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return rename_any(a, from, b, to, flags); }

static int link_any(int a, const char *from, int b, const char *to, int flags) {
    char new[4096];
    if (!ours(b, to, new)) return REAL(linkat)(a, from, b, to, flags);
    pthread_mutex_lock(&turn);
    struct stat found;
    int done, what = gate(NAMES);
    if (what == FAIL) done = failed();
    else {
        done = REAL(linkat)(a, from, b, to, flags);
        if (!done && !lstat(new, &found)) log_it(LINK, new, NULL, found.st_ino, 0, 0, found.st_mode & 07777, NULL, 0);
        if (what == KILL_AFTER) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int link(const char *from, const char *to) { return link_any(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) { return link_any(a, from, b, to, flags); }

static int unlink_any(int at, const char *path, int flags) {
    char full[4096];
    if (!ours(at, path, full)) return REAL(unlinkat)(at, path, flags);
    pthread_mutex_lock(&turn);
    int done, what = GO;
    struct stat found;
    /* Names that are not there are no operation: what tidies up asks for many. */
    if (!lstat(full, &found)) what = gate(NAMES);
    if (what == FAIL && now->fault_errno == ENOSPC) what = GO;
    if (what == FAIL) done = failed();
    else {
        done = REAL(unlinkat)(at, path, flags);
        if (!done) log_it(flags & AT_REMOVEDIR ? RMDIR : UNLINK, full, NULL, 0, 0, 0, 0, NULL, 0);
        if (what == KILL_AFTER) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return unlink_any(at, path, flags); }
int rmdir(const char *path) { return unlink_any(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    struct stat found;
    return unlink_any(AT_FDCWD, path, !lstat(path, &found) && S_ISDIR(found.st_mode) ? AT_REMOVEDIR : 0);
}

static int mkdir_any(int at, const char *path, mode_t mode) {
    char full[4096];
    if (!ours(at, path, full)) return REAL(mkdirat)(at, path, mode);
    pthread_mutex_lock(&turn);
    int done, what = gate(NAMES);
    if (what == FAIL) done = failed();
    else {
        done = REAL(mkdirat)(at, path, mode);
        if (!done) log_it(MKDIR, full, NULL, 0, 0, 0, mode, NULL, 0);
        if (what == KILL_AFTER) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdir_any(AT_FDCWD, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return mkdir_any(at, path, mode); }

static int chmod_any(int fd, int at, const char *path, mode_t mode, int flags) {
    char full[4096];
    struct stat found;
    if (path ? !ours(at, path, full) : !file_of(fd))
        return path ? REAL(fchmodat)(at, path, mode, flags) : REAL(fchmod)(fd, mode);
    pthread_mutex_lock(&turn);
    int done, what = gate(NAMES);
    if (what == FAIL && now->fault_errno == ENOSPC) what = GO;
    if (what == FAIL) done = failed();
    else {
        done = path ? REAL(fchmodat)(at, path, mode, flags) : REAL(fchmod)(fd, mode);
        if (!done && !(path ? stat(full, &found) : fstat(fd, &found)))
            log_it(CHMOD, NULL, NULL, found.st_ino, 0, 0, mode, NULL, 0);
        if (what == KILL_AFTER) killed();
    }
    { int kept = errno; pthread_mutex_unlock(&turn); errno = kept; }
    return done;
}
int chmod(const char *path, mode_t mode) { return chmod_any(-1, AT_FDCWD, path, mode, 0); }
int fchmodat(int at, const char *path, mode_t mode, int flags) { return chmod_any(-1, at, path, mode, flags); }
int fchmod(int fd, mode_t mode) { return chmod_any(fd, AT_FDCWD, NULL, mode, 0); }

/* --- chance and the clock --- */

static void draw(void *to, size_t size) {
    unsigned char *end = to;
    while (size) {
        uint64_t mixed = __atomic_add_fetch(&drawn, 0x9E3779B97F4A7C15ull, __ATOMIC_SEQ_CST);
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
        mixed ^= mixed >> 31;
        size_t part = size < 8 ? size : 8;
        memcpy(end, &mixed, part);
        end += part; size -= part;
    }
}

ssize_t getrandom(void *to, size_t size, unsigned flags) {
    if (!now || !from_known(__builtin_return_address(0))) return REAL(syscall)(SYS_getrandom, to, size, flags);
    draw(to, size);
    return size;
}
int getentropy(void *to, size_t size) {
    if (!now || !from_known(__builtin_return_address(0))) return REAL(syscall)(SYS_getrandom, to, size, 0) < 0 ? -1 : 0;
    draw(to, size);
    return 0;
}
long syscall(long number, ...) {
    va_list more;
    va_start(more, number);
    long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long), d = va_arg(more, long),
         e = va_arg(more, long), f = va_arg(more, long);
    va_end(more);
    if (now && number == SYS_getrandom && from_known(__builtin_return_address(0))) {
        draw((void *)a, b);
        return b;
    }
    return REAL(syscall)(number, a, b, c, d, e, f);
}

static int64_t wall(void) {
    int64_t told = now->wall_start + now->wall_tick * now->counted[ANY];
    return now->counted[ANY] >= now->wall_jump_at ? told + now->wall_jump : told;
}
/* Waits inside the engines are timed by the real clock: a false one would make them spin or sleep for ever. */
int clock_gettime(clockid_t clock, struct timespec *to) {
    if (!now || clock != CLOCK_REALTIME || !from_known(__builtin_return_address(0)))
        return REAL(clock_gettime)(clock, to);
    int64_t told = wall();
    to->tv_sec = told / 1000000000; to->tv_nsec = told % 1000000000;
    return 0;
}
int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    if (!now || !from_known(__builtin_return_address(0))) return REAL(gettimeofday)(to, zone);
    int64_t told = wall();
    to->tv_sec = told / 1000000000; to->tv_usec = told % 1000000000 / 1000;
    return 0;
}
time_t time(time_t *to) {
    time_t told = now && from_known(__builtin_return_address(0)) ? wall() / 1000000000 : REAL(time)(NULL);
    if (to) *to = told;
    return told;
}
