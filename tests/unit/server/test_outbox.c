/* What goes into an outbox comes out of it, in order, whether it went through memory or the file. */
#include "unit.h"

#include "server/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 100 * 1000 };

static char piece[PIECE];

/* Bytes that tell their place in the whole. */
static void add_numbered(struct outbox *o, unsigned from)
{
    for (unsigned i = 0; i < PIECE / 4; i++)
        memcpy(piece + 4 * i, &(unsigned){ from + i }, 4);
    assert_int_equal(outbox_add(o, piece, PIECE), INK_OK);
}

static void take_numbered(struct outbox *o, unsigned *next, size_t len)
{
    while (len > 0) {
        unsigned got;
        size_t have = 0;

        while (have < 4) {
            long n = outbox_take(o, (char *)&got + have, 4 - have);

            assert_true(n > 0);
            have += (size_t)n;
        }
        assert_int_equal(got, *next);
        (*next)++;
        len -= 4;
    }
}

static void small_answers_stay_in_memory(void **state)
{
    struct outbox o;
    char out[16];
    (void)state;

    outbox_init(&o);
    assert_true(outbox_is_empty(&o));
    assert_int_equal(outbox_take(&o, out, sizeof(out)), 0);
    assert_int_equal(outbox_add(&o, "abcdef", 6), INK_OK);
    assert_int_equal(outbox_take(&o, out, 4), 4);
    assert_memory_equal(out, "abcd", 4);
    assert_int_equal(outbox_add(&o, "gh", 2), INK_OK);
    assert_int_equal(outbox_take(&o, out, sizeof(out)), 4);
    assert_memory_equal(out, "efgh", 4);
    assert_true(outbox_is_empty(&o));
    assert_int_equal(o.fd, -1);
    outbox_release(&o);
}

static void it_wants_no_more_than_memory_unless_it_may_spool(void **state)
{
    struct outbox o;
    (void)state;

    outbox_init(&o);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(outbox_wants(&o, false));
        add_numbered(&o, i * PIECE / 4);
    }
    assert_false(outbox_wants(&o, false));
    assert_true(outbox_wants(&o, true));
    outbox_release(&o);
}

static void what_went_through_the_file_comes_out_in_order(void **state)
{
    struct outbox o;
    unsigned next = 0;
    (void)state;

    outbox_init(&o);
    for (int round = 0; round < 3; round++) { /* the file is filled, emptied, and filled again */
        unsigned first = next;

        for (unsigned i = 0; i < 40; i++)
            add_numbered(&o, first + i * PIECE / 4);
        assert_true(outbox_in_file(&o) > 3000 * 1000);
        assert_true(o.head.cap < 1024 * 1024);
        take_numbered(&o, &next, 10 * PIECE);
        for (unsigned i = 40; i < 45; i++)
            add_numbered(&o, first + i * PIECE / 4);
        take_numbered(&o, &next, 35 * PIECE);
        assert_true(outbox_is_empty(&o));
        assert_int_equal(outbox_in_file(&o), 0);
    }
    outbox_release(&o);
}

/* No file can be made: what is given is kept all the same, and no more is wanted until it is gone. */
static void without_a_file_nothing_is_lost(void **state)
{
    struct outbox o;
    unsigned next = 0;
    (void)state;

    assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
    outbox_init(&o);
    for (unsigned i = 0; i < 4; i++)
        add_numbered(&o, i * PIECE / 4);
    assert_int_equal(o.fd, -1);
    assert_false(outbox_wants(&o, true));
    take_numbered(&o, &next, 4 * PIECE);
    assert_true(outbox_is_empty(&o));
    assert_true(outbox_wants(&o, false));
    outbox_release(&o);
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_answers_stay_in_memory),
        cmocka_unit_test(it_wants_no_more_than_memory_unless_it_may_spool),
        cmocka_unit_test(what_went_through_the_file_comes_out_in_order),
        cmocka_unit_test(without_a_file_nothing_is_lost),
    };
    return cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
}
