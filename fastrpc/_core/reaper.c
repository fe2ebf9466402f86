/* Runs one program at a time for the server, and ends all descendants of that program.
 *
 * The server starts this program with one end of a Unix stream socket as descriptor 3 and talks to it in
 * the frames below; `fastrpc/processes/reapers.py` is the other side. On Linux the reaper is a sub-reaper: what
 * descendants that outlive its program, in any session, become its children, so it always knows whether
 * a process is left. When the socket ends, the server has ended in some way: SIGTERM to all, 0.3 s, SIGKILL.
 *
 * There it is two processes. The first, its guardian, only waits: it is a sub-reaper as well, so when the
 * reaper is killed, everything below it becomes the guardian's, which kills it and tells the server. When the
 * guardian is killed, the reaper does the same. The server sees the socket end only when both are gone.
 *
 * Elsewhere, or where this kernel refuses, it falls back on the program's process group, which a child
 * that starts a new session escapes; there is no guardian then. `prepare` finds out once what the system
 * offers. Compiled with -DAS_ELSEWHERE, for the tests, it does not ask, and runs as elsewhere.
 *
 * Cost of a call: two messages, a pipe, a vfork, an exec. Memory is bounded: static tables, one request
 * of at most 16 MiB. It reads no output, knows no time limit and opens no file of the command's. */

#ifdef __linux__
#define _GNU_SOURCE
#endif
#if defined(__linux__) && !defined(AS_ELSEWHERE)
#define LINUX 1
#else
#define LINUX 0
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#if LINUX
#include <sys/prctl.h>
#ifndef SYS_pidfd_open /* the same numbers on every architecture; an old kernel answers ENOSYS */
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#endif

extern char **environ;

/* --- the frames: the same sizes and order as in processes/reapers.py ------------------------------------ */

enum { RUN = 1, TERMINATE = 2, LIST = 3 };               /* from the server */
enum { STARTED = 1, FAILED = 2, EXITED = 3, GONE = 4, LISTED = 5, LOST = 6 }; /* to it. LOST: the reaper or its
                                          guardian was killed, the other ends everything; GONE follows */
enum { HAS_STDIN = 1, HAS_SCRIPT = 2, IN_FILE = 4, TELL_START = 8 };

struct request { /* RUN is followed by `size` bytes: working directory, arguments, environment, all NUL-ended */
    uint32_t kind, flags, size, arguments, variables, grace_ms;
};

#define LISTED_AT_MOST 16

struct child {
    int32_t pid;
    char name[16];
};

struct report {
    uint32_t kind;
    int32_t pid;
    int32_t code;        /* exit code, or minus the signal's number; FAILED: errno */
    uint32_t flag;       /* EXITED: 1 if no process of the call is left. FAILED: 1 if chdir(2) failed */
    uint64_t duration_us;
    uint32_t killed;     /* SIGKILL was needed */
    uint32_t alive, listed;
    uint32_t reserved;
    struct child children[LISTED_AT_MOST];
};

#define SOCKET 3
#define INLINE_LIMIT (64 * 1024)
#define FILE_LIMIT (16 * 1024 * 1024)
#define STRINGS_LIMIT 262144
#define SERVER_GONE_GRACE_MS 300
#define SERVER_GONE_KILL_MS 3000
#define GROUP_PAUSE_MS 50
#define PARENT_PAUSE_MS 400

static char inline_payload[INLINE_LIMIT + 1];
static int wake[2];         /* written by the SIGCHLD handler */
static pid_t parent;        /* the guardian; of the guardian, and where there is none, the server */
static int parent_end = -1; /* readable once our parent has ended; where there is none, we look */
static int guarded;         /* our parent is a guardian */
static int leaving;         /* no request is served any more: this ends with the call, if there is one */
static int adopts;          /* orphans below us become our children, and /proc tells who is below us */
static int parent_death;    /* the kernel ends the program with us */

static struct {
    int busy, terminating, killing, killed;
    pid_t pid;     /* the program, until it is reaped */
    pid_t group;   /* its process group, as long as the call lasts */
    uint64_t began_us, deadline_us, next_pass_us;
    unsigned passes;
} call;

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* --- small system matters ------------------------------------------------------------------------- */

