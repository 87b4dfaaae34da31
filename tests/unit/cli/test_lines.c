/* Lines of standard input: whole, in step, and bounded, however the bytes arrive. */
#include "unit.h"

#include "base/alloc.h"
#include "cli/lines.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct writer {
    int fd;
    const char *bytes;
    size_t len, piece;
};

static void *write_all(void *arg)
{
    struct writer *w = arg;

    for (size_t at = 0; at < w->len;) {
        size_t n = w->len - at < w->piece ? w->len - at : w->piece;
        ssize_t done = write(w->fd, w->bytes + at, n);

        if (done < 0)
            break;
        at += (size_t)done;
    }
    close(w->fd);
    return NULL;
}

struct feed {
    struct writer writer;
    pthread_t thread;
    struct line_reader reader;
    int fd;
};

static void feed_start(struct feed *f, const char *bytes, size_t len, size_t piece)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    f->writer = (struct writer){ ends[1], bytes, len, piece };
    f->fd = ends[0];
    lines_init(&f->reader, f->fd);
    assert_int_equal(pthread_create(&f->thread, NULL, write_all, &f->writer), 0);
}

static void feed_stop(struct feed *f)
{
    pthread_join(f->thread, NULL);
    lines_release(&f->reader);
    close(f->fd);
}

static void only_the_last_newline_is_removed(void **state)
{
    static const char text[] = "one\r\n\n  two \0 x\nlast";
    static const struct {
        const char *line;
        size_t len;
    } lines[] = { { "one\r", 4 }, { "", 0 }, { "  two \0 x", 9 }, { "last", 4 } };
    (void)state;

    for (size_t piece = 1; piece < sizeof(text); piece++) {
        struct feed f;
        struct ink_slice line;

        feed_start(&f, text, sizeof(text) - 1, piece);
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
            assert_int_equal(lines_wait(&f.reader, &line), LINE_READY);
            assert_int_equal(line.len, lines[i].len);
            assert_memory_equal(line.ptr, lines[i].line, line.len);
        }
        assert_int_equal(lines_wait(&f.reader, &line), LINE_END);
        assert_int_equal(lines_wait(&f.reader, &line), LINE_END);
        assert_int_equal(f.reader.consumed, sizeof(text) - 1);
        assert_int_equal(f.reader.failed, 0);
        feed_stop(&f);
    }
}

static void a_final_newline_begins_no_further_line(void **state)
{
    struct feed f;
    struct ink_slice line;
    (void)state;

    feed_start(&f, "a\n", 2, 2);
    assert_int_equal(lines_wait(&f.reader, &line), LINE_READY);
    assert_int_equal(lines_wait(&f.reader, &line), LINE_END);
    feed_stop(&f);
}

static void nothing_is_no_line(void **state)
{
    struct feed f;
    struct ink_slice line;
    (void)state;

    feed_start(&f, "", 0, 1);
    assert_int_equal(lines_wait(&f.reader, &line), LINE_END);
    feed_stop(&f);
}

/* `n` bytes of 'x', then "\nnext\n". */
static char *long_line(size_t n, size_t *len)
{
    static const char end[] = "\nnext\n";
    char *text = ink_alloc(n + sizeof(end));

    memset(text, 'x', n);
    memcpy(text + n, end, sizeof(end));
    *len = n + sizeof(end) - 1;
    return text;
}

static void a_line_may_be_as_long_as_the_limit_and_no_longer(void **state)
{
    static const size_t extra[] = { 0, 1, 64 * 1024, 5 * 1024 * 1024 };
    (void)state;

    for (size_t i = 0; i < sizeof(extra) / sizeof(extra[0]); i++) {
        struct feed f;
        struct ink_slice line;
        size_t len;
        char *text = long_line(LINES_MAX + extra[i], &len);

        feed_start(&f, text, len, 100000);
        assert_int_equal(lines_wait(&f.reader, &line), extra[i] == 0 ? LINE_READY : LINE_TOO_LONG);
        if (extra[i] == 0)
            assert_int_equal(line.len, LINES_MAX);
        assert_int_equal(lines_wait(&f.reader, &line), LINE_READY);
        assert_int_equal(line.len, 4);
        assert_memory_equal(line.ptr, "next", 4);
        assert_int_equal(lines_wait(&f.reader, &line), LINE_END);
        assert_true(f.reader.buf.cap < 2 * LINES_MAX);
        feed_stop(&f);
        free(text);
    }
}

static void a_long_last_line_without_newline_is_reported_once(void **state)
{
    struct feed f;
    struct ink_slice line;
    size_t len;
    char *text = long_line(3 * LINES_MAX, &len);
    (void)state;

    feed_start(&f, text, 3 * LINES_MAX, 70000);
    assert_int_equal(lines_wait(&f.reader, &line), LINE_TOO_LONG);
    assert_int_equal(lines_wait(&f.reader, &line), LINE_END);
    feed_stop(&f);
    free(text);
}

static void a_failed_read_ends_the_lines_and_is_remembered(void **state)
{
    struct line_reader r;
    struct ink_slice line;
    (void)state;

    lines_init(&r, 1000000);
    assert_int_equal(lines_wait(&r, &line), LINE_END);
    assert_true(r.failed != 0);
    lines_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_last_newline_is_removed),
        cmocka_unit_test(a_final_newline_begins_no_further_line),
        cmocka_unit_test(nothing_is_no_line),
        cmocka_unit_test(a_line_may_be_as_long_as_the_limit_and_no_longer),
        cmocka_unit_test(a_long_last_line_without_newline_is_reported_once),
        cmocka_unit_test(a_failed_read_ends_the_lines_and_is_remembered),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
