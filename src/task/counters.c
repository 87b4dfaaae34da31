/* One row per number of the engine's snapshot. */
#include "task/counters.h"

#include "engine/stats.h"
#include "task/catalog.h"

#include <string.h>

int ink_served_counters(const struct ink_served *served, struct ink_counter *out)
{
    struct ink_engine_stats s;

    ink_served_stats(served, &s);
    const struct ink_counter rows[] = {
        { "jobs_submitted_total", "counter", "Jobs taken.", (double)s.jobs_submitted },
        { "jobs_refused_total", "counter", "Jobs refused: the queue was full.",
          (double)s.jobs_refused },
        { "jobs_finished_total", "counter", "Jobs done.", (double)s.jobs_finished },
        { "jobs_cancelled_total", "counter", "Jobs whose reader left.", (double)s.jobs_cancelled },
        { "jobs_expired_total", "counter", "Jobs past their deadline.", (double)s.jobs_expired },
        { "jobs_failed_total", "counter", "Jobs that could not be computed.",
          (double)s.jobs_failed },
        { "encoder_passes_total", "counter", "Source texts encoded.", (double)s.encoder_passes },
        { "encoder_batches_total", "counter", "Batches they were encoded in.",
          (double)s.encoder_batches },
        { "encoder_reuses_total", "counter", "Sources whose encoding was still there.",
          (double)s.encoder_reuses },
        { "encoder_repeats_total", "counter", "Passes repeated for lack of memory.",
          (double)s.encoder_repeats },
        { "source_tokens_total", "counter", "Tokens read.", (double)s.tokens_source },
        { "output_tokens_total", "counter", "Tokens written.", (double)s.tokens_output },
        { "redraws_total", "counter", "Candidates drawn again.", (double)s.redraws },
        { "decoder_steps_total", "counter", "Decoder steps.", (double)s.steps },
        { "decoder_rows_total", "counter", "Rows of those steps.", (double)s.rows },
        { "encode_seconds_total", "counter", "Time spent encoding.", s.encode_ms / 1000 },
        { "decode_seconds_total", "counter", "Time spent decoding.", s.decode_ms / 1000 },
        { "sample_seconds_total", "counter", "Time spent sampling.", s.sample_ms / 1000 },
        { "queue_length", "gauge", "Jobs waiting.", s.queue_length },
        { "jobs_running", "gauge", "Jobs admitted and not ended.", s.jobs_running },
        { "sequences_running", "gauge", "Candidates being written.", s.sequences_running },
        { "kv_blocks", "gauge", "Blocks of key and value memory.", s.blocks_total },
        { "kv_blocks_free", "gauge", "Free blocks of it.", s.blocks_free },
        { "kv_blocks_kept", "gauge", "Free blocks that hold sources for reuse.",
          s.sources_kept_blocks },
    };

    memcpy(out, rows, sizeof(rows));
    return (int)(sizeof(rows) / sizeof(rows[0]));
}
