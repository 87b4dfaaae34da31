#ifndef TASK_COUNTERS_H
#define TASK_COUNTERS_H

/*
 * What the engine behind a served model has done, as named numbers for a metrics page. Any thread; a
 * snapshot, so numbers that belong together were read together.
 */
struct ink_served;

struct ink_counter {
    const char *name; /* "jobs_finished_total"; static */
    const char *type; /* "counter" or "gauge" */
    const char *help;
    double value;
};

enum { INK_COUNTERS_MAX = 32 };

/* Writes at most INK_COUNTERS_MAX rows to `out` and returns how many. */
int ink_served_counters(const struct ink_served *served, struct ink_counter *out);

#endif
