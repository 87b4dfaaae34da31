/*
 * Runs a model without the engine and prints numbers that `inkstone score` does not: for the golden tests.
 *
 *     model_numbers tensors MODEL.gguf <PAIRS >NUMBERS
 *     model_numbers batch MODEL.gguf <PAIRS
 *
 * A line of PAIRS is "SOURCE_IDS;DECODER_IDS", ids separated by commas.
 *
 * `tensors` encodes each source by itself, feeds its decoder ids in one call, and writes records: a line
 * "PAIR NAME ROWS WIDTH\n", then ROWS * WIDTH float32 as they lie in memory. NAME is a probe point's, or
 * "logits" for the decoder rows.
 *
 * `batch` encodes and decodes all pairs together, step by step, and each by itself, and compares the logits bit for bit. The
 * pairs need equally many decoder ids. Exit status 1 when a value differs.
 */
#include "model/model.h"
#include "model/model_file.h"
#include "model/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 64, MAX_LINE = 1 << 16 };

struct pair {
    int32_t *source, *target;
    int n_source, n_target;
    int32_t *source_blocks, *blocks; /* block numbers of the source and of the sequence */
};

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *fmt, ...)
{
    va_list args;

    fputs("model_numbers: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void *need(void *p)
{
    if (!p)
        fail("out of memory");
    return p;
}

/* The ids up to `stop`, which is consumed; *at moves behind it. */
static int32_t *read_ids(char **at, char stop, int *n)
{
    int32_t *ids = need(malloc(MAX_LINE * sizeof(*ids)));

    *n = 0;
    for (;;) {
        char *end;
        long id = strtol(*at, &end, 10);

        if (end == *at || id < 0 || id > INT32_MAX)
            fail("not a token id: \"%.20s\"", *at);
        ids[(*n)++] = (int32_t)id;
        *at = end + 1;
        if (*end == stop)
            return ids;
        if (*end != ',')
            fail("expected a comma or '%c' before \"%.20s\"", stop == '\n' ? 'n' : stop, end);
    }
}

static int blocks_for(int n_tokens)
{
    return (n_tokens + INK_KV_BLOCK_TOKENS - 1) / INK_KV_BLOCK_TOKENS;
}

static int32_t *take_blocks(int *next, int n_tokens)
{
    int n = blocks_for(n_tokens);
    int32_t *blocks = need(malloc((size_t)n * sizeof(*blocks)));

    for (int i = 0; i < n; i++)
        blocks[i] = (*next)++;
    return blocks;
}

static int read_pairs(struct pair *pairs, int *n_blocks)
{
    static char line[MAX_LINE];
    int n = 0;

    *n_blocks = 0;
    while (fgets(line, sizeof(line), stdin)) {
        char *at = line;

        if (n == MAX_PAIRS)
            fail("more than %d pairs", MAX_PAIRS);
        struct pair *p = &pairs[n++];
        p->source = read_ids(&at, ';', &p->n_source);
        p->target = read_ids(&at, '\n', &p->n_target);
        p->source_blocks = take_blocks(n_blocks, p->n_source);
        p->blocks = take_blocks(n_blocks, p->n_target);
    }
    if (n == 0)
        fail("no pairs on standard input");
    return n;
}

static void encode(struct ink_model *m, const struct pair *pairs, int n)
{
    struct ink_encode_item items[MAX_PAIRS] = { 0 };
    struct ink_err err = { 0 };
    bool done = false;

    for (int i = 0; i < n; i++) {
        items[i].tokens = pairs[i].source;
        items[i].n_tokens = pairs[i].n_source;
        items[i].blocks = pairs[i].source_blocks;
    }
    if (ink_model_encode_begin(m, items, n, &err) != INK_OK)
        fail("encode: %s", err.text);
    while (!done)
        if (ink_model_encode_advance(m, 1, &done, &err) != INK_OK)
            fail("encode: %s", err.text);
}

static struct ink_decode_row row_of(const struct pair *p, int pos)
{
    return (struct ink_decode_row){ .token = p->target[pos],
                                    .pos = pos,
                                    .blocks = p->blocks,
                                    .source_blocks = p->source_blocks,
                                    .n_source = p->n_source,
                                    .head = INK_HEAD_FULL };
}

static void decode(struct ink_model *m, struct ink_decode_row *rows, int n)
{
    struct ink_err err = { 0 };

    if (ink_model_decode(m, rows, n, &err) != INK_OK)
        fail("decode: %s", err.text);
}

/* ---- tensors ------------------------------------------------------------ */

static void write_record(int pair, const char *name, const float *data, size_t n_rows, size_t width)
{
    printf("%d %s %zu %zu\n", pair, name, n_rows, width);
    if (fwrite(data, sizeof(float), n_rows * width, stdout) != n_rows * width)
        fail("cannot write: %s", strerror(errno));
}

static void save(void *arg, const char *name, const float *data, size_t n_rows, size_t width)
{
    write_record(*(const int *)arg, name, data, n_rows, width);
}

static int tensors(struct ink_model *m, const struct pair *pairs, int n)
{
    size_t n_vocab = (size_t)ink_model_info(m)->n_vocab;

    for (int i = 0; i < n; i++) {
        struct ink_decode_row rows[64];

        if (pairs[i].n_target > 64)
            fail("pair %d: more than 64 decoder ids", i);
        ink_model_set_probe(m, save, &i);
        encode(m, &pairs[i], 1);
        for (int pos = 0; pos < pairs[i].n_target; pos++)
            rows[pos] = row_of(&pairs[i], pos);
        decode(m, rows, pairs[i].n_target);
        ink_model_set_probe(m, NULL, NULL);
        for (int pos = 0; pos < pairs[i].n_target; pos++)
            write_record(i, "logits", rows[pos].logits, 1, n_vocab);
    }
    return 0;
}

/* ---- batch -------------------------------------------------------------- */

static int batch(struct ink_model *m, const struct pair *pairs, int n)
{
    size_t n_vocab = (size_t)ink_model_info(m)->n_vocab;
    int n_steps = pairs[0].n_target;
    float *together = need(malloc((size_t)n * (size_t)n_steps * n_vocab * sizeof(float)));
    struct ink_decode_row rows[MAX_PAIRS];
    size_t n_different = 0, n_values = 0;
    double worst = 0;

    for (int i = 0; i < n; i++)
        if (pairs[i].n_target != n_steps)
            fail("pair %d has %d decoder ids, the first one %d", i, pairs[i].n_target, n_steps);

    encode(m, pairs, n);
    for (int pos = 0; pos < n_steps; pos++) {
        for (int i = 0; i < n; i++)
            rows[i] = row_of(&pairs[i], pos);
        decode(m, rows, n);
        for (int i = 0; i < n; i++)
            memcpy(together + ((size_t)i * (size_t)n_steps + (size_t)pos) * n_vocab, rows[i].logits,
                   n_vocab * sizeof(float));
    }
    for (int i = 0; i < n; i++) {
        encode(m, &pairs[i], 1);
        for (int pos = 0; pos < n_steps; pos++) {
            const float *want = together + ((size_t)i * (size_t)n_steps + (size_t)pos) * n_vocab;

            rows[0] = row_of(&pairs[i], pos);
            decode(m, rows, 1);
            n_values += n_vocab;
            for (size_t k = 0; k < n_vocab; k++) {
                double d = (double)rows[0].logits[k] - (double)want[k];

                if (memcmp(&rows[0].logits[k], &want[k], sizeof(float)) != 0)
                    n_different++;
                if (d > worst || -d > worst)
                    worst = d < 0 ? -d : d;
            }
        }
    }
    printf("%zu of %zu logits differ between %d sources together and alone; max |d| %.3g\n",
           n_different, n_values, n, worst);
    free(together);
    return n_different == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct pair pairs[MAX_PAIRS];
    struct ink_model_file *file = NULL;
    struct ink_model *m = NULL;
    struct ink_err err = { 0 };
    int n_blocks;

    if (argc != 3 || (strcmp(argv[1], "tensors") != 0 && strcmp(argv[1], "batch") != 0)) {
        fputs("usage: model_numbers tensors|batch MODEL.gguf <PAIRS\n", stderr);
        return 2;
    }
    int n = read_pairs(pairs, &n_blocks);
    struct ink_model_options options = { .n_blocks = n_blocks < 512 ? 512 : n_blocks };

    if (ink_model_file_open(argv[2], &file, &err) != INK_OK ||
        ink_model_open(file, &options, &m, &err) != INK_OK)
        fail("%s", err.text);
    int status = strcmp(argv[1], "tensors") == 0 ? tensors(m, pairs, n) : batch(m, pairs, n);

    ink_model_close(m);
    ink_model_file_close(file);
    for (int i = 0; i < n; i++) {
        free(pairs[i].source);
        free(pairs[i].target);
        free(pairs[i].source_blocks);
        free(pairs[i].blocks);
    }
    if (fflush(stdout) != 0)
        fail("cannot write: %s", strerror(errno));
    return status;
}
