/* A stream's log: places, events, and what a Last-Event-ID may say. */
#include "unit.h"

#include "server/stream_log.h"

#include <stdio.h>
#include <string.h>

static void add(struct stream_log *log, int n)
{
    assert_int_equal(stream_log_add(log, json_pack("{s:i}", "n", n)), INK_OK);
}

static void a_reader_gets_every_byte_from_any_event_on(void **state)
{
    static const char whole[] = "id: rw-1:1\ndata: {\"n\":1}\n\nid: rw-1:2\ndata: {\"n\":2}\n\n"
                                "id: rw-1:3\ndata: {\"n\":3}\n\ndata: [DONE]\n\n";
    struct stream_log log;
    (void)state;

    stream_log_init(&log, "rw-1", 1000);
    for (int n = 1; n <= 3; n++)
        add(&log, n);
    assert_int_equal(stream_log_close(&log), INK_OK);
    assert_int_equal(stream_log_end(&log), strlen(whole));
    for (int n = 0; n <= 3; n++) {
        char got[200] = "";
        size_t place, len = 0, more;

        assert_true(stream_log_after(&log, n, &place));
        /* In pieces that no event ends with. */
        while ((more = stream_log_read(&log, place + len, got + len, 7)) > 0)
            len += more;
        assert_string_equal(got, whole + place);
        assert_int_equal(place, n * (strlen(whole) - strlen("data: [DONE]\n\n")) / 3);
    }
    stream_log_release(&log);
}

static void an_event_that_is_not_there_has_no_place(void **state)
{
    struct stream_log log;
    size_t place;
    (void)state;

    stream_log_init(&log, "rw-1", 1000);
    assert_true(stream_log_after(&log, 0, &place) && place == 0);
    add(&log, 1);
    assert_false(stream_log_after(&log, 2, &place));
    assert_false(stream_log_after(&log, -1, &place));
    stream_log_release(&log);
}

static void what_was_forgotten_is_gone_and_the_rest_stays(void **state)
{
    struct stream_log log;
    char got[100];
    size_t place;
    (void)state;

    stream_log_init(&log, "rw-1", 1000);
    add(&log, 1);
    size_t end = stream_log_end(&log);
    stream_log_forget(&log);
    assert_int_equal(stream_log_end(&log), end);
    assert_false(stream_log_after(&log, 0, &place));
    assert_true(stream_log_after(&log, 1, &place) && place == end);
    add(&log, 2);
    size_t n = stream_log_read(&log, place, got, sizeof(got));
    assert_int_equal(n, strlen("id: rw-1:2\ndata: {\"n\":2}\n\n"));
    assert_memory_equal(got, "id: rw-1:2\ndata: {\"n\":2}\n\n", n);
    stream_log_release(&log);
}

static void an_event_beyond_the_room_is_not_begun(void **state)
{
    struct stream_log log;
    (void)state;

    stream_log_init(&log, "rw-1", 60);
    add(&log, 1);
    add(&log, 2);
    size_t end = stream_log_end(&log);
    assert_int_equal(stream_log_add(&log, json_pack("{s:i}", "n", 3)), INK_NO_MEMORY);
    assert_int_equal(stream_log_end(&log), end);
    assert_int_equal(log.n_events, 2);
    stream_log_release(&log);
}

static void an_event_is_named_in_two_ways(void **state)
{
    static const struct {
        const char *text;
        int n; /* -1: not an event's name */
    } rows[] = {
        { "", 0 },
        { "0", 0 },
        { "7", 7 },
        { "007", 7 },
        { "rw-1:0", 0 },
        { "rw-1:12", 12 },
        { "999999999", 999999999 },
        { "1000000000", -1 },
        { "rw-1", -1 },
        { "rw-1:", -1 },
        { "rw-1:x", -1 },
        { "rw-10:1", -1 },
        { "rw-2:1", -1 },
        { "-1", -1 },
        { "+1", -1 },
        { "1.0", -1 },
        { " 1", -1 },
        { "1 ", -1 },
        { ":1", -1 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int n = -1;
        bool named = stream_event_number(rows[i].text, "rw-1", &n);

        if (named != (rows[i].n >= 0) || (named && n != rows[i].n))
            fail_msg("\"%s\": %d", rows[i].text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_gets_every_byte_from_any_event_on),
        cmocka_unit_test(an_event_that_is_not_there_has_no_place),
        cmocka_unit_test(what_was_forgotten_is_gone_and_the_rest_stays),
        cmocka_unit_test(an_event_beyond_the_room_is_not_begun),
        cmocka_unit_test(an_event_is_named_in_two_ways),
    };
    return cmocka_run_group_tests_name("stream_log", tests, NULL, NULL);
}
