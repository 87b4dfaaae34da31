/* A scripted task room; see fake_task.h. One thread a task plays the engine. */
#include "fake_task.h"

#include "task/catalog.h"
#include "task/counters.h"
#include "task/rewrite.h"
#include "task/score.h"
#include "task/task.h"
#include "task/tokenize.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ink_catalog {
    int unused;
};
struct ink_served {
    int unused;
};

static struct ink_catalog the_catalog;
static struct ink_served the_model;
struct ink_catalog *const fake_catalog = &the_catalog;

static atomic_int n_alive, n_cancelled;

static const char *const drafts[] = {
    "这家餐馆的菜品特别可口，服务也很贴心。", "这家饭店味道很棒，服务同样周到细致。",
    "该餐厅菜品美味，服务也十分体贴😀。",      "这里的饭菜很好吃，服务员也非常热情。",
    "这家店口味出众，服务让人满意。",
};

enum { EVENTS_MAX = 2048, TEXTS_MAX = 16 };

struct script_event {
    struct ink_task_event ev;
    int wait_ms; /* before it */
};

struct ink_task {
    struct script_event events[EVENTS_MAX];
    int n_events;
    char *texts[TEXTS_MAX];
    struct ink_candidate candidates[TEXTS_MAX];
    struct ink_token_detail tokens[TEXTS_MAX][64];
    struct ink_token_prob top[2];
    struct ink_task_result result;
    enum ink_status end_code; /* instead of DONE */
    struct ink_err end;
    pthread_t thread;
    bool hangs;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    int n_ready, n_read;
    bool cancelled, ended, stop;
    void (*wake)(void *arg);
    void *wake_arg;
};

int fake_tasks_alive(void)
{
    return atomic_load(&n_alive);
}

int fake_tasks_cancelled(void)
{
    return atomic_load(&n_cancelled);
}

/* --- catalog ---------------------------------------------------------------------------------- */

enum ink_status ink_catalog_find(struct ink_catalog *c, const char *name, unsigned capabilities,
                                 struct ink_served **out, struct ink_err *err)
{
    (void)c, (void)capabilities;
    if (name && strcmp(name, "fake") != 0)
        return ink_err_param(err, INK_NOT_FOUND, "model", "model_not_found",
                             "model: no '%s'; there is: fake", name);
    *out = &the_model;
    return INK_OK;
}

int ink_catalog_n_models(const struct ink_catalog *c)
{
    (void)c;
    return 1;
}

struct ink_served *ink_catalog_model(const struct ink_catalog *c, int i)
{
    (void)c, (void)i;
    return &the_model;
}

const char *ink_served_name(const struct ink_served *s)
{
    (void)s;
    return "fake";
}

unsigned ink_served_capabilities(const struct ink_served *s)
{
    (void)s;
    return INK_CAN_REWRITE | INK_CAN_SCORE;
}

const struct ink_model_info *ink_served_info(const struct ink_served *s)
{
    static const struct ink_model_info info = {
        .arch = "t5", .name = "fake", .type = "i8", .device = "cpu"
    };
    (void)s;
    return &info;
}

bool ink_served_is_demo(const struct ink_served *s)
{
    (void)s;
    return true;
}

int64_t ink_served_created(const struct ink_served *s)
{
    (void)s;
    return 1700000000;
}

int ink_served_max_source(const struct ink_served *s)
{
    (void)s;
    return 512;
}

int ink_served_max_target(const struct ink_served *s)
{
    (void)s;
    return 256;
}

int ink_served_n_parallel(const struct ink_served *s)
{
    (void)s;
    return 4;
}

bool ink_served_is_crowded(const struct ink_served *s)
{
    (void)s;
    return false;
}

int ink_served_counters(const struct ink_served *s, struct ink_counter *out)
{
    (void)s;
    out[0] = (struct ink_counter){ "jobs_cancelled_total", "counter", "Jobs whose reader left.",
                                   atomic_load(&n_cancelled) };
    return 1;
}