static const int IGNORED[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
#define IGNORED_COUNT (sizeof IGNORED / sizeof IGNORED[0])

static void on_child(int number) {
    int kept = errno;
    ssize_t written = write(wake[1], "", 1); /* a full pipe is as good: the loop wakes up */
    (void)number, (void)written;
    errno = kept;
}

static void set_flags(int descriptor, int nonblocking) {
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    if (nonblocking)
        fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

static void close_the_rest(void) {
#if LINUX
    if (syscall(SYS_close_range, SOCKET + 1, ~0U, 0) == 0)
        return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    if (most < 0 || most > 65536)
        most = 65536;
    for (int descriptor = SOCKET + 1; descriptor < most; descriptor++)
        close(descriptor);
}

static void prepare_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < 65; number++) /* what the server ignores, the program must not */
        sigaction(number, &action, NULL);
#ifdef SYS_rt_sigaction
    static const uint64_t as_at_first[8]; /* glibc's posix_spawn leaves its two own signals ignored, and its */
    for (long number = 32; number < 34; number++) /* sigaction will not touch them */
        syscall(SYS_rt_sigaction, number, as_at_first, NULL, (size_t)8);
#endif
    action.sa_handler = SIG_IGN; /* it ends with the server, not by a signal */
    for (size_t i = 0; i < IGNORED_COUNT; i++)
        sigaction(IGNORED[i], &action, NULL);
    action.sa_handler = on_child;
    action.sa_flags = SA_RESTART;
    sigaction(SIGCHLD, &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* --- talking to the server -------------------------------------------------------------------------- */

static void send_report(struct report *report) {
    const char *from = (const char *)report;
    size_t left = sizeof *report;
    while (left) {
        ssize_t sent = write(SOCKET, from, left);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return; /* the server is gone; poll says so in a moment, or has said so */
        from += sent;
        left -= (size_t)sent;
    }
}

static int receive_rest(char *into, size_t size) {
    while (size) {
        ssize_t got = read(SOCKET, into, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        into += got;
        size -= (size_t)got;
    }
    return 0;
}

/* Read one request and the descriptors that came with it; -1 when the server is gone. */
static int receive(struct request *request, int descriptors[4], int *count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec vector = {request, sizeof *request};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
    ssize_t got;
    do
        got = recvmsg(SOCKET, &message, 0);
    while (got < 0 && errno == EINTR);
    *count = 0;
    if (got <= 0)
        return -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            int found = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(descriptors, CMSG_DATA(part), (size_t)found * sizeof(int));
            *count = found;
        }
    for (int i = 0; i < *count; i++)
        set_flags(descriptors[i], 0);
    return receive_rest((char *)request + got, sizeof *request - (size_t)got);
}

/* --- who is below us -------------------------------------------------------------------------------- */

#if LINUX
#include "descendants.h"
#endif

static int group_lives(void) {
    return call.group > 0 && (kill(-call.group, 0) == 0 || errno == EPERM);
}

/* The same by process group alone: its members are unknown, only whether it has any is known. */
static uint32_t each_in_group(int number, struct report *report) {
    if (!group_lives())
        return 0;
    if (number && kill(-call.group, number) == 0 && number == SIGTERM)
        kill(-call.group, SIGCONT);
    if (report) {
        report->children[0].pid = (int32_t)call.group;
        report->listed = 1;
    }
    return 1;
}

static uint32_t each_left(int number, struct report *report) {
#if LINUX
    if (adopts) {
        int64_t alive = each_below(number, report);
        if (alive >= 0)
            return (uint32_t)alive;
    }
#endif
    return each_in_group(number, report);
}

/* --- a call ------------------------------------------------------------------------------------------ */

/* In the new process, up to exec: only system calls. Returns only when it failed, 1 for the folder. */
static int become(const char *folder, char **arguments, const int descriptors[4], uint32_t flags, pid_t reaper) {
    int next = 1;
    setsid();
#if LINUX
    if (parent_death) { /* if the reaper is killed, at least the program ends with it */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != reaper)
            _exit(127);
    }
#endif
    (void)reaper;
    if (dup2(descriptors[0], 1) < 0 || dup2(descriptors[0], 2) < 0)
        return 0;
    if ((flags & HAS_STDIN) && dup2(descriptors[next++], 0) < 0)
        return 0;
    if ((flags & HAS_SCRIPT) && dup2(descriptors[next], 3) < 0)
        return 0;
    if (*folder && chdir(folder) < 0)
        return 1;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_DFL;
    for (size_t i = 0; i < IGNORED_COUNT; i++)
        sigaction(IGNORED[i], &action, NULL);
    sigaction(SIGCHLD, &action, NULL);
    sigprocmask(SIG_SETMASK, &action.sa_mask, NULL);
    execvp(arguments[0], arguments);
    return 0;
}

struct failure {
    int number, folder;
};

static void start(const char *folder, char **arguments, char **variables, const int descriptors[4], uint32_t flags) {
    struct failure failure = {0, 0};
    struct report report;
    int status[2];
    sigset_t all, before;
    pid_t reaper = getpid();
    memset(&report, 0, sizeof report);
    memset(&call, 0, sizeof call);
    call.began_us = now_us();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    char **kept = environ;
    environ = variables; /* execvp looks for the program in the new PATH */
    pid_t pid = -1;
    if (pipe(status) == 0) {
        set_flags(status[0], 0);
        set_flags(status[1], 0);
#if LINUX
        pid = vfork();
#else
        pid = fork();
#endif
        if (pid == 0) {
            failure.folder = become(folder, arguments, descriptors, flags, reaper);
            failure.number = errno;
            ssize_t written = write(status[1], &failure, sizeof failure);
            (void)written;
            _exit(127);
        }
        if (pid < 0)
            failure.number = errno;
        close(status[1]);
        if (pid > 0) {
            ssize_t got;
            do
                got = read(status[0], &failure, sizeof failure);
            while (got < 0 && errno == EINTR);
            if (got != sizeof failure)
                failure.number = 0;
        }
        close(status[0]);
    } else {
        failure.number = errno;
    }
    environ = kept;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (failure.number) {
        if (pid > 0)
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        report.kind = FAILED;
        report.code = failure.number;
        report.flag = (uint32_t)failure.folder;
        send_report(&report);
        return;
    }
    call.busy = 1;
    call.pid = call.group = pid;
    if ((flags & TELL_START) || !parent_death) { /* the server must be able to end it without us */
        report.kind = STARTED;
        report.pid = (int32_t)pid;
        send_report(&report);
    }
}

static void terminate(uint32_t grace_ms) {
    uint64_t deadline = now_us() + (uint64_t)grace_ms * 1000u;
    if (!call.busy || call.killing)
        return;
    if (call.terminating) { /* a second request can only shorten the grace */
        if (deadline < call.deadline_us)
            call.deadline_us = deadline;
        return;
    }
    call.terminating = 1;
    call.deadline_us = deadline;
    if (grace_ms)
        each_left(SIGTERM, NULL);
}

static void leave(void) {
    leaving = 1;
    parent_end = -1;
    terminate(SERVER_GONE_GRACE_MS);
}

static void tell_of_a_loss(void) {
    struct report report;
    memset(&report, 0, sizeof report);
    report.kind = LOST;
    send_report(&report);
}

/* The server has ended; or the guardian, which is reported to a server that may still run. */
static void parent_is_gone(void) {
    if (guarded)
        tell_of_a_loss();
    leave();
}

/* Cut `count` NUL-ended strings out of a payload; NULL if it ends before. */
static char *cut(char *at, const char *end, char **strings, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        if (!stop)
            return NULL;
        strings[i] = at;
        at = stop + 1;
    }
    strings[count] = NULL;
    return at;
}

