/*
 * Chooses the work of the next step.
 *
 * Decoding goes on in every step, one row a sequence, so that new sources never stall an answer under way; encoder work
 * is cut into slices by groups of layers, whose size follows from what a layer was measured to cost. A sequence is only
 * started when the pool can hold all it may grow to (admit.c), which is why a running one never has to be thrown out.
 */
#include "engine/plan.h"

/* Index of the sequence that has waited longest and has no share yet (n_rows == 0), or -1. */
static int longest_waiting(const struct plan_seq *seqs, const struct plan_share *shares, int n)
{
    int best = -1;

    for (int i = 0; i < n; i++) {
        if (shares[i].n_rows == 0 && (best < 0 || seqs[i].served < seqs[best].served))
            best = i;
    }
    return best;
}

int plan_rows(const struct plan_seq *seqs, int n_seqs, int max_rows, struct plan_share *shares)
{
    int room = max_rows, n = 0, n_hungry;

    for (int i = 0; i < n_seqs; i++)
        shares[i] = (struct plan_share){ i, n_seqs <= max_rows };
    if (n_seqs <= max_rows) {
        room -= n_seqs;
    } else {
        for (; room > 0; room--)
            shares[longest_waiting(seqs, shares, n_seqs)].n_rows = 1;
    }

    /* Who takes less than an equal share leaves the rest to the others. */
    do {
        n_hungry = 0;
        for (int i = 0; i < n_seqs; i++)
            n_hungry += shares[i].n_rows > 0 && shares[i].n_rows < seqs[i].n_left;
        for (int i = 0, each = n_hungry > 0 ? (room + n_hungry - 1) / n_hungry : 0; i < n_seqs;
             i++) {
            int more = shares[i].n_rows > 0 ? seqs[i].n_left - shares[i].n_rows : 0;

            more = more < each ? more : each;
            more = more < room ? more : room;
            shares[i].n_rows += more;
            room -= more;
        }
    } while (room > 0 && n_hungry > 0);

    for (int i = 0; i < n_seqs; i++) {
        if (shares[i].n_rows > 0)
            shares[n++] = shares[i];
    }
    return n;
}

double plan_encode_budget_ns(const struct plan_encode *e)
{
    if (e->ahead)
        return 30e6;
    if (e->n_running == 0)
        return 200e6;
    return e->n_waiting > e->n_running ? 60e6 : 30e6;
}

int plan_encode_layers(const struct plan_encode *e)
{
    double layer_ns = e->ns_per_unit * e->n_tokens;
    double n;

    if (layer_ns <= 0) /* the first batch measures */
        return e->n_running == 0 && !e->ahead ? e->n_layers_left : 1;
    n = plan_encode_budget_ns(e) / layer_ns;
    if (n >= e->n_layers_left)
        return e->n_layers_left;
    return n < 1 ? 1 : (int)n;
}

int plan_encode_tokens(const struct plan_encode *e, int max_tokens)
{
    enum { FIRST = 512 }; /* before anything is measured */
    double n = e->ns_per_unit > 0 ? plan_encode_budget_ns(e) / e->ns_per_unit : FIRST;

    return n < max_tokens ? (int)n : max_tokens;
}
