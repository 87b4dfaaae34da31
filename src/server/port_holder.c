/*
 * Who listens on a port: the socket's inode from /proc/net/tcp and tcp6, then
 * the process that has it open. Linux; elsewhere, and for processes of other users, the answer is "not known".
 */
#include "server/server.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LISTENING = 10 }; /* TCP_LISTEN in the kernel's table */

/* The inode of the listening socket, or 0. */
static unsigned long listening_inode(const char *table, int port)
{
    char line[512];
    unsigned long inode = 0;
    FILE *fp = fopen(table, "r");

    if (!fp)
        return 0;
    while (inode == 0 && fgets(line, sizeof(line), fp)) {
        unsigned local_port, state;
        unsigned long found;

        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u %lu",
                   &local_port, &state, &found) == 3 &&
            local_port == (unsigned)port && state == LISTENING)
            inode = found;
    }
    fclose(fp);
    return inode;
}

static bool has_open(const char *pid, const char *socket_name)
{
    char folder[64];
    bool found = false;

    (void)snprintf(folder, sizeof(folder), "/proc/%.16s/fd", pid);
    DIR *dir = opendir(folder);
    if (!dir)
        return false;
    for (struct dirent *e = readdir(dir); e && !found; e = readdir(dir)) {
        char link[128], target[64];

        (void)snprintf(link, sizeof(link), "%s/%.32s", folder, e->d_name);
        ssize_t n = readlink(link, target, sizeof(target) - 1);
        if (n > 0) {
            target[n] = '\0';
            found = strcmp(target, socket_name) == 0;
        }
    }
    closedir(dir);
    return found;
}

static void name_process(const char *pid, char *out, size_t cap)
{
    char path[64], name[32] = "";

    (void)snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
    FILE *fp = fopen(path, "r");
    if (fp) {
        if (!fgets(name, sizeof(name), fp))
            name[0] = '\0';
        name[strcspn(name, "\n")] = '\0';
        fclose(fp);
    }
    (void)snprintf(out, cap, name[0] ? "pid %.16s (%s)" : "pid %.16s", pid, name);
}

bool ink_port_holder(int port, char *out, size_t cap)
{
    unsigned long inode = listening_inode("/proc/net/tcp", port);
    char socket_name[64];
    bool found = false;

    if (inode == 0)
        inode = listening_inode("/proc/net/tcp6", port);
    if (inode == 0)
        return false;
    (void)snprintf(socket_name, sizeof(socket_name), "socket:[%lu]", inode);

    DIR *proc = opendir("/proc");
    if (!proc)
        return false;
    for (struct dirent *e = readdir(proc); e && !found; e = readdir(proc)) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && has_open(e->d_name, socket_name)) {
            name_process(e->d_name, out, cap);
            found = true;
        }
    }
    closedir(proc);
    return found;
}
