/*
 * Folder in, file out. Everything that can be checked without reading weights is checked first: configuration,
 * tokenizer, names, shapes, room on the disk. Then the weights stream through, a piece of a tensor at a time.
 *
 *     load -> find_head -> plan -> describe (keys, list of tensors) -> write each tensor -> finish
 */
#include "convert/import.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"
#include "convert/checkpoint.h"
#include "convert/config.h"
#include "convert/gguf_writer.h"
#include "convert/metadata.h"
#include "convert/names.h"
#include "convert/quantize.h"
#include "convert/vocab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of source weights per piece: large enough that starting threads does not show. */
static const int64_t piece_bytes = 8 << 20;

static const struct {
    const char *name;
    enum ggml_type type;
} types[] = {
    [INK_IMPORT_I8] = { "i8", GGML_TYPE_I8 },       [INK_IMPORT_F32] = { "f32", GGML_TYPE_F32 },
    [INK_IMPORT_F16] = { "f16", GGML_TYPE_F16 },    [INK_IMPORT_BF16] = { "bf16", GGML_TYPE_BF16 },
    [INK_IMPORT_Q8_0] = { "q8_0", GGML_TYPE_Q8_0 }, [INK_IMPORT_Q4_0] = { "q4_0", GGML_TYPE_Q4_0 },
    [INK_IMPORT_Q4_K] = { "q4_k", GGML_TYPE_Q4_K }, [INK_IMPORT_Q5_K] = { "q5_k", GGML_TYPE_Q5_K },
    [INK_IMPORT_Q6_K] = { "q6_k", GGML_TYPE_Q6_K },
};

struct planned {
    struct tensor_spec spec;
    const struct source_tensor *source;
    enum ggml_type type;
};

struct import {
    const struct ink_import_options *options;
    struct ink_import_report *report;
    struct t5_config config;
    struct vocab vocab;
    struct model_card card;
    struct checkpoint *checkpoint;
    struct planned *plan;
    int n_plan;
    struct gguf_writer writer;
    struct ink_digest *digest;
    int64_t done, total; /* bytes of source weights */
    int n_threads;
};

static void note(struct import *im, const char *fmt, ...) INK_PRINTF(2, 3);

static void note(struct import *im, const char *fmt, ...)
{
    va_list args;

    if (im->report->n_notes == INK_IMPORT_NOTES)
        return;
    va_start(args, fmt);
    vsnprintf(im->report->notes[im->report->n_notes++], sizeof(im->report->notes[0]), fmt, args);
    va_end(args);
}

static bool is_cancelled(const struct import *im)
{
    return im->options->cancel && atomic_load(im->options->cancel);
}

static enum ink_status cancelled(struct ink_err *err)
{
    return ink_err_set(err, INK_CANCELLED, "import cancelled; nothing was written");
}

/* --- loading and planning ---------------------------------------------------------------------------- */

static enum ink_status check_paths(const char *dir, const char *out, struct ink_err *err)
{
    if (!ink_file_exists(dir))
        return ink_err_set(err, INK_NOT_FOUND, "%s: no such folder", dir);
    if (!ink_file_is_dir(dir))
        return ink_err_set(err, INK_INVALID,
                           "%s: not a folder; import takes a Hugging Face checkpoint folder", dir);
    if (ink_file_is_dir(out))
        return ink_err_set(err, INK_INVALID, "%s: is a folder; name the file to write", out);
    return INK_OK;
}

static enum ink_status load(struct import *im, const char *dir, struct ink_err *err)
{
    int extra_ids;
    enum ink_status st;

    if ((st = config_load(dir, &im->config, err)) != INK_OK ||
        (st = model_card_load(dir, &im->card, err)) != INK_OK ||
        (st = checkpoint_open(dir, &im->checkpoint, err)) != INK_OK)
        return st;
    /* What the family's tokenizer adds when the folder's files do not say. */
    extra_ids = strcmp(im->config.family, "t5") == 0     ? 100
                : strcmp(im->config.family, "umt5") == 0 ? 300
                                                         : 0;
    if ((st = vocab_load(&im->vocab, dir, im->config.vocab_size, extra_ids, err)) != INK_OK)
        return st;
    if (!im->vocab.escape_whitespaces)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "%s: a tokenizer without escape_whitespaces is not supported", dir);
    return INK_OK;
}

