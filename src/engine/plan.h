#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What the next step computes. Pure: reads numbers, writes a plan; the engine carries it out.
 */

/* One running sequence. */
struct plan_seq {
    int n_left; /* positions it could take at once: 1 when drawing, all that are left when scoring */
    uint64_t served; /* step in which it last had a row; 0: never */
};

/* A sequence and how many consecutive positions it gets. */
struct plan_share {
    int seq; /* index into the sequences given */
    int n_rows;
};

/*
 * Shares out at most `max_rows` rows of a step. Every sequence gets one, those that have waited longest first, so that none
 * stands still while another takes a second; what room is left goes to scored sequences, an equal share each.
 * Writes to `shares` (room for n_seqs), ascending by `seq`; returns their number.
 */
int plan_rows(const struct plan_seq *seqs, int n_seqs, int max_rows, struct plan_share *shares);

/* The encoder's side. Costs are measured; 0 while unknown. */
struct plan_encode {
    double ns_per_unit; /* one token in one layer */
    int n_tokens;       /* of the batch under way */
    int n_layers_left;
    int n_running; /* sequences being decoded */
    int n_waiting; /* sequences that wait for an encoding */
    bool ahead;    /* nobody waits for the batch under way */
};

/*
 * Time for one slice of encoder work: between two decoder steps 30 ms, so that a stream's gap stays short; 60 ms when more
 * sequences wait than run, as they are then worth more than the few; 200 ms when nothing is decoded, where only
 * cancelling waits for the slice. A batch encoded ahead has 30 ms: the next request may come at any moment.
 */
double plan_encode_budget_ns(const struct plan_encode *e);

/* Layers to advance in this step: at least 1, at most n_layers_left. */
int plan_encode_layers(const struct plan_encode *e);

/* Tokens that a new encoder batch may have, at most `max_tokens`; a single source may exceed it. */
int plan_encode_tokens(const struct plan_encode *e, int max_tokens);

#endif
