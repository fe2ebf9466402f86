/* Who is below the reaper, read from /proc: for Linux alone, and for `reaper.c` alone, which includes it.
 *
 * Costs about 4 us for each process of the system, and only to list or end processes. Memory is
 * one static table. What is done when /proc cannot be read is left to the reaper. */

#include <dirent.h>

#ifndef PROC
#define PROC "/proc"
#endif
#define TABLE_LIMIT 131072

struct entry {
    int32_t pid, parent;
    char state, below; /* below: 1 yes, 2 no, 0 not known yet */
    char name[16];
};
static struct entry table[TABLE_LIMIT];
static size_t entries;

/* Fill an entry from /proc/PID/stat: "pid (name) state parent …", where the name may hold anything. */
static int read_entry(int folder, const char *pid, struct entry *entry) {
    char path[32], text[256];
    size_t length = strlen(pid);
    if (length > 20)
        return -1;
    memcpy(path, pid, length);
    memcpy(path + length, "/stat", 6);
    int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return -1;
    text[size] = 0;
    char *open = strchr(text, '('), *shut = strrchr(text, ')');
    if (!open || !shut || shut[1] != ' ' || !shut[2])
        return -1;
    size_t name = (size_t)(shut - open - 1);
    if (name > sizeof entry->name)
        name = sizeof entry->name;
    memset(entry, 0, sizeof *entry);
    memcpy(entry->name, open + 1, name);
    entry->pid = (int32_t)strtol(pid, NULL, 10);
    entry->state = shut[2];
    entry->parent = (int32_t)strtol(shut + 3, NULL, 10);
    return 0;
}

static int by_pid(const void *left, const void *right) {
    int32_t a = ((const struct entry *)left)->pid, b = ((const struct entry *)right)->pid;
    return (a > b) - (a < b);
}

/* Take in every process of the system, ordered by pid. */
static int scan(void) {
    DIR *folder = opendir(PROC);
    if (!folder)
        return -1;
    entries = 0;
    int ordered = 1;
    struct dirent *item;
    while (entries < TABLE_LIMIT && (item = readdir(folder)) != NULL) {
        if (item->d_name[0] < '1' || item->d_name[0] > '9')
            continue;
        if (read_entry(dirfd(folder), item->d_name, &table[entries]) == 0) {
            ordered &= entries == 0 || table[entries - 1].pid < table[entries].pid;
            entries++;
        }
    }
    closedir(folder);
    if (!ordered)
        qsort(table, entries, sizeof table[0], by_pid);
    return 0;
}

static struct entry *find(int32_t pid) {
    struct entry key;
    key.pid = pid;
    return bsearch(&key, table, entries, sizeof table[0], by_pid);
}

/* Whether the parents of an entry lead to this process; remembered on the way. */
static int is_below(struct entry *entry, int32_t self) {
    struct entry *at = entry;
    int answer = 2;
    for (size_t steps = 0; at && steps < entries; steps++) {
        if (at->pid == self || at->pid <= 1)
            break;
        if (at->below || at->parent == self) {
            answer = at->below ? at->below : 1;
            break;
        }
        at = find(at->parent);
    }
    for (struct entry *mark = entry; mark && mark != at && !mark->below; mark = find(mark->parent))
        mark->below = (char)answer;
    if (at && !at->below && at->parent == self)
        at->below = (char)answer;
    return answer == 1;
}

/* Count the living below us, list some of them in `report` and send them `number`, where given.
 * Returns -1 when /proc cannot be read. */
static int64_t each_below(int number, struct report *report) {
    int32_t self = (int32_t)getpid();
    uint32_t alive = 0;
    if (scan() < 0)
        return -1;
    for (size_t i = 0; i < entries; i++) {
        struct entry *entry = &table[i];
        if (entry->pid == self || !is_below(entry, self) || entry->state == 'Z' || entry->state == 'X')
            continue;
        if (report && alive < LISTED_AT_MOST) {
            report->children[alive].pid = entry->pid;
            memcpy(report->children[alive].name, entry->name, sizeof entry->name);
            report->listed = alive + 1;
        }
        alive++;
        if (number && kill(entry->pid, number) == 0 && number == SIGTERM)
            kill(entry->pid, SIGCONT); /* a stopped process acts on it only when it goes on */
    }
    return alive;
}

/* Whether /proc is there and speaks of the same process numbers as we: in a namespace of pids whose /proc is
 * the outer one's, its numbers are other people's processes. */
static int proc_is_ours(void) {
    char number[16];
    ssize_t size = readlink(PROC "/self", number, sizeof number - 1);
    if (size <= 0)
        return 0;
    number[size] = 0;
    return strtol(number, NULL, 10) == getpid();
}
