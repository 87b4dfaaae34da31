/*
 * Token ids of 34,193 strings in the three real vocabularies against SentencePiece's, one hash a string.
 * Formats and meaning: tests/golden/tokenizer/README.md.
 */
#include "unit.h"
#include "spiece_reader.h"

#include "base/alloc.h"
#include "base/file.h"
#include "token/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 256 * 1024 * 1024, SHOWN = 5 };

static const char ids_file[] = "tests/golden/tokenizer/ids.bin";
static const char *const names[] = { "mt5", "umt5", "t5" };
enum { N_NAMES = 3 };

struct golden {
    char *strings, *ids;
    size_t strings_len, ids_len;
    uint32_t n, n_plain;
    struct ink_slice *texts;
};

static uint32_t read_u32(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;

    return u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static uint64_t fnv64(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325U;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3U;
    return h;
}

static uint32_t hash_ids(const struct ink_tokens *tokens)
{
    uint32_t h = 0x811c9dc5U;

    for (size_t i = 0; i < tokens->n; i++)
        for (int shift = 0; shift < 32; shift += 8)
            h = (h ^ ((uint32_t)tokens->ids[i] >> shift & 0xff)) * 0x01000193U;
    return h;
}

/* Runs make_strings.py, whose output is too large to keep in the source tree. */
static void make_strings(const char *path)
{
    const char *assets = getenv("INKSTONE_ASSETS");
    char command[8192];

    snprintf(command, sizeof(command), "python3 tests/golden/tokenizer/make_strings.py '%s' '%s'",
             assets ? assets : ".deps/assets", path);
    if (system(command) != 0)
        fail_msg("`%s` failed: run scripts/fetch_assets.py first", command);
}

static void read_golden(struct golden *g)
{
    const char *build = getenv("INKSTONE_BUILD_DIR");
    char path[4096];
    struct ink_err err;

    if (ink_file_read(ids_file, MAX_FILE, &g->ids, &g->ids_len, &err) != INK_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(g->ids, "INKTOK1\n", 8);
    g->n = read_u32(g->ids + 8);
    g->n_plain = read_u32(g->ids + 12);
    assert_int_equal(read_u32(g->ids + 16), N_NAMES);
    assert_int_equal(g->ids_len, 32 + 4 * (size_t)N_NAMES * (g->n + (g->n - g->n_plain)));
    uint64_t want = read_u32(g->ids + 24) | (uint64_t)read_u32(g->ids + 28) << 32;

    snprintf(path, sizeof(path), "%s/tokenizer-strings.bin", build ? build : "/tmp");
    if (!ink_file_exists(path))
        make_strings(path);
    if (ink_file_read(path, MAX_FILE, &g->strings, &g->strings_len, &err) != INK_OK)
        fail_msg("%s", err.text);
    if (fnv64(g->strings, g->strings_len) != want) {
        free(g->strings);
        make_strings(path);
        if (ink_file_read(path, MAX_FILE, &g->strings, &g->strings_len, &err) != INK_OK)
            fail_msg("%s", err.text);
        if (fnv64(g->strings, g->strings_len) != want)
            fail_msg("%s is not what %s was made from: make_strings.py or an asset changed", path,
                     ids_file);
    }
}

static int setup(void **state)
{
    struct golden *g = ink_zalloc(sizeof(*g));

    read_golden(g);
    assert_memory_equal(g->strings, "INKSTR1\n", 8);
    assert_int_equal(read_u32(g->strings + 8), g->n);
    assert_int_equal(read_u32(g->strings + 12), g->n_plain);
    g->texts = ink_alloc(g->n * sizeof(*g->texts));
    size_t at = 16;
    for (uint32_t i = 0; i < g->n; i++) {
        g->texts[i] = (struct ink_slice){ g->strings + at + 4, read_u32(g->strings + at) };
        at += 4 + g->texts[i].len;
        assert_true(at <= g->strings_len);
    }
    assert_int_equal(at, g->strings_len);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct golden *g = *state;

    free(g->strings);
    free(g->ids);
    free(g->texts);
    free(g);
    return 0;
}

static void show(const char *name, uint32_t i, const struct ink_tokens *tokens,
                 struct ink_slice text)
{
    print_message("%s: string %u (%zu bytes) differs: \"%.*s\" ids", name, i, text.len,
                  (int)(text.len < 120 ? text.len : 120), text.ptr);
    for (size_t k = 0; k < tokens->n && k < 24; k++)
        print_message(" %d", (int)tokens->ids[k]);
    print_message("\n");
}

/* Compares texts [from, n) with the hashes at `want`; returns how many differ. */
static size_t compare(const struct golden *g, const char *name, const struct ink_tokenizer *t,
                      bool specials, uint32_t from, const char *want)
{
    const struct ink_encode_options options = { .specials = specials };
    struct ink_tokens tokens = { 0 };
    size_t n_wrong = 0;

    for (uint32_t i = from; i < g->n; i++) {
        struct ink_err err;

        tokens.n = 0;
        if (ink_tokenizer_encode(t, g->texts[i], &options, &tokens, &err) != INK_OK)
            fail_msg("%s: string %u: %s", name, i, err.text);
        if (hash_ids(&tokens) == read_u32(want + 4 * (size_t)(i - from)))
            continue;
        if (n_wrong++ < SHOWN)
            show(name, i, &tokens, g->texts[i]);
    }
    free(tokens.ids);
    return n_wrong;
}

static void plain_ids_equal_sentencepiece(void **state)
{
    const struct golden *g = *state;
    size_t n_wrong = 0;

    for (size_t v = 0; v < N_NAMES; v++) {
        struct ink_tokenizer *t = spiece_tokenizer(names[v]);

        n_wrong += compare(g, names[v], t, false, 0, g->ids + 32 + 4 * v * g->n);
        ink_tokenizer_free(t);
    }
    assert_int_equal(n_wrong, 0);
}

static void ids_with_special_tokens_equal_the_reference(void **state)
{
    const struct golden *g = *state;
    size_t n_special = g->n - g->n_plain;
    size_t n_wrong = 0;

    for (size_t v = 0; v < N_NAMES; v++) {
        struct ink_tokenizer *t = spiece_tokenizer(names[v]);

        n_wrong += compare(g, names[v], t, true, g->n_plain,
                           g->ids + 32 + 4 * (N_NAMES * (size_t)g->n + v * n_special));
        ink_tokenizer_free(t);
    }
    assert_int_equal(n_wrong, 0);
}

static void text_without_special_tokens_is_the_same_either_way(void **state)
{
    const struct golden *g = *state;
    struct golden plain = *g;
    struct ink_tokenizer *t = spiece_tokenizer("umt5");

    plain.n = g->n_plain;
    assert_int_equal(compare(&plain, "umt5", t, true, 0, g->ids + 32 + 4 * (size_t)g->n), 0);
    ink_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_ids_equal_sentencepiece),
        cmocka_unit_test(ids_with_special_tokens_equal_the_reference),
        cmocka_unit_test(text_without_special_tokens_is_the_same_either_way),
    };
    return cmocka_run_group_tests_name("tokenizer_golden", tests, setup, teardown);
}