/* --- tokens ----------------------------------------------------------------------------------- */

enum ink_status ink_tokenize(const struct ink_served *served, struct ink_slice text,
                             bool add_special, int32_t **ids, size_t *n, struct ink_err *err)
{
    (void)served, (void)err;
    *ids = ink_alloc((text.len + 1) * sizeof(**ids));
    for (size_t i = 0; i < text.len; i++)
        (*ids)[i] = (unsigned char)text.ptr[i];
    if (add_special)
        (*ids)[text.len] = 1;
    *n = text.len + add_special;
    return INK_OK;
}

enum ink_status ink_detokenize(const struct ink_served *served, const int32_t *ids, size_t n,
                               char **text, size_t *len, struct ink_err *err)
{
    (void)served;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] > 127)
            return ink_err_param(err, INK_INVALID, "ids", "invalid_value",
                                 "ids[%zu]: %d is not in 0..127", i, (int)ids[i]);
    }
    *text = ink_alloc(n + 1);
    for (size_t i = 0; i < n; i++)
        (*text)[i] = (char)ids[i];
    *len = n;
    return INK_OK;
}

struct ink_slice ink_token_piece(const struct ink_served *served, int32_t id)
{
    (void)served;
    return id == 1 ? ink_slice_of("</s>") : ink_slice_of("\xe2\x96\x81");
}

enum ink_status ink_score(struct ink_catalog *catalog, const struct ink_score_request *rq,
                          struct ink_score_result *out, struct ink_err *err)
{
    (void)catalog;
    if (rq->n_target_ids < 0 && rq->target.len == 0)
        return ink_err_param(err, INK_INVALID, "target", "invalid_value", "target: empty");
    out->model = "fake";
    out->source_ids = ink_zalloc(sizeof(int32_t));
    out->n_source = 1;
    out->target = ink_zalloc(2 * sizeof(*out->target));
    out->n_target = 2;
    out->target[0].chosen = (struct ink_token_prob){ 7, -0.5F };
    out->target[1].chosen = (struct ink_token_prob){ 1, -0.25F };
    out->sum_logprob = -0.75;
    return INK_OK;
}

void ink_score_release(struct ink_score_result *r)
{
    free(r->source_ids);
    free(r->target);
}

/* --- rewrite ---------------------------------------------------------------------------------- */

void ink_rewrite_defaults(struct ink_rewrite_request *rq)
{
    *rq = (struct ink_rewrite_request){
        .n = 3, .temperature = 0.85, .top_p = 0.9, .repetition_penalty = 1, .max_tokens = 64
    };
}

static bool says(const struct ink_rewrite_request *rq, const char *word)
{
    return rq->text.len > 0 && strstr(rq->text.ptr, word) != NULL; /* JSON strings end in a NUL */
}

static void add(struct ink_task *t, int wait_ms, struct ink_task_event ev)
{
    if (t->n_events < EVENTS_MAX)
        t->events[t->n_events++] = (struct script_event){ ev, wait_ms };
}

/* Whole characters, one an event, the candidates taking turns. */
static void add_texts(struct ink_task *t, const struct ink_rewrite_request *rq, int step_ms)
{
    size_t at[TEXTS_MAX] = { 0 };
    bool more = true, did_reset = false;

    while (more) {
        more = false;
        for (int c = 0; c < rq->n; c++) {
            const char *s = t->texts[c] + at[c];
            size_t len = 0;

            if (*s == '\0')
                continue;
            more = true;
            do
                len++;
            while (((unsigned char)s[len] & 0xc0) == 0x80);
            add(t, c == 0 ? step_ms : 0,
                (struct ink_task_event){ .kind = INK_TASK_TEXT, .index = c, .text = { s, len } });
            at[c] += len;
            if (c == 1 && says(rq, "same") && !did_reset && at[c] > 8) {
                did_reset = true;
                at[c] = 0;
                add(t, 0,
                    (struct ink_task_event){
                        .kind = INK_TASK_RESET, .index = 1, .reason = "duplicate" });
            }
            if (t->texts[c][at[c]] == '\0')
                add(t, 0,
                    (struct ink_task_event){
                        .kind = INK_TASK_CANDIDATE, .index = c, .candidate = &t->candidates[c] });
        }
    }
}

