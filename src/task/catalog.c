/*
 * Opens models and keeps what belongs to each together: file, weights, tokenizer, template, heads, limits, lane.
 */
#include "task/catalog.h"

#include "base/alloc.h"
#include "engine/engine.h"
#include "task/served.h"
#include "task/vocabulary.h"
#include "token/script.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MAX_MODELS = 16,
    N_PARALLEL = 64,
    N_QUEUE = 256,
    MIN_ROWS = 16, /* of a step, so that scoring is quick also with few sequences */
    MAX_SOURCE = 512,
    MAX_TARGET = 512,
    MAX_ENCODE_TOKENS = 2048,
    /* What KV memory is planned with: a usual source and target, in blocks (48 and 64 tokens). */
    USUAL_SOURCE_BLOCKS = 3,
    USUAL_TARGET_BLOCKS = 4,
};

static const char default_prompt[] = "请将以下句子用不同方式表达，保持原意不变：{text}";
static const char text_slot[] = "{text}";

struct ink_catalog {
    struct ink_catalog_options options;
    char *prompt;              /* copy of options.prompt; NULL if none */
    struct ink_engine *engine; /* started with the first model that has weights */
    struct ink_served *models[MAX_MODELS];
    int n_models;
};

static int or_default(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

struct ink_catalog *ink_catalog_new(const struct ink_catalog_options *options)
{
    struct ink_catalog *c = ink_zalloc(sizeof(*c));

    c->options = *options;
    c->prompt = options->prompt ? ink_strdup(options->prompt) : NULL;
    c->options.prompt = c->prompt;
    c->options.n_parallel = or_default(options->n_parallel, N_PARALLEL);
    c->options.n_queue = or_default(options->n_queue, N_QUEUE);
    c->options.max_source_tokens = or_default(options->max_source_tokens, MAX_SOURCE);
    c->options.max_target_tokens = or_default(options->max_target_tokens, MAX_TARGET);
    return c;
}

static void served_free(struct ink_served *s)
{
    if (!s)
        return;
    ink_model_close(s->model);
    ink_tokenizer_free(s->tokenizer);
    ink_model_file_close(s->file);
    free(s->prompt);
    free(s->name);
    free(s);
}

void ink_catalog_free(struct ink_catalog *c)
{
    if (!c)
        return;
    ink_engine_stop(c->engine); /* before the models that it computes with */
    for (int i = 0; i < c->n_models; i++)
        served_free(c->models[i]);
    free(c->prompt);
    free(c);
}

/* --- adding a model --- */

static char *name_of_path(const char *path)
{
    const char *base = strrchr(path, '/');
    size_t len;

    base = base ? base + 1 : path;
    len = strlen(base);
    if (len > 5 && strcmp(base + len - 5, ".gguf") == 0)
        len -= 5;
    return ink_strndup(base, len);
}

static int blocks_of(int n_tokens)
{
    return (n_tokens + INK_KV_BLOCK_TOKENS - 1) / INK_KV_BLOCK_TOKENS;
}

/* Blocks for all places of the batch with usual lengths, the sources encoded ahead, and one job of the longest kind. */
static int plan_blocks(const struct ink_catalog_options *o)
{
    int n = o->n_parallel;

    return n * USUAL_TARGET_BLOCKS + (n + n / 2 + 16) * USUAL_SOURCE_BLOCKS +
           blocks_of(o->max_source_tokens) + blocks_of(o->max_target_tokens);
}

static enum ink_status open_model(const struct ink_catalog_options *o, struct ink_served *s,
                                  struct ink_err *err)
{
    int longest = blocks_of(o->max_source_tokens) + blocks_of(o->max_target_tokens);
    struct ink_model_options mo = {
        .compute = o->compute,
        .n_threads = o->n_threads,
        .max_rows = o->n_parallel > MIN_ROWS ? o->n_parallel : MIN_ROWS,
        .max_encode_tokens =
            o->max_source_tokens > MAX_ENCODE_TOKENS ? o->max_source_tokens : MAX_ENCODE_TOKENS,
        .n_blocks = plan_blocks(o),
    };
    enum ink_status st = ink_model_open(s->file, &mo, &s->model, err);

    if (st != INK_OK)
        return st;
    const struct ink_model_info *info = ink_model_info(s->model);
    if (o->max_memory > 0 && info->bytes_kv > o->max_memory) {
        int64_t per_block = info->bytes_kv / info->n_blocks;
        int64_t n = per_block > 0 ? o->max_memory / per_block : 0;

        if (n < longest)
            return ink_err_set(
                err, INK_NO_MEMORY,
                "%lld bytes of KV memory are too few: one text of %d tokens with an answer of %d needs %lld",
                (long long)o->max_memory, o->max_source_tokens, o->max_target_tokens,
                (long long)(longest * per_block));
        ink_model_close(s->model);
        s->model = NULL;
        mo.n_blocks = (int)n;
        st = ink_model_open(s->file, &mo, &s->model, err);
    }
    return st;
}

/* The head for Chinese: only where the vocabulary has Chinese pieces at all. */
static enum ink_status add_zh_head(struct ink_served *s, struct ink_err *err)
{
    int32_t *ids = NULL, n = 0, n_han = 0, n_always = 0;
    enum ink_status st = ink_script_select(s->tokenizer, 0, &ids, &n_always, err);

    if (st == INK_OK) {
        free(ids);
        st = ink_script_select(s->tokenizer, INK_SCRIPT_HAN, &ids, &n_han, err);
    }
    if (st != INK_OK)
        return st;
    free(ids);
    if (n_han <= n_always)
        return INK_OK;
    st = ink_script_select(s->tokenizer, INK_SCRIPT_ZH, &ids, &n, err);
    if (st != INK_OK)
        return st;
    while (n > 0 && ids[n - 1] >= s->info.n_vocab)
        n--;
    st = ink_model_add_head(s->model, ids, n, &s->head_zh, err);
    if (st == INK_OK)
        s->head_zh_rows = n;
    free(ids);
    return st;
}

/* Specials and the rows beyond the vocabulary. Caller frees. */
static int32_t *list_banned(const struct ink_served *s, int *n)
{
    int32_t *ids = ink_alloc((size_t)s->info.n_vocab * sizeof(*ids));
    int32_t n_pieces = ink_tokenizer_n_pieces(s->tokenizer), eos = ink_tokenizer_eos(s->tokenizer);

    *n = 0;
    for (int32_t i = 0; i < s->info.n_vocab; i++) {
        bool usable = i < n_pieces &&
                      ink_tokenizer_piece_type(s->tokenizer, i) != INK_PIECE_UNUSED &&
                      !ink_tokenizer_is_special(s->tokenizer, i);

        if (!usable && i != eos)
            ids[(*n)++] = i;
    }
    return ids;
}

static enum ink_status start_lane(struct ink_catalog *c, struct ink_served *s, struct ink_err *err)
{
    struct ink_lane_options lo = {
        .n_parallel = c->options.n_parallel,
        .n_queue = c->options.n_queue,
        .max_encode_tokens = c->options.max_source_tokens > MAX_ENCODE_TOKENS
                                 ? c->options.max_source_tokens
                                 : MAX_ENCODE_TOKENS,
        .n_heads = s->head_zh_rows > 0 ? s->head_zh + 1 : 1,
    };
    int32_t *banned = list_banned(s, &lo.n_banned);
    enum ink_status st = INK_OK;

    lo.banned = banned;
    if (lo.n_banned >= s->info.n_vocab - 1)
        st = ink_err_set(err, INK_CORRUPT,
                         "the vocabulary has no pieces that text could be made of");
    if (st == INK_OK && !c->engine)
        st = ink_engine_start(&c->engine, err);
    if (st == INK_OK)
        st = ink_engine_add(c->engine, s->model, &lo, &s->lane, err);
    s->n_parallel = lo.n_parallel;
    s->n_queue = lo.n_queue;
    free(banned);
    return st;
}

static enum ink_status load_weights(struct ink_catalog *c, struct ink_served *s,
                                    struct ink_err *err)
{
    enum ink_status st = open_model(&c->options, s, err);

    if (st != INK_OK)
        return st;
    s->info = *ink_model_info(s->model);
    if (!s->info.has_encoder)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "architecture %s has no encoder; served are encoder-decoders",
                           s->info.arch);
    if (ink_tokenizer_eos(s->tokenizer) < 0 || ink_tokenizer_eos(s->tokenizer) >= s->info.n_vocab)
        return ink_err_set(err, INK_CORRUPT,
                           "the vocabulary names no end token that the model has");
    s->max_source = c->options.max_source_tokens < s->info.max_source_tokens
                        ? c->options.max_source_tokens
                        : s->info.max_source_tokens;
    s->max_target = c->options.max_target_tokens < s->info.max_target_tokens
                        ? c->options.max_target_tokens
                        : s->info.max_target_tokens;
    st = add_zh_head(s, err);
    if (st == INK_OK)
        st = start_lane(c, s, err);
    if (st == INK_OK)
        s->capabilities = INK_CAN_REWRITE | INK_CAN_SCORE;
    return st;
}

