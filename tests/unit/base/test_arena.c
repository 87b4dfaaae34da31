#include "unit.h"
#include "base/alloc.h"
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void objects_are_zeroed_aligned_and_apart(void **state)
{
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 1000, 16384, 16385, 100000, 3 };
    enum { N = 200 };
    struct ink_arena *a = ink_arena_new();
    unsigned char *objects[N];
    (void)state;

    for (size_t i = 0; i < N; i++) {
        size_t size = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

        objects[i] = ink_arena_alloc(a, size);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(objects[i][k], 0);
        memset(objects[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < N; i++) {
        size_t size = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

        for (size_t k = 0; k < size; k++)
            assert_int_equal(objects[i][k], i % 255 + 1);
    }
    ink_arena_free(a);
    ink_arena_free(NULL);
}

static void strings_get_their_nul(void **state)
{
    struct ink_arena *a = ink_arena_new();
    (void)state;

    assert_string_equal(ink_arena_strndup(a, "abcdef", 3), "abc");
    assert_string_equal(ink_arena_strndup(a, "", 0), "");
    ink_arena_free(a);
}

static void sizes_that_overflow_are_refused(void **state)
{
    char *p = ink_try_alloc(4, 1);
    (void)state;

    assert_null(ink_try_alloc(SIZE_MAX / 2, 3));
    assert_null(ink_try_realloc(p, SIZE_MAX, 2));
    p[3] = 'x'; /* still there */
    free(p);
    assert_null(ink_try_alloc_aligned(SIZE_MAX - 3));
    p = ink_try_alloc_aligned(100);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_zeroed_aligned_and_apart),
        cmocka_unit_test(strings_get_their_nul),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
