#include "unit.h"
#include "token/trie.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct trie build(const char *const *keys, size_t n)
{
    struct trie_key list[64];
    struct trie t;
    struct ink_err err;

    for (size_t i = 0; i < n; i++)
        list[i] = (struct trie_key){ ink_slice_of(keys[i]), (int32_t)i };
    if (trie_build(&t, list, n, "piece", &err) != INK_OK)
        fail_msg("%s", err.text);
    return t;
}

static void finds_every_key_and_nothing_else(void **state)
{
    static const char *const keys[] = { "b",
                                        "a",
                                        "abc",
                                        "ab",
                                        "abd",
                                        "\xff\xff",
                                        "\x01",
                                        "zzzzzzzzzzzzzzzzz",
                                        "zzzzzzzzzzzzzzzzy",
                                        "\xe4\xbd\xa0",
                                        "\xe4\xbd\xa0\xe5\xa5\xbd" };
    static const char *const others[] = { "",     "abcd",     "c",   "zz", "zzzzzzzzzzzzzzzzzz",
                                          "\xe4", "\xe4\xbd", "\xff" };
    const size_t n = sizeof(keys) / sizeof(keys[0]);
    struct trie t = build(keys, n);
    (void)state;

    for (size_t i = 0; i < n; i++)
        assert_int_equal(trie_find(&t, ink_slice_of(keys[i])), (int)i);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(trie_find(&t, ink_slice_of(others[i])), -1);
    trie_release(&t);
}

static void the_longest_key_at_the_start_wins(void **state)
{
    static const char *const keys[] = { "a", "abc", "abcde" };
    static const struct {
        const char *text;
        size_t len;
        int32_t id;
    } rows[] = {
        { "abcd", 3, 1 }, { "abx", 1, 0 }, { "abcdef", 5, 2 }, { "ba", 0, -1 }, { "", 0, -1 }
    };
    struct trie t = build(keys, 3);
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int32_t id = -1;

        assert_int_equal(trie_longest(&t, ink_slice_of(rows[i].text), &id), rows[i].len);
        assert_int_equal(id, rows[i].id);
    }
    trie_release(&t);
}

static void an_empty_map_finds_nothing(void **state)
{
    struct trie t;
    int32_t id;
    (void)state;

    assert_int_equal(trie_build(&t, NULL, 0, "piece", NULL), INK_OK);
    assert_int_equal(trie_find(&t, ink_slice_of("a")), -1);
    assert_int_equal(trie_longest(&t, (struct ink_slice){ "\0", 1 }, &id), 0);
    trie_release(&t);
}

static void two_equal_keys_are_named(void **state)
{
    const struct trie_key keys[] = { { ink_slice_of("abcdefghij"), 7 },
                                     { ink_slice_of("x"), 8 },
                                     { ink_slice_of("abcdefghij"), 9 } };
    struct trie t;
    struct ink_err err;
    (void)state;

    assert_int_equal(trie_build(&t, keys, 3, "piece", &err), INK_CORRUPT);
    assert_non_null(strstr(err.text, "piece 7"));
    assert_non_null(strstr(err.text, "piece 9"));
    assert_non_null(strstr(err.text, "\"abcdefghij\""));
}

static void an_empty_key_is_refused(void **state)
{
    const struct trie_key key = { { "", 0 }, 5 };
    struct trie t;
    struct ink_err err;
    (void)state;

    assert_int_equal(trie_build(&t, &key, 1, "piece", &err), INK_CORRUPT);
    assert_non_null(strstr(err.text, "piece 5"));
}

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

/* 40,000 keys over few letters: every node has many children, prefixes abound. */
static void holds_many_keys(void **state)
{
    enum { N = 40000, LEN = 12 };
    struct trie_key *keys = ink_alloc(N * sizeof(*keys));
    char *text = ink_alloc(N * LEN);
    struct trie t;
    struct ink_err err;
    uint32_t seed = 1;
    (void)state;

    for (int32_t i = 0; i < N; i++) {
        char *key = text + i * LEN;
        int n = snprintf(key, LEN, "%x", (unsigned)i);

        /* Unique by its number; what follows makes the lengths vary. */
        key[n++] = ':';
        for (uint32_t more = draw(&seed) % 5; more > 0; more--)
            key[n++] = (char)(draw(&seed) % 255 + 1);
        keys[i] = (struct trie_key){ { key, (size_t)n }, N - 1 - i };
    }
    assert_int_equal(trie_build(&t, keys, N, "piece", &err), INK_OK);
    for (int32_t i = 0; i < N; i++) {
        assert_int_equal(trie_find(&t, keys[i].text), keys[i].id);
        assert_int_equal(trie_find(&t, (struct ink_slice){ keys[i].text.ptr,
                                                           keys[i].text.len - 1 }) == keys[i].id,
                         0);
    }
    trie_release(&t);
    free(keys);
    free(text);
}

static void a_node_may_have_all_255_children(void **state)
{
    struct trie_key keys[255 * 2];
    char text[255][3];
    struct trie t;
    (void)state;

    for (int i = 0; i < 255; i++) {
        text[i][0] = (char)(i + 1);
        text[i][1] = (char)(255 - i);
        keys[2 * i] = (struct trie_key){ { text[i], 1 }, 2 * i };
        keys[2 * i + 1] = (struct trie_key){ { text[i], 2 }, 2 * i + 1 };
    }
    assert_int_equal(trie_build(&t, keys, 255 * 2, "piece", NULL), INK_OK);
    for (int i = 0; i < 255 * 2; i++)
        assert_int_equal(trie_find(&t, keys[i].text), i);
    trie_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_key_and_nothing_else),
        cmocka_unit_test(the_longest_key_at_the_start_wins),
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(two_equal_keys_are_named),
        cmocka_unit_test(an_empty_key_is_refused),
        cmocka_unit_test(holds_many_keys),
        cmocka_unit_test(a_node_may_have_all_255_children),
    };
    return cmocka_run_group_tests_name("trie", tests, NULL, NULL);
}