static enum ink_status read_template(const struct ink_catalog *c, struct ink_served *s,
                                     struct ink_err *err)
{
    const char *prompt = default_prompt;

    (void)ink_model_file_string(s->file, "inkstone.prompt", &prompt);
    if (c->prompt)
        prompt = c->prompt;
    if (!strstr(prompt, text_slot))
        return ink_err_param(err, INK_INVALID, "prompt", "invalid_value",
                             "the prompt template has no %s in it", text_slot);
    s->prompt = ink_strdup(prompt);
    return INK_OK;
}

enum ink_status ink_catalog_add(struct ink_catalog *c, const char *path, const char *name,
                                struct ink_err *err)
{
    struct ink_served *s = NULL;
    struct stat file;
    enum ink_status st;

    if (c->n_models == MAX_MODELS)
        return ink_err_set(err, INK_BUSY, "%s: at most %d models can be served at once", path,
                           MAX_MODELS);

    s = ink_zalloc(sizeof(*s));
    s->name = name ? ink_strdup(name) : name_of_path(path);
    for (int i = 0; i < c->n_models; i++) {
        if (strcmp(c->models[i]->name, s->name) == 0) {
            st = ink_err_param(err, INK_INVALID, "model", "invalid_value",
                               "%s: a model called \"%s\" is served already", path, s->name);
            goto out;
        }
    }
    st = ink_model_file_open(path, &s->file, err); /* its errors name the file */
    if (st != INK_OK)
        goto out;
    if (stat(path, &file) == 0)
        s->created = (int64_t)file.st_mtime;
    (void)ink_model_file_bool(s->file, "inkstone.demo", &s->is_demo);
    st = vocabulary_read(s->file, &s->tokenizer, err);
    if (st != INK_OK)
        goto out;
    st = read_template(c, s, err);
    if (st == INK_OK && !c->options.vocabulary_only)
        st = load_weights(c, s, err);
    if (st != INK_OK) {
        (void)ink_err_prefix(err, st, s->name);
        goto out;
    }
    c->models[c->n_models++] = s;
    s = NULL;
out:
    served_free(s);
    return st;
}