static void run(const struct request *request, const int descriptors[4], int count) {
    struct report refusal;
    memset(&refusal, 0, sizeof refusal);
    refusal.kind = FAILED;
    refusal.code = EINVAL;
    int in_file = request->flags & IN_FILE;
    int wanted = 1 + !!(request->flags & HAS_STDIN) + !!(request->flags & HAS_SCRIPT) + !!in_file;
    char *payload = inline_payload;
    if (request->size > (in_file ? FILE_LIMIT : INLINE_LIMIT)) {
        leave(); /* not our server: what follows cannot be understood */
        return;
    }
    if (in_file) {
        if (count != wanted) {
            send_report(&refusal);
            return;
        }
        payload = mmap(NULL, request->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptors[count - 1], 0);
        if (payload == MAP_FAILED) {
            refusal.code = errno;
            send_report(&refusal);
            return;
        }
    } else if (receive_rest(payload, request->size) < 0) {
        leave();
        return;
    }
    char **strings = NULL;
    if (count == wanted && !call.busy && request->arguments && request->arguments < STRINGS_LIMIT &&
        request->variables < STRINGS_LIMIT)
        strings = malloc((request->arguments + request->variables + 4) * sizeof *strings);
    if (strings) {
        char *folder[2], **variables = strings + request->arguments + 1;
        char *end = payload + request->size, *at = cut(payload, end, folder, 1);
        at = at ? cut(at, end, strings, request->arguments) : NULL;
        at = at ? cut(at, end, variables, request->variables) : NULL;
        if (at)
            start(folder[0], strings, variables, descriptors, request->flags);
        else
            send_report(&refusal);
        free(strings);
    } else {
        send_report(&refusal);
    }
    if (in_file)
        munmap(payload, request->size);
}

