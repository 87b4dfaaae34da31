#ifndef ENGINE_STATS_H
#define ENGINE_STATS_H

#include <stdint.h>

/* Rows of a decoder step, in classes: 1, 2, 3-4, 5-8, 9-16, ..., 129-256, more. */
enum { INK_ROWS_CLASSES = 10 };

/* What the engine has done with one model since it started, and what it holds now. */
struct ink_engine_stats {
    /* counters */
    uint64_t jobs_submitted, jobs_refused; /* refused: the queue was full */
    uint64_t jobs_finished, jobs_cancelled, jobs_expired, jobs_failed;
    uint64_t encoder_passes; /* sources encoded */
    uint64_t encoder_batches;
    uint64_t encoder_reuses;  /* sources whose encoding was kept from before */
    uint64_t encoder_repeats; /* passes done again because memory was needed elsewhere */
    uint64_t tokens_source, tokens_output;
    uint64_t redraws;
    uint64_t steps, rows;                   /* of the decoder */
    uint64_t rows_class[INK_ROWS_CLASSES];  /* steps by number of rows */
    double encode_ms, decode_ms, sample_ms; /* time spent in each */
    /* gauges */
    int queue_length;
    int jobs_running; /* admitted and not ended */
    int sequences_running;
    int blocks_total, blocks_free; /* KV memory; what kept sources hold counts as free */
    int sources_kept_blocks;
};

/* The class of a step with `n_rows` rows. */
int ink_stats_rows_class(int n_rows);
/* Most rows of class `i`; -1 for the last one, which has no bound. */
int ink_stats_rows_bound(int i);

#endif
