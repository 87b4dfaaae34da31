/*
 * Our side of bench/tokenizer: encodes the lines of a file, and its first million characters as one text.
 *
 *     bench_tokenizer NAME LINES ROUNDS
 *
 * NAME is mt5, umt5 or t5 (from $INKSTONE_ASSETS). Prints one JSON object with the CPU seconds of every round.
 */
#include "unit.h"
#include "token/spiece_reader.h"

#include "base/file.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_FILE = 1 << 28, MAX_LINES = 1 << 20, LONG_CHARS = 1000000 };

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t split(char *text, size_t len, struct ink_slice *lines)
{
    size_t n = 0;

    for (char *s = text, *end = text + len; s < end && n < MAX_LINES;) {
        char *stop = memchr(s, '\n', (size_t)(end - s));
        size_t line_len = (size_t)((stop ? stop : end) - s);

        if (line_len > 0)
            lines[n++] = (struct ink_slice){ s, line_len };
        s += line_len + 1;
    }
    return n;
}

/* All lines one after the other, at most LONG_CHARS characters. */
static struct ink_slice join(const struct ink_slice *lines, size_t n, size_t bytes)
{
    char *text = malloc(bytes);
    size_t at = 0, end = 0, n_chars = 0;
    uint32_t cp;

    if (!text)
        abort();
    for (size_t i = 0; i < n; i++) {
        memcpy(text + at, lines[i].ptr, lines[i].len);
        at += lines[i].len;
    }
    for (; end < at && n_chars < LONG_CHARS; n_chars++)
        end += ink_utf8_decode(text + end, at - end, &cp);
    return (struct ink_slice){ text, end };
}

static double encode(const struct ink_tokenizer *t, const struct ink_slice *texts, size_t n,
                     size_t *n_tokens)
{
    const struct ink_encode_options options = { 0 };
    struct ink_tokens tokens = { 0 };
    double start = cpu_seconds();

    *n_tokens = 0;
    for (size_t i = 0; i < n; i++) {
        struct ink_err err;

        tokens.n = 0;
        if (ink_tokenizer_encode(t, texts[i], &options, &tokens, &err) != INK_OK) {
            fprintf(stderr, "bench_tokenizer: %s\n", err.text);
            exit(1);
        }
        *n_tokens += tokens.n;
    }
    free(tokens.ids);
    return cpu_seconds() - start;
}

int main(int argc, char **argv)
{
    static struct ink_slice lines[MAX_LINES];
    char *text;
    size_t len, n_tokens, n_long;
    struct ink_err err;

    if (argc != 4 || ink_file_read(argv[2], MAX_FILE, &text, &len, &err) != INK_OK) {
        fprintf(stderr, "usage: bench_tokenizer mt5|umt5|t5 LINES_FILE ROUNDS\n");
        return 2;
    }
    size_t n = split(text, len, lines);
    struct ink_slice one = join(lines, n, len);
    double start = cpu_seconds();
    struct ink_tokenizer *t = spiece_tokenizer(argv[1]);

    printf("{\"load\": %.4f, \"rounds\": [", cpu_seconds() - start);
    for (int i = 0; i < (int)strtol(argv[3], NULL, 10); i++) {
        double per_line = encode(t, lines, n, &n_tokens);

        printf("%s[%.5f, %.5f]", i ? ", " : "", per_line, encode(t, &one, 1, &n_long));
    }
    printf("], \"tokens\": [%zu, %zu]}\n", n_tokens, n_long);
    ink_tokenizer_free(t);
    free((char *)one.ptr);
    free(text);
    return 0;
}