/* --- looking up --- */

static const char *words_for(unsigned capabilities)
{
    if (capabilities & INK_CAN_REWRITE)
        return "rewrite";
    if (capabilities & INK_CAN_SCORE)
        return "score";
    if (capabilities & INK_CAN_CLASSIFY)
        return "classify";
    return capabilities & INK_CAN_CHAT ? "chat" : "answer questions about images";
}

static enum ink_status not_found(const struct ink_catalog *c, const char *name, struct ink_err *err)
{
    char names[160] = "";
    size_t len = 0;

    for (int i = 0; i < c->n_models; i++) {
        int n =
            snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "", c->models[i]->name);

        if (n < 0 || (size_t)n >= sizeof(names) - len)
            break;
        len += (size_t)n;
    }
    return ink_err_param(err, INK_NOT_FOUND, "model", "model_not_found",
                         "no model \"%.60s\"; there is: %s", name, c->n_models ? names : "none");
}

enum ink_status ink_catalog_find(struct ink_catalog *c, const char *name, unsigned capabilities,
                                 struct ink_served **out, struct ink_err *err)
{
    for (int i = 0; i < c->n_models; i++) {
        struct ink_served *s = c->models[i];

        if (name && strcmp(s->name, name) != 0)
            continue;
        if ((s->capabilities & capabilities) == capabilities) {
            *out = s;
            return INK_OK;
        }
        if (name)
            return ink_err_param(err, INK_INVALID, "model", "invalid_value",
                                 "the model \"%s\" cannot %s", s->name,
                                 words_for(capabilities & ~s->capabilities));
    }
    if (name)
        return not_found(c, name, err);
    return ink_err_param(err, INK_NOT_FOUND, "model", "model_not_found",
                         "no model that can %s is served", words_for(capabilities));
}

int ink_catalog_n_models(const struct ink_catalog *c)
{
    return c->n_models;
}

struct ink_served *ink_catalog_model(const struct ink_catalog *c, int i)
{
    return c->models[i];
}

/* --- one model --- */

const char *ink_served_name(const struct ink_served *s)
{
    return s->name;
}

unsigned ink_served_capabilities(const struct ink_served *s)
{
    return s->capabilities;
}

const struct ink_model_info *ink_served_info(const struct ink_served *s)
{
    return &s->info;
}

const struct ink_tokenizer *ink_served_tokenizer(const struct ink_served *s)
{
    return s->tokenizer;
}

const char *ink_served_prompt(const struct ink_served *s)
{
    return s->prompt;
}

bool ink_served_is_demo(const struct ink_served *s)
{
    return s->is_demo;
}

int64_t ink_served_created(const struct ink_served *s)
{
    return s->created;
}

int ink_served_head_rows(const struct ink_served *s)
{
    return s->head_zh_rows;
}

int ink_served_max_source(const struct ink_served *s)
{
    return s->max_source;
}

int ink_served_max_target(const struct ink_served *s)
{
    return s->max_target;
}

int ink_served_n_parallel(const struct ink_served *s)
{
    return s->n_parallel;
}

bool ink_served_is_crowded(const struct ink_served *s)
{
    struct ink_engine_stats now;

    if (!s->lane)
        return false;
    ink_lane_stats(s->lane, &now);
    return now.queue_length > 0 && now.queue_length >= s->n_queue / 2;
}

void ink_served_stats(const struct ink_served *s, struct ink_engine_stats *out)
{
    if (s->lane)
        ink_lane_stats(s->lane, out);
    else
        memset(out, 0, sizeof(*out));
}