static const struct source_tensor *find_embedding(const struct checkpoint *c)
{
    static const char *const names[] = { "shared.weight", "encoder.embed_tokens.weight",
                                         "decoder.embed_tokens.weight" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct source_tensor *t = checkpoint_find(c, names[i]);

        if (t)
            return t;
    }
    return NULL;
}

static enum ink_status tensors_equal(const struct checkpoint *c, const struct source_tensor *a,
                                     const struct source_tensor *b, bool *equal,
                                     struct ink_err *err)
{
    const uint64_t step = 1 << 20;
    struct source_reader ra = { 0 }, rb = { 0 };
    void *scratch_a = NULL, *scratch_b = NULL;
    enum ink_status st;

    *equal = false;
    if (a->type != b->type || a->size != b->size)
        return INK_OK;
    if ((st = source_reader_open(c, a, &ra, err)) != INK_OK)
        return st;
    if ((st = source_reader_open(c, b, &rb, err)) != INK_OK) {
        source_reader_close(&ra);
        return st;
    }
    scratch_a = ink_alloc(step);
    scratch_b = ink_alloc(step);
    *equal = true;
    for (uint64_t at = 0; at < a->size && *equal; at += step) {
        size_t n = (size_t)(a->size - at < step ? a->size - at : step);
        const void *pa, *pb;

        if ((st = source_reader_next(&ra, n, scratch_a, &pa, err)) != INK_OK ||
            (st = source_reader_next(&rb, n, scratch_b, &pb, err)) != INK_OK)
            break;
        *equal = memcmp(pa, pb, n) == 0;
    }
    free(scratch_a);
    free(scratch_b);
    source_reader_close(&ra);
    source_reader_close(&rb);
    return st;
}

/*
 * The head is what the tensors say: a lm_head.weight that differs from the embedding is a head of its own, whatever
 * tie_word_embeddings claims (transformers 5 writes true even then, and keeps both when they differ).
 */
static enum ink_status find_head(struct import *im, struct ink_err *err)
{
    const struct source_tensor *head = checkpoint_find(im->checkpoint, "lm_head.weight");
    const struct source_tensor *embedding = find_embedding(im->checkpoint);
    bool equal = true;
    enum ink_status st = INK_OK;

    if (head && embedding)
        st = tensors_equal(im->checkpoint, head, embedding, &equal, err);
    im->config.has_own_head = head && !equal;
    if (!head && im->config.says_untied)
        note(
            im,
            "config.json says tie_word_embeddings false, but there is no lm_head.weight: the embedding serves as "
            "the head");
    return st;
}

static bool divides(enum ggml_type type, int64_t width)
{
    return width % ggml_blck_size(type) == 0;
}

/* The type asked for, where the tensor can have it. */
static enum ggml_type choose_type(struct import *im, const struct tensor_spec *t)
{
    enum ggml_type type = types[im->options->type].type;
    int64_t width = t->shape[t->n_dims - 1];
    bool is_head =
        t->kind == TENSOR_OUTPUT || (t->kind == TENSOR_EMBEDDING && !im->config.has_own_head);

    if (t->kind == TENSOR_SMALL)
        return GGML_TYPE_F32;
    if (type == GGML_TYPE_I8 && t->kind == TENSOR_EMBEDDING)
        return divides(GGML_TYPE_Q8_0, width) ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
    /* The head decides between 250,000 near neighbours: as llama.cpp does, it keeps more bits. */
    if (is_head && (type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_K || type == GGML_TYPE_Q5_K) &&
        divides(GGML_TYPE_Q6_K, width))
        return GGML_TYPE_Q6_K;
    if (divides(type, width))
        return type;
    if (divides(GGML_TYPE_Q8_0, width)) {
        im->report->n_fallback_q8_0++;
        return GGML_TYPE_Q8_0;
    }
    im->report->n_fallback_f16++;
    return GGML_TYPE_F16;
}

