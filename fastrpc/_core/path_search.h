/* Finds a program along PATH once a second at most: included by reaper.c.
 *
 * execvp tries every folder, and an execve that fails costs some 8 us: more than a tenth of `bash -c true` where
 * the shell is in the twelfth. As shells do, the place found last is tried first; unlike theirs, it is forgotten
 * after a second, so that a program that was installed meanwhile is found. What is not found here, for whatever
 * reason, is left to execvp, as is everything that must be told of a failure. */

#define PLACE_LIMIT 512
#define PATH_LIMIT 4096
#define PLACE_KEPT_US 1000000u

static struct {
    char name[64];
    char path[PATH_LIMIT];
    char place[PLACE_LIMIT];
    uint64_t until_us;
} found_last;

static const char *path_of(char *const *variables) {
    for (; *variables; variables++)
        if (strncmp(*variables, "PATH=", 5) == 0)
            return *variables + 5;
    return NULL;
}

/* Write the first place along `path` that holds a program of that name; 0 if there is none, or if a folder
 * before it is relative: it is looked up from the program's own working directory. */
static int search(const char *name, const char *path, char place[PLACE_LIMIT]) {
    size_t length = strlen(name);
    while (*path == '/') {
        size_t size = strcspn(path, ":");
        struct stat status;
        if (size + length + 2 > PLACE_LIMIT)
            return 0;
        memcpy(place, path, size);
        place[size] = '/';
        memcpy(place + size + 1, name, length + 1);
        if (access(place, X_OK) == 0 && stat(place, &status) == 0 && S_ISREG(status.st_mode))
            return 1;
        path += size + (path[size] == ':');
    }
    return 0;
}

/* Return where the program `name` was found along the PATH of `variables` within the last second, or is now; NULL
 * where execvp is to look. */
static const char *place_of(const char *name, char *const *variables, uint64_t now) {
    const char *path = path_of(variables);
    if (!path || !*name || strlen(name) >= sizeof found_last.name || strlen(path) >= PATH_LIMIT || strchr(name, '/'))
        return NULL;
    if (now >= found_last.until_us || strcmp(name, found_last.name) || strcmp(path, found_last.path)) {
        found_last.until_us = 0;
        if (!search(name, path, found_last.place))
            return NULL;
        strcpy(found_last.name, name);
        strcpy(found_last.path, path);
        found_last.until_us = now + PLACE_KEPT_US;
    }
    return found_last.place;
}