static void serve_request(void) {
    struct request request;
    int descriptors[4], count;
    if (receive(&request, descriptors, &count) < 0) {
        leave();
        return;
    }
    if (request.kind == RUN)
        run(&request, descriptors, count);
    else if (request.kind == TERMINATE)
        terminate(request.grace_ms);
    else if (request.kind == LIST) {
        struct report report;
        memset(&report, 0, sizeof report);
        report.kind = LISTED;
        if (call.busy) {
            report.pid = (int32_t)call.group;
            report.alive = each_left(0, &report);
        }
        send_report(&report);
    }
    for (int i = 0; i < count; i++)
        close(descriptors[i]);
}

/* Reap the ended processes. Returns whether no process is left. */
static int reap(int *main_ended, int *status) {
    for (;;) {
        int ended;
        pid_t pid = waitpid(-1, &ended, WNOHANG);
        if (pid > 0) {
            if (pid == call.pid) {
                *main_ended = 1;
                *status = ended;
                call.pid = 0;
            }
            continue;
        }
        if (pid < 0 && errno == EINTR)
            continue;
        return pid < 0 && (adopts || !group_lives());
    }
}

static void look_after_the_call(void) {
    struct report report;
    int main_ended = 0, status = 0;
    int none_left = reap(&main_ended, &status);
    if (main_ended) {
        memset(&report, 0, sizeof report);
        report.kind = EXITED;
        report.pid = (int32_t)call.group;
        report.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
        report.duration_us = now_us() - call.began_us;
        report.flag = (uint32_t)none_left;
        report.killed = (uint32_t)call.killed;
        if (none_left)
            call.busy = 0;
        else
            report.alive = each_left(0, &report);
        send_report(&report);
    } else if (none_left) {
        memset(&report, 0, sizeof report);
        report.kind = GONE;
        report.killed = (uint32_t)call.killed;
        call.busy = 0;
        send_report(&report);
    }
}

/* SIGKILL to all, repeatedly until no process is left: forks race with the scan. */
static void kill_pass(void) {
    if (each_left(SIGKILL, NULL))
        call.killed = 1;
    call.killing = 1;
    call.passes++;
    uint64_t pause = call.passes < 20 ? 200 : call.passes < 200 ? 2000 : 50000;
    call.next_pass_us = now_us() + pause;
}

static int pause_ms(void) {
    if (!call.busy)
        return -1;
    uint64_t now = now_us(), at = UINT64_MAX;
    if (call.killing)
        at = call.next_pass_us;
    else if (call.terminating)
        at = call.deadline_us;
    if (!adopts && !call.pid && at > now + GROUP_PAUSE_MS * 1000u)
        at = now + GROUP_PAUSE_MS * 1000u; /* no SIGCHLD tells of orphans that are not ours */
    if (parent_end < 0 && !leaving && at > now + PARENT_PAUSE_MS * 1000u)
        at = now + PARENT_PAUSE_MS * 1000u; /* nothing tells of the server's end while a fork of it lives */
    if (at == UINT64_MAX)
        return -1;
    return at <= now ? 0 : (int)((at - now + 999) / 1000 < 60000 ? (at - now + 999) / 1000 : 60000);
}

