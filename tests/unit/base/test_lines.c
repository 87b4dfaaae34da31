/* Bytes into lines: whole, in step, and bounded, however the bytes are cut. */
#include "unit.h"

#include "base/alloc.h"
#include "base/lines.h"

#include <stdlib.h>
#include <string.h>

static void add(struct ink_lines *l, const char *bytes, size_t len)
{
    char *to = ink_lines_reserve(l, len);

    assert_non_null(to);
    memcpy(to, bytes, len);
    ink_lines_commit(l, len);
}

static void expect(struct ink_lines *l, const char *text)
{
    struct ink_slice line = { 0 };

    assert_int_equal(ink_lines_next(l, &line), INK_LINE_READY);
    assert_int_equal(line.len, strlen(text));
    assert_memory_equal(line.ptr, text, line.len);
}

static void lines_come_whole_whatever_the_pieces(void **state)
{
    static const char all[] = "one\n\ntwo\r\n\xe8\xbf\x99\nlast";
    (void)state;

    for (size_t piece = 1; piece <= sizeof(all); piece++) {
        const char *const wanted[] = { "one", "", "two\r", "\xe8\xbf\x99" };
        struct ink_lines l;
        struct ink_slice line;
        size_t n = 0;

        ink_lines_init(&l, 100);
        for (size_t at = 0; at < sizeof(all) - 1; at += piece) {
            size_t len = sizeof(all) - 1 - at < piece ? sizeof(all) - 1 - at : piece;

            add(&l, all + at, len);
            while (n < 4 && l.n_whole > 0)
                expect(&l, wanted[n++]);
            assert_int_equal(ink_lines_next(&l, &line), INK_LINE_AGAIN);
        }
        assert_int_equal(n, 4);
        l.ended = true;
        expect(&l, "last");
        assert_int_equal(ink_lines_next(&l, &line), INK_LINE_END);
        assert_int_equal(l.consumed, sizeof(all) - 1);
        ink_lines_release(&l);
    }
}

static void a_final_newline_begins_no_line(void **state)
{
    struct ink_slice line;
    struct ink_lines l;
    (void)state;

    ink_lines_init(&l, 100);
    l.ended = true;
    assert_int_equal(ink_lines_next(&l, &line), INK_LINE_END);
    add(&l, "a\n", 2);
    expect(&l, "a");
    assert_int_equal(ink_lines_next(&l, &line), INK_LINE_END);
    ink_lines_release(&l);
}

static void a_line_at_the_limit_is_taken_and_one_beyond_is_not(void **state)
{
    char text[13] = "0123456789AB";
    (void)state;

    for (size_t len = 9; len <= 12; len++) {
        struct ink_lines l;
        struct ink_slice line;

        ink_lines_init(&l, 10);
        add(&l, text, len);
        add(&l, "\nnext\n", 6);
        assert_int_equal(ink_lines_next(&l, &line), len <= 10 ? INK_LINE_READY : INK_LINE_TOO_LONG);
        expect(&l, "next");
        ink_lines_release(&l);
    }
}

/* An endless line costs neither memory nor the lines behind it. */
static void what_is_too_long_is_dropped_as_it_comes(void **state)
{
    enum { MAX = 1000, PIECE = 60000, N = 200 };
    static char piece[PIECE];
    struct ink_lines l;
    struct ink_slice line;
    (void)state;

    memset(piece, 'x', sizeof(piece));
    ink_lines_init(&l, MAX);
    for (int i = 0; i < N; i++) {
        assert_true(ink_lines_room(&l) >= PIECE);
        add(&l, piece, PIECE);
        assert_int_equal(ink_lines_next(&l, &line), INK_LINE_AGAIN);
    }
    assert_true(l.buf.cap < 200000);
    add(&l, "\nshort\n", 7);
    assert_int_equal(ink_lines_next(&l, &line), INK_LINE_TOO_LONG);
    expect(&l, "short");
    assert_int_equal(l.consumed, (int64_t)N * PIECE + 7);
    ink_lines_release(&l);
}

/* Whoever adds no more than there is room for never fails, and short lines keep the buffer small. */
static void room_bounds_the_buffer(void **state)
{
    enum { MAX = 1024 * 1024 };
    static char block[64 * 1024];
    struct ink_lines l;
    struct ink_slice line;
    (void)state;

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = i % 50 == 49 ? '\n' : 'a';
    ink_lines_init(&l, MAX);
    for (int i = 0; i < 1000; i++) {
        size_t room = ink_lines_room(&l);

        if (room > sizeof(block))
            room = sizeof(block);
        if (room > 0)
            add(&l, block, room);
        for (int k = 0; k < 7; k++)
            assert_int_equal(ink_lines_next(&l, &line), INK_LINE_READY);
    }
    assert_true(l.buf.cap <= 160 * 1024);
    ink_lines_release(&l);

    ink_lines_init(&l, MAX); /* one line of nearly the limit: it gets the room it needs */
    memset(block, 'b', sizeof(block));
    for (size_t have = 0; have < MAX;) {
        size_t room = ink_lines_room(&l);

        assert_true(room > 0);
        if (room > MAX - have)
            room = MAX - have;
        add(&l, block, room);
        have += room;
        assert_int_equal(ink_lines_next(&l, &line), INK_LINE_AGAIN);
    }
    add(&l, "\n", 1);
    assert_int_equal(ink_lines_next(&l, &line), INK_LINE_READY);
    assert_int_equal(line.len, MAX);
    ink_lines_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_whatever_the_pieces),
        cmocka_unit_test(a_final_newline_begins_no_line),
        cmocka_unit_test(a_line_at_the_limit_is_taken_and_one_beyond_is_not),
        cmocka_unit_test(what_is_too_long_is_dropped_as_it_comes),
        cmocka_unit_test(room_bounds_the_buffer),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