static void write_script(struct ink_task *t, const struct ink_rewrite_request *rq)
{
    struct ink_task_result *r = &t->result;

    t->top[0] = (struct ink_token_prob){ 7, -0.5F };
    t->top[1] = (struct ink_token_prob){ 8, -1.5F };
    for (int c = 0; c < rq->n; c++) {
        char text[256];

        (void)snprintf(text, sizeof(text), c < 5 ? "%s" : "%s（%d）", drafts[c % 5], c);
        t->texts[c] = ink_strdup(text);
        for (int i = 0; i < 4; i++)
            t->tokens[c][i] = (struct ink_token_detail){ { 7, -0.5F }, t->top, 2 };
        t->candidates[c] = (struct ink_candidate){ .index = c,
                                                   .text = ink_slice_of(t->texts[c]),
                                                   .finish_reason = "stop",
                                                   .score = -0.5 - c,
                                                   .n_tokens = 4,
                                                   .n_attempts = 1,
                                                   .tokens = rq->details ? t->tokens[c] : NULL };
    }
    (void)snprintf(r->id, sizeof(r->id), "rw-0001");
    r->model = "fake";
    r->device = "cpu";
    r->cache = "off";
    r->seed = rq->has_seed ? rq->seed : 4711;
    r->usage = (struct ink_task_usage){ 12, 4 * rq->n };
    r->timings = (struct ink_task_timings){ 0.1, 0.2, 3, 10, 20, 0.7, 34 };
    r->candidates = t->candidates;
    r->n_candidates = rq->n;

    add(t, 0, (struct ink_task_event){ .kind = INK_TASK_QUEUED, .position = 0, .wait_ms = 5 });
    t->hangs = says(rq, "hang");
    if (says(rq, "mute"))
        add(t, 1000,
            (struct ink_task_event){ .kind = INK_TASK_QUEUED, .position = 0, .wait_ms = 0 });
    add_texts(t, rq, says(rq, "slow") ? 50 : 1);
    add(t, 0, (struct ink_task_event){ .kind = INK_TASK_DONE });
    if (says(rq, "fail"))
        t->end_code =
            ink_err_param(&t->end, INK_INVALID, "", "no_usable_output", "no candidate is usable");
    if (says(rq, "late"))
        t->end_code = ink_err_param(&t->end, INK_TIMEOUT, "timeout_ms", "deadline",
                                    "not done within the deadline");
    if (t->end_code != INK_OK)
        t->n_events = 2;
}

static void announce_locked(struct ink_task *t)
{
    pthread_cond_broadcast(&t->moved);
    if (t->wake)
        t->wake(t->wake_arg);
}