/* A group gets its SIGKILL as one: what is still there after many is ended already and not buried, or is not
 * ours to end. Of those that we adopt there may always be one more. */
static int is_in_vain(void) {
    return !adopts && call.killing && now_us() >= call.deadline_us + SERVER_GONE_KILL_MS * 1000u;
}

static void open_wake(void) {
    if (pipe(wake) < 0)
        _exit(1);
    set_flags(wake[0], 1);
    set_flags(wake[1], 1);
    prepare_signals();
}

static void drain_wake(void) {
    char bytes[256];
    while (read(wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
}

/* Serve requests and look after the call, until the server has ended and no process is left. */
static void serve(void) {
    while (!leaving || call.busy) {
        struct pollfd watched[3] = {
            {wake[0], POLLIN, 0}, {leaving ? -1 : SOCKET, POLLIN, 0}, {parent_end, POLLIN, 0}};
        int ready = poll(watched, 3, pause_ms());
        if (ready > 0 && watched[0].revents)
            drain_wake();
        if (ready > 0 && watched[1].revents)
            serve_request();
        else if (ready > 0 && watched[2].revents)
            parent_is_gone();
        else if (call.busy && !leaving && parent_end < 0 && getppid() != parent)
            parent_is_gone();
        if (call.busy)
            look_after_the_call();
        if (call.busy && (call.killing ? now_us() >= call.next_pass_us
                                       : call.terminating && now_us() >= call.deadline_us)) {
            kill_pass();
            look_after_the_call();
        }
        if (leaving && is_in_vain())
            return;
    }
}

#if LINUX
/* Wait for the reaper's end. When it was killed, end everything that was below it, and tell the server. */
static void stand_guard(pid_t reaper, int alive) {
    int status;
    open_wake();
    while (waitpid(reaper, &status, WNOHANG) == 0) {
        struct pollfd watched[2] = {{wake[0], POLLIN, 0}, {parent_end, POLLIN, 0}};
        int ready = poll(watched, 2, parent_end < 0 ? PARENT_PAUSE_MS : -1);
        if (ready > 0 && watched[0].revents)
            drain_wake();
        if ((ready > 0 && watched[1].revents) || (parent_end < 0 && getppid() != parent)) {
            parent_end = -1;
            if (alive >= 0) /* the reaper sees that the server has ended, although the socket may be held open */
                close(alive);
            alive = -1;
            kill(reaper, SIGCONT);
        }
    }
    if (WIFEXITED(status))
        return; /* by itself, so no process is left */
    call.busy = leaving = 1;
    parent_end = -1;
    tell_of_a_loss();
    terminate(0);
    serve();
}

/* Become two: the guardian, whose process is the one that the server knows, and the reaper, which returns. */
static void split(void) {
    int alive[2];
    if (pipe(alive) < 0)
        return;
    pid_t reaper = fork();
    if (reaper > 0) {
        close(alive[0]);
        set_flags(alive[1], 0);
        stand_guard(reaper, alive[1]);
        _exit(0);
    }
    close(alive[1]);
    if (reaper < 0) {
        close(alive[0]);
        return;
    }
    if (parent_end >= 0)
        close(parent_end);
    parent_end = alive[0];
    set_flags(parent_end, 0);
    guarded = 1;
    adopts = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0; /* that is not inherited */
}
#endif

static void prepare(void) {
    setsid();
    if (chdir("/") < 0)
        _exit(1);
    close_the_rest();
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    int null = open("/dev/null", O_RDWR);
    for (int number = 0; number < 3; number++)
        dup2(null, number);
    if (null > 2)
        close(null);
    parent = getppid();
#if LINUX
    adopts = proc_is_ours() && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
    parent_death = prctl(PR_SET_PDEATHSIG, 0) == 0;
    /* The socket's end is enough, unless a fork of the server holds it open as well. */
    parent_end = parent > 1 ? (int)syscall(SYS_pidfd_open, parent, 0) : -1;
    if (parent_end >= 0)
        set_flags(parent_end, 0);
    if (adopts)
        split();
#endif
    open_wake();
}

int main(void) {
    struct stat kind;
    if (fstat(SOCKET, &kind) < 0 || !S_ISSOCK(kind.st_mode))
        return 2; /* started by hand */
    prepare();
    serve();
    return 0;
}