static void shape_text(int n, const int64_t *shape, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (int d = 0; d < n && at < size; d++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", d ? " x " : "", (long long)shape[d]);
}

static enum ink_status check_shape(const struct import *im, const struct tensor_spec *spec,
                                   const struct source_tensor *t, struct ink_err *err)
{
    char want[64], have[200];
    bool same = t->n_dims == spec->n_dims;

    for (int d = 0; same && d < spec->n_dims; d++)
        same = t->shape[d] == spec->shape[d];
    if (same)
        return INK_OK;
    shape_text(spec->n_dims, spec->shape, want, sizeof(want));
    shape_text(t->n_dims, t->shape, have, sizeof(have));
    return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: is %s, but config.json demands %s",
                       checkpoint_path_of(im->checkpoint, t), t->name, have, want);
}

static enum ink_status plan(struct import *im, const char *dir, struct ink_err *err)
{
    struct tensor_spec *specs = names_list(&im->config, &im->n_plan);
    enum ink_status st = INK_OK;

    im->plan = ink_zalloc((size_t)im->n_plan * sizeof(*im->plan));
    for (int i = 0; i < im->n_plan && st == INK_OK; i++) {
        struct planned *p = &im->plan[i];

        p->spec = specs[i];
        p->source = p->spec.kind == TENSOR_EMBEDDING
                        ? find_embedding(im->checkpoint)
                        : checkpoint_find(im->checkpoint, p->spec.source);
        if (!p->source) {
            st = ink_err_set(err, INK_CORRUPT, "%s: tensor %s: missing in the checkpoint", dir,
                             p->spec.source);
            break;
        }
        st = check_shape(im, &p->spec, p->source, err);
        p->type = choose_type(im, &p->spec);
        im->total += (int64_t)p->source->size;
    }
    free(specs);
    return st;
}

static bool is_planned(const struct import *im, const struct source_tensor *t)
{
    for (int i = 0; i < im->n_plan; i++) {
        if (im->plan[i].source == t)
            return true;
    }
    return false;
}

/* Tensors that nothing will read: usual ones are counted, others are worth a word. */
static void count_unused(struct import *im)
{
    const char *first = NULL;
    int n_strange = 0;

    for (size_t i = 0; i < im->checkpoint->n_tensors; i++) {
        const struct source_tensor *t = &im->checkpoint->tensors[i];

        if (is_planned(im, t))
            continue;
        im->report->n_unused++;
        if (names_is_unused(t->name) || strcmp(t->name, "lm_head.weight") == 0)
            continue;
        first = first ? first : t->name;
        n_strange++;
    }
    if (n_strange > 0)
        note(
            im,
            "%d tensors of the checkpoint are of no use to this kind of model and were left out; the first is %.80s",
            n_strange, first);
}

/* --- writing ----------------------------------------------------------------------------------------- */

static void add_to_file(struct import *im, const struct planned *p)
{
    char name[TENSOR_NAME_LEN + 8];
    int64_t ne[2] = { p->spec.shape[p->spec.n_dims - 1], p->spec.shape[0] };

    gguf_writer_add(&im->writer, p->spec.name, p->type, p->spec.n_dims, ne);
    if (p->type == GGML_TYPE_I8) {
        snprintf(name, sizeof(name), "%s_scale", p->spec.name);
        gguf_writer_add(&im->writer, name, GGML_TYPE_F32, 1, &ne[1]);
    }
}

static const char digest_key[] = "inkstone.weights_sha256";

static enum ink_status begin_file(struct import *im, const char *out, struct ink_err *err)
{
    char zeros[INK_SHA256_HEX];

    memset(zeros, '0', sizeof(zeros) - 1);
    zeros[sizeof(zeros) - 1] = '\0';
    gguf_writer_init(&im->writer, 2 * im->n_plan);
    metadata_write_general(im->writer.keys, &im->card, im->options->type);
    metadata_write_config(im->writer.keys, &im->config);
    metadata_write_vocab(im->writer.keys, &im->vocab, &im->config);
    gguf_set_val_str(im->writer.keys, digest_key, zeros); /* known only at the end */
    for (int i = 0; i < im->n_plan; i++)
        add_to_file(im, &im->plan[i]);
    im->report->bytes_out = gguf_writer_total(&im->writer);
    return gguf_writer_start(&im->writer, out, err);
}

