/* A line on the terminal that says how far a long job is. */
#include "cli/cli.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t REDRAW_NS = 100 * 1000 * 1000;
static const int64_t FIRST_NS = 300 * 1000 * 1000; /* what is done sooner needs no line */

static int terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

static void duration(double seconds, char out[24])
{
    long s = seconds < 0 ? 0 : seconds > 359999 ? 359999 : (long)(seconds + 0.5);

    if (s >= 3600)
        snprintf(out, 24, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 24, "%ld:%02ld", s / 60, s % 60);
}

void progress_begin(struct progress *p, const char *verb, const char *unit)
{
    *p = (struct progress){ .verb = verb, .unit = unit, .start_ns = ink_clock_ns() };
    p->drawn_ns = p->start_ns + FIRST_NS - REDRAW_NS;
}

/* "41 %  120 MB/s  0:07 left", with what is known. */
static void describe(const struct progress *p, int64_t done, int64_t total, int64_t now, char *out,
                     size_t cap)
{
    double seconds = (double)(now - p->start_ns) / 1e9;
    double rate = seconds > 0 ? (double)(done - p->from) / seconds : 0;
    char amount[64], speed[64] = "", left[48] = "", b1[24];

    if (total > 0)
        snprintf(amount, sizeof(amount), "%3.0f %%", 100.0 * (double)done / (double)total);
    else if (p->unit)
        snprintf(amount, sizeof(amount), "%lld %s", (long long)done, p->unit);
    else
        snprintf(amount, sizeof(amount), "%s", cli_bytes(done, b1));
    if (rate > 0 && p->unit)
        snprintf(speed, sizeof(speed), "  %.1f %s/s", rate, p->unit);
    else if (rate > 0)
        snprintf(speed, sizeof(speed), "  %s/s", cli_bytes((int64_t)rate, b1));
    if (rate > 0 && total > done) {
        char d[24];

        duration((double)(total - done) / rate, d);
        snprintf(left, sizeof(left), "  %s left", d);
    }
    snprintf(out, cap, "%s%s%s", amount, speed, left);
}

void progress_update(struct progress *p, int64_t done, int64_t total, const char *what)
{
    int64_t now = ink_clock_ns();
    char numbers[200];
    int room;

    if (now - p->drawn_ns < REDRAW_NS || !isatty(STDERR_FILENO))
        return;
    p->drawn_ns = now;
    p->visible = true;
    describe(p, done, total, now, numbers, sizeof(numbers));
    room = terminal_columns() - (int)strlen(numbers) - (int)strlen(p->verb) - 4;
    if (!what || room < 4)
        what = "";
    fprintf(stderr, "\r\033[K%s %.*s%s%s", p->verb, room > 0 ? room : 0, what, *what ? "  " : "",
            numbers);
    (void)fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->visible)
        fprintf(stderr, "\r\033[K");
    p->visible = false;
}