static void *play(void *arg)
{
    struct ink_task *t = arg;

    pthread_mutex_lock(&t->lock);
    while (t->n_ready < t->n_events && !t->stop && !t->cancelled) {
        struct timespec until = ink_clock_deadline(
            t->hangs && t->n_ready == 1 ? 3600 * 1000 : t->events[t->n_ready].wait_ms);
        int late = t->events[t->n_ready].wait_ms == 0 && !t->hangs;

        while (!late && !t->stop && !t->cancelled)
            late = pthread_cond_timedwait(&t->moved, &t->lock, &until);
        t->n_ready++;
        announce_locked(t);
    }
    announce_locked(t);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

enum ink_status ink_rewrite_check(struct ink_catalog *catalog, const struct ink_rewrite_request *rq,
                                  struct ink_served **served, struct ink_err *err)
{
    if (rq->max_tokens < 1 || rq->max_tokens > 256)
        return ink_err_param(err, INK_INVALID, "max_tokens", "invalid_value",
                             "max_tokens: %d is not in 1..256", rq->max_tokens);
    return ink_catalog_find(catalog, rq->model, INK_CAN_REWRITE, served, err);
}

enum ink_status ink_rewrite_start(struct ink_catalog *catalog, const struct ink_rewrite_request *rq,
                                  struct ink_task **out, struct ink_err *err)
{
    (void)catalog;
    if (rq->max_tokens < 1 || rq->max_tokens > 256)
        return ink_err_param(err, INK_INVALID, "max_tokens", "invalid_value",
                             "max_tokens: %d is not in 1..256", rq->max_tokens);
    if (says(rq, "busy"))
        return ink_err_param(err, INK_BUSY, "", "overloaded",
                             "the queue is full; try again in 3 s");
    if (says(rq, "long"))
        return ink_err_param(err, INK_INVALID, "text", "input_too_long",
                             "text: 600 tokens; the limit is 512");

    struct ink_task *t = ink_zalloc(sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
    ink_cond_init(&t->moved);
    write_script(t, rq);
    atomic_fetch_add(&n_alive, 1);
    if (ink_thread_start(&t->thread, "fake", play, t) != 0)
        abort();
    *out = t;
    return INK_OK;
}

/* The same script without its candidates would be the same waiting. */
enum ink_status ink_rewrite_prepare(struct ink_catalog *catalog,
                                    const struct ink_rewrite_request *rq, struct ink_task **out,
                                    struct ink_err *err)
{
    return ink_rewrite_start(catalog, rq, out, err);
}

enum ink_status ink_task_next(struct ink_task *t, int timeout_ms, struct ink_task_event *ev,
                              struct ink_err *err)
{
    enum ink_status st = INK_OK;
    (void)timeout_ms; /* the server never waits */

    pthread_mutex_lock(&t->lock);
    if (t->cancelled) {
        st = ink_err_set(err, INK_CANCELLED, "cancelled");
    } else if (t->n_read < t->n_ready) {
        if (t->end_code != INK_OK && t->n_read == t->n_events - 1) {
            *err = t->end;
            st = t->end_code;
            t->ended = true;
        } else {
            *ev = t->events[t->n_read++].ev;
            t->ended = ev->kind == INK_TASK_DONE;
        }
    } else {
        *ev = (struct ink_task_event){ .kind = INK_TASK_IDLE };
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

const struct ink_task_result *ink_task_result(const struct ink_task *t)
{
    return &t->result;
}

void ink_task_set_waker(struct ink_task *t, void (*wake)(void *arg), void *arg)
{
    pthread_mutex_lock(&t->lock);
    t->wake = wake;
    t->wake_arg = arg;
    pthread_mutex_unlock(&t->lock);
}

bool ink_task_has_event(struct ink_task *t)
{
    pthread_mutex_lock(&t->lock);
    bool has = t->n_read < t->n_ready || t->cancelled;
    pthread_mutex_unlock(&t->lock);
    return has;
}

void ink_task_cancel(struct ink_task *t)
{
    pthread_mutex_lock(&t->lock);
    if (!t->cancelled && !t->ended) {
        t->cancelled = true;
        atomic_fetch_add(&n_cancelled, 1);
        announce_locked(t);
    }
    pthread_mutex_unlock(&t->lock);
}

void ink_task_free(struct ink_task *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    if (!t->ended && !t->cancelled)
        atomic_fetch_add(&n_cancelled, 1);
    t->wake = NULL;
    t->stop = true;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    for (int i = 0; i < TEXTS_MAX; i++)
        free(t->texts[i]);
    pthread_cond_destroy(&t->moved);
    pthread_mutex_destroy(&t->lock);
    free(t);
    atomic_fetch_sub(&n_alive, 1);
}