/* Everything that decides what the weights compute, apart from the weights. */
static void digest_begin(struct import *im)
{
    const struct t5_config *c = &im->config;
    char text[400];

    int n = snprintf(
        text, sizeof(text),
        "inkstone weights 1 type=%s d_model=%lld d_kv=%lld d_ff=%lld heads=%lld enc=%d dec=%d "
        "buckets=%lld distance=%lld eps=%.9g act=%s gated=%d scale=%d own_head=%d start=%lld",
        types[im->options->type].name, (long long)c->d_model, (long long)c->d_kv,
        (long long)c->d_ff, (long long)c->n_heads, c->n_encoder_layers, c->n_decoder_layers,
        (long long)c->n_buckets, (long long)c->max_distance, c->epsilon, c->activation, c->is_gated,
        c->scale_output, c->has_own_head, (long long)c->decoder_start);

    im->digest = ink_digest_new();
    ink_digest_field(im->digest, text, (size_t)n);
}

struct piece_of_digest {
    struct ink_digest *digest;
    const void *bytes;
    size_t len;
};

static void add_piece_to_digest(void *arg)
{
    const struct piece_of_digest *p = arg;

    ink_digest_field(p->digest, p->bytes, p->len);
}

static enum ink_status refuse_values(const struct import *im, const struct planned *p,
                                     enum quantize_result why, int64_t row, struct ink_err *err)
{
    const char *path = checkpoint_path_of(im->checkpoint, p->source);

    if (why == QUANTIZE_NOT_FINITE)
        return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: row %lld has a NaN or an infinity",
                           path, p->source->name, (long long)row);
    return ink_err_set(
        err, INK_INVALID,
        "%s: tensor %s: row %lld has values too large for %s; import with --type bf16 or f32", path,
        p->source->name, (long long)row, ggml_type_name(p->type));
}

/* Buffers for one tensor's pieces. */
struct buffers {
    void *scratch, *out;
    float *scales;
};

static enum ink_status write_pieces(struct import *im, const struct planned *p,
                                    int64_t rows_per_piece, const struct buffers *b,
                                    struct source_reader *reader, struct ink_err *err)
{
    int64_t width = p->spec.shape[p->spec.n_dims - 1],
            n_rows = p->spec.n_dims == 2 ? p->spec.shape[0] : 1;
    size_t row_bytes = (size_t)width * source_type_size(p->source->type);
    enum ink_status st;

    for (int64_t row = 0; row < n_rows; row += rows_per_piece) {
        int64_t n = n_rows - row < rows_per_piece ? n_rows - row : rows_per_piece, bad;
        struct piece_of_digest piece = { im->digest, NULL, (size_t)n * row_bytes };

        if (is_cancelled(im))
            return cancelled(err);
        if ((st = source_reader_next(reader, piece.len, b->scratch, &piece.bytes, err)) != INK_OK)
            return st;

        const struct quantize_job job = {
            .from = p->source->type,
            .src = piece.bytes,
            .to = p->type,
            .dst = b->out,
            .scales = b->scales ? b->scales + row : NULL,
            .n_rows = n,
            .width = width,
            .n_threads = im->n_threads,
            .meanwhile = add_piece_to_digest,
            .meanwhile_arg = &piece,
        };
        enum quantize_result result = quantize_rows(&job, &bad);

        if (result != QUANTIZE_OK)
            return refuse_values(im, p, result, row + bad, err);
        st = gguf_writer_data(&im->writer, b->out, (size_t)n * ggml_row_size(p->type, width), err);
        if (st != INK_OK)
            return st;
        im->done += (int64_t)piece.len;
        if (im->options->progress)
            im->options->progress(im->options->progress_arg, im->done, im->total, p->source->name);
    }
    return INK_OK;
}

static enum ink_status write_tensor(struct import *im, const struct planned *p, struct ink_err *err)
{
    int64_t width = p->spec.shape[p->spec.n_dims - 1],
            n_rows = p->spec.n_dims == 2 ? p->spec.shape[0] : 1;
    int64_t row_bytes = width * (int64_t)source_type_size(p->source->type);
    struct source_reader reader;
    struct buffers b = { 0 };
    enum ink_status st = source_reader_open(im->checkpoint, p->source, &reader, err);

