#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this machine is, for `serve` and `doctor`. */
struct machine {
    char cpu[96];       /* the processor's own name; "unknown processor" */
    char features[160]; /* those that matter here, "AVX2 FMA F16C"; may be empty */
    bool has_avx2,
        has_vnni; /* x86: 8-bit dot products without saturation (AVX512-VNNI or AVX-VNNI) */
    bool is_x86;
    int n_cpus;           /* this process may use */
    int64_t memory_total; /* bytes; the control group's limit when that is lower. 0: unknown */
    int64_t memory_available;
};

void machine_look(struct machine *m);

/* The largest amount of memory this process has had so far, in bytes. */
int64_t machine_peak_memory(void);

#endif
