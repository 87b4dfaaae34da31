#ifndef ENGINE_JOB_H
#define ENGINE_JOB_H

#include "base/status.h"
#include "engine/sampling.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A job is one request: one source and up to INK_JOB_SEQ_MAX sequences that share its encoding.
 *
 * Two parties hold it. The submitting side holds one reference and reads; the
 * engine holds the other and writes. Whoever lets go last frees it, so a
 * client that disconnects never pulls memory from under the engine.
 *
 * Readers pull: they keep one cursor per sequence, and the job's version tells whether anything has changed.
 * Tokens are only ever appended, but for a redraw, which the reader itself asks for. All functions of the first part may
 * be called from any thread; one reader at a time.
 */
struct ink_job;

enum { INK_JOB_SEQ_MAX = 64, INK_JOB_TOP_MAX = 20 };

/* A given continuation whose tokens are scored instead of drawn. */
struct ink_target {
    const int32_t *ids;
    int n;
};

struct ink_job_spec {      /* everything is copied */
    const int32_t *source; /* encoder input */
    int n_source;
    int n_seqs;       /* 0: the source is only encoded, when nothing else is to be done */
    int max_new;      /* tokens of one sequence, the end token included */
    int head;         /* output head of the model */
    int32_t eos;      /* ends a sequence; -1: nothing does */
    bool no_end;      /* eos is never drawn: all sequences have max_new tokens; for benchmarks */
    bool with_banned; /* banned tokens may appear: for scoring */
    bool fresh;       /* always runs the encoder, and leaves nothing behind for others */
    bool keep_open;   /* lives on after its sequences have ended, for redraws, until closed */
    int n_top;        /* alternatives kept for each token */
    struct ink_sampling sampling;
    const struct ink_target *targets; /* n_seqs entries of 1..max_new tokens; NULL: drawn */
    int timeout_ms;                   /* from submission; 0: none */
};

struct ink_job *ink_job_new(const struct ink_job_spec *spec); /* one reference */
struct ink_job *ink_job_ref(struct ink_job *job);
void ink_job_unref(struct ink_job *job); /* NULL is fine */

enum ink_job_stage {
    INK_JOB_NEW, /* not submitted */
    INK_JOB_QUEUED,
    INK_JOB_RUNNING,
    INK_JOB_ENDED,
};

/* Moments are ink_clock_ns(); 0: not reached. */
struct ink_job_status {
    enum ink_job_stage stage;
    int position; /* QUEUED: jobs ahead of this one */
    int wait_ms;  /* QUEUED: estimate */
    int64_t submitted_ns, encode_ns, encoded_ns, first_ns, last_ns;
    int n_redraws;
    bool source_kept;      /* the encoding was there already */
    struct ink_err result; /* ENDED: code INK_OK, or why it ended early */
};

void ink_job_status(struct ink_job *job, struct ink_job_status *out);

enum ink_seq_state {
    INK_SEQ_ACTIVE,
    INK_SEQ_STOP,   /* the end token is its last one */
    INK_SEQ_LENGTH, /* max_new tokens, none of them the end */
    INK_SEQ_HALTED, /* by ink_job_halt() */
};

struct ink_seq_view {
    enum ink_seq_state state;
    int attempt; /* 0, then one more with each redraw */
    int n_tokens;
};

/*
 * Copies the tokens of sequence `seq` from `from` on to `out` (room for `cap`) and returns their number. With
 * `top` not NULL, also the alternatives, spec.n_top for each token. Never waits.
 */
int ink_job_read(struct ink_job *job, int seq, int from, struct ink_token *out,
                 struct ink_token *top, int cap, struct ink_seq_view *view);

/* Counts changes. */
uint64_t ink_job_version(struct ink_job *job);
/* Waits until the version differs from `seen`, at most `timeout_ms`; whether it does. */
bool ink_job_wait(struct ink_job *job, uint64_t seen, int timeout_ms);

/*
 * Throws away what a sequence has and draws it once more, as the next attempt, from the same encoding.
 * Needs spec.keep_open. Fails with the job's own status once the job has ended.
 */
INK_NODISCARD enum ink_status ink_job_redraw(struct ink_job *job, int seq, struct ink_err *err);
/* Ends one sequence where it is; what it has stays readable. */
void ink_job_halt(struct ink_job *job, int seq);
/* No redraw will follow: the job ends as soon as its sequences have. */
void ink_job_close(struct ink_job *job);
/* A request, not an order; returns at once. The job ends with INK_CANCELLED. */
void ink_job_cancel(struct ink_job *job);

/*
 * For a reader that must not block: `wake(arg)` is called after every change,
 * with the job's lock held, so it has to be short and stay away from the job.
 * Once ink_job_set_waker(job, NULL, NULL) has returned it is never called again.
 */
void ink_job_set_waker(struct ink_job *job, void (*wake)(void *arg), void *arg);

/* --- Inside engine/ only; the engine writes, from its thread unless said otherwise. --- */

struct bell;

const struct ink_job_spec *job_spec(const struct ink_job *job);
/* Submitting thread, before the engine sees the job: who to wake when the reader wants something. */
void job_submit(struct ink_job *job, struct bell *bell, int position, int wait_ms);
int64_t job_deadline_ns(const struct ink_job *job); /* INT64_MAX: none */
bool job_is_cancelled(const struct ink_job *job);
bool job_is_closed(const struct ink_job *job);
/* Whether the reader has asked for a halt or a redraw since the last call. */
bool job_take_requests(struct ink_job *job);
void job_seq(struct ink_job *job, int seq, struct ink_seq_view *view);

/* Its place in the queue has changed; `announce` wakes the reader as well. */
void job_set_position(struct ink_job *job, int position, int wait_ms, bool announce);
void job_encode_begins(struct ink_job *job);
void job_encode_ends(struct ink_job *job);
/* In place of both: the encoding was there. */
void job_encode_kept(struct ink_job *job);
/*
 * Appends a token to `attempt` of a sequence, which then is in `state`. Nothing happens when the reader has moved on
 * (redrawn or halted). The reader learns of it with the next job_announce(): once a step, however many tokens.
 */
void job_push(struct ink_job *job, int seq, int attempt, const struct ink_token *token,
              const struct ink_token *top, enum ink_seq_state state);
void job_announce(struct ink_job *job);
/* The tokens of a sequence so far; only the engine thread may look, as only it writes. */
const struct ink_token *job_tokens(const struct ink_job *job, int seq);
void job_end(struct ink_job *job, const struct ink_err *result); /* once */

#endif