    if (st != INK_OK)
        return st;
    int64_t rows = piece_bytes / row_bytes > 0 ? piece_bytes / row_bytes : 1;

    if (rows > n_rows)
        rows = n_rows;
    ink_digest_field(im->digest, p->spec.name, strlen(p->spec.name));
    ink_digest_field(im->digest, p->spec.shape, sizeof(p->spec.shape[0]) * (size_t)p->spec.n_dims);
    b.scratch = ink_try_alloc((size_t)rows, (size_t)row_bytes);
    b.out = ink_try_alloc((size_t)rows, ggml_row_size(p->type, width));
    if (p->type == GGML_TYPE_I8)
        b.scales = ink_try_alloc((size_t)n_rows, sizeof(*b.scales));
    if (!b.scratch || !b.out || (p->type == GGML_TYPE_I8 && !b.scales))
        st = ink_err_set(err, INK_NO_MEMORY, "tensor %s: no memory for %lld rows", p->source->name,
                         (long long)rows);
    if (st == INK_OK)
        st = write_pieces(im, p, rows, &b, &reader, err);
    if (st == INK_OK && b.scales)
        st = gguf_writer_data(&im->writer, b.scales, (size_t)n_rows * sizeof(*b.scales), err);
    free(b.scratch);
    free(b.out);
    free(b.scales);
    source_reader_close(&reader);
    return st;
}

static enum ink_status finish_file(struct import *im, struct ink_err *err)
{
    uint8_t digest[INK_SHA256_LEN];
    char hex[INK_SHA256_HEX];

    if (is_cancelled(im))
        return cancelled(err);
    ink_digest_finish(im->digest, digest);
    im->digest = NULL;
    ink_sha256_hex(digest, hex);
    gguf_set_val_str(im->writer.keys, digest_key, hex);
    return gguf_writer_finish(&im->writer, err);
}

static enum ink_status run(struct import *im, const char *dir, const char *out, struct ink_err *err)
{
    enum ink_status st;

    if ((st = check_paths(dir, out, err)) != INK_OK || (st = load(im, dir, err)) != INK_OK ||
        (st = find_head(im, err)) != INK_OK || (st = plan(im, dir, err)) != INK_OK)
        return st;
    count_unused(im);
    if ((st = begin_file(im, out, err)) != INK_OK)
        return st;
    digest_begin(im);
    for (int i = 0; i < im->n_plan; i++) {
        if ((st = write_tensor(im, &im->plan[i], err)) != INK_OK)
            return st;
    }
    return finish_file(im, err);
}

static void fill_report(const struct import *im, int64_t start_ns)
{
    struct ink_import_report *r = im->report;

    snprintf(r->family, sizeof(r->family), "%s", im->config.family);
    r->type = types[im->options->type].name;
    r->bytes_in = im->total;
    r->n_tensors = im->n_plan;
    r->n_pieces = im->vocab.n_own;
    r->own_head = im->config.has_own_head;
    for (int i = 0; i < im->n_plan; i++)
        r->n_weights += im->plan[i].spec.shape[0] *
                        (im->plan[i].spec.n_dims == 2 ? im->plan[i].spec.shape[1] : 1);
    r->seconds = ink_clock_ms_since(start_ns) / 1e3;
}

enum ink_status ink_import(const char *dir, const char *out,
                           const struct ink_import_options *options,
                           struct ink_import_report *report, struct ink_err *err)
{
    static const struct ink_import_options defaults;
    struct ink_import_report unread;
    struct import im = { .options = options ? options : &defaults,
                         .report = report ? report : &unread };
    int64_t start_ns = ink_clock_ns();

    *im.report = (struct ink_import_report){ 0 };
    im.n_threads = im.options->n_threads > 0 ? im.options->n_threads : ink_thread_n_cpus();
    vocab_init(&im.vocab);

    enum ink_status st = run(&im, dir, out, err);

    if (st == INK_OK)
        fill_report(&im, start_ns);
    if (im.digest) {
        uint8_t unused[INK_SHA256_LEN];

        ink_digest_finish(im.digest, unused);
    }
    gguf_writer_release(&im.writer);
    free(im.plan);
    checkpoint_close(im.checkpoint);
    model_card_release(&im.card);
    vocab_release(&im.vocab);
    return st;
}
