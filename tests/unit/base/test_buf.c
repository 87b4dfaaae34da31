#include "unit.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static void it_grows_and_stays_a_c_string(void **state)
{
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 100000);
    assert_string_equal(b.ptr, "");
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(ink_buf_addf(&b, "%d,", i % 10), INK_OK);
        assert_int_equal(strlen(b.ptr), b.len);
    }
    assert_int_equal(b.len, 10000);
    assert_memory_equal(b.ptr + 9996, "8,9,", 4);
    ink_buf_release(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.ptr, "");
}

static void adding_stops_at_the_ceiling_and_changes_nothing(void **state)
{
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 5);
    assert_int_equal(ink_buf_adds(&b, "abc"), INK_OK);
    assert_int_equal(ink_buf_adds(&b, "def"), INK_NO_MEMORY);
    assert_int_equal(ink_buf_addf(&b, "%d", 123), INK_NO_MEMORY);
    assert_int_equal(ink_buf_reserve(&b, SIZE_MAX), INK_NO_MEMORY);
    assert_string_equal(b.ptr, "abc");
    assert_int_equal(ink_buf_addf(&b, "%c%c", 'd', 'e'), INK_OK);
    assert_string_equal(b.ptr, "abcde");
    assert_int_equal(ink_buf_add(&b, "", 0), INK_OK);
    ink_buf_release(&b);
}

static void taking_leaves_a_usable_empty_buffer(void **state)
{
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 10);
    char *nothing = ink_buf_take(&b);
    assert_string_equal(nothing, "");
    free(nothing);
    assert_int_equal(ink_buf_adds(&b, "x"), INK_OK);
    char *text = ink_buf_take(&b);
    assert_string_equal(text, "x");
    free(text);
    assert_int_equal(b.len, 0);
    assert_int_equal(ink_buf_adds(&b, "0123456789"), INK_OK);
    assert_int_equal(ink_buf_adds(&b, "x"), INK_NO_MEMORY);
    ink_buf_release(&b);
}

static void clearing_keeps_the_room(void **state)
{
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 1000);
    ink_buf_clear(&b);
    assert_int_equal(ink_buf_add(&b, "a\0b", 3), INK_OK);
    assert_int_equal(b.len, 3);
    size_t cap = b.cap;
    ink_buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.cap, cap);
    assert_string_equal(b.ptr, "");
    struct ink_slice s = ink_buf_slice(&b);
    assert_int_equal(s.len, 0);
    ink_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_and_stays_a_c_string),
        cmocka_unit_test(adding_stops_at_the_ceiling_and_changes_nothing),
        cmocka_unit_test(taking_leaves_a_usable_empty_buffer),
        cmocka_unit_test(clearing_keeps_the_room),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
