/* The processor as it describes itself, and memory as the kernel counts it. */
#include "cli/machine.h"

#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

static void add_feature(struct machine *m, const char *name)
{
    size_t used = strlen(m->features);

    snprintf(m->features + used, sizeof(m->features) - used, "%s%s", used ? " " : "", name);
}

#if defined(__x86_64__) || defined(__i386__)

static void look_at_cpu(struct machine *m)
{
    unsigned a, b, c, d;
    bool leaf7 = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
    /* The builtins also ask whether the system saves the wide registers. */
    bool avx512 = __builtin_cpu_supports("avx512f") != 0;

    m->is_x86 = true;
    m->has_avx2 = __builtin_cpu_supports("avx2") != 0;
    if (m->has_avx2)
        add_feature(m, "AVX2");
    if (__builtin_cpu_supports("fma"))
        add_feature(m, "FMA");
    if (avx512)
        add_feature(m, "AVX-512");
    if (leaf7 && avx512 && (c & (1u << 11))) {
        add_feature(m, "AVX512-VNNI");
        m->has_vnni = true;
    }
    if (leaf7 && m->has_avx2 && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
        (a & (1u << 4))) {
        add_feature(m, "AVX-VNNI");
        m->has_vnni = true;
    }

    unsigned name[12];
    if (__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &name[4 * i], &name[4 * i + 1], &name[4 * i + 2],
                        &name[4 * i + 3]);
        snprintf(m->cpu, sizeof(m->cpu), "%.48s", (const char *)name);
        for (size_t n = strlen(m->cpu); n > 0 && m->cpu[n - 1] == ' '; n--)
            m->cpu[n - 1] = '\0';
    }
}

#else

static void look_at_cpu(struct machine *m)
{
    (void)m;
}

#endif

/* The value of `key` in a file of "key: number kB" lines, in bytes; 0 when it is not there. */
static int64_t proc_value(const char *path, const char *key)
{
    FILE *fp = fopen(path, "r");
    char line[256];
    int64_t found = 0;
    size_t len = strlen(key);

    while (fp && found == 0 && fgets(line, sizeof(line), fp)) {
        if (strncmp(line, key, len) == 0 && line[len] == ':')
            found = strtoll(line + len + 1, NULL, 10) * 1024;
    }
    if (fp)
        fclose(fp);
    return found;
}

/* A control group's number, or -1 when there is none or no limit. */
static int64_t group_value(const char *path)
{
    FILE *fp = fopen(path, "r");
    char line[64];
    int64_t value = -1;

    if (fp && fgets(line, sizeof(line), fp) && line[0] >= '0' && line[0] <= '9')
        value = strtoll(line, NULL, 10);
    if (fp)
        fclose(fp);
    return value;
}

void machine_look(struct machine *m)
{
    int64_t limit, used;

    *m = (struct machine){ .cpu = "unknown processor", .n_cpus = ink_thread_n_cpus() };
    look_at_cpu(m);
    m->memory_total = proc_value("/proc/meminfo", "MemTotal");
    m->memory_available = proc_value("/proc/meminfo", "MemAvailable");

    limit = group_value("/sys/fs/cgroup/memory.max");
    used = group_value("/sys/fs/cgroup/memory.current");
    if (limit > 0 && limit < m->memory_total) {
        m->memory_total = limit;
        if (used >= 0 && limit - used < m->memory_available)
            m->memory_available = limit > used ? limit - used : 0;
    }
}

int64_t machine_peak_memory(void)
{
    return proc_value("/proc/self/status", "VmHWM");
}
