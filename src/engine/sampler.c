/*
 * Drawing a token without sorting the vocabulary.
 *
 * The row is copied once (bans and penalties change it) and cut into blocks whose maxima let later
 * passes skip most of it. Weights exp((x - max) / T) are summed a block at a time; a draw walks the block sums, then one
 * block, and top-p is checked for what was drawn. Where the set that top-k and top-p keep has to be known, a histogram over the
 * distance from the maximum finds the bucket that holds the cut, and only that bucket is sorted. Everything else is a pass over
 * vectors (row_math.h), so a row of 32,000 costs tens of microseconds.
 */
#include "engine/sampler.h"

#include "base/alloc.h"
#include "engine/row_math.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The histogram covers distances [0, SPAN) from a base, in units of the temperature; the weights there fall from 1
 * to 1e-7. When the cut lies further out, the base moves on by SPAN and the pass is repeated. N_SPANS * SPAN stays below
 * 87, where weights become 0 (EXP_MIN in row_math.c).
 */
enum { SPAN = 16, PER_UNIT = 32, N_BUCKETS = SPAN * PER_UNIT, N_SPANS = 5 };

struct entry {
    float x;
    int index;
};

struct sampler {
    const struct row_math *math;
    int n_max;
    float *x; /* [n_max, whole blocks] the row, with bans and penalties */
    float *w; /* the same size: weights */
    float *block_max, *block_sum;
    struct entry *entries; /* [n_max] one bucket */
    uint32_t *seen;        /* [n_max] stamp of the last row in which the entry was penalized */
    uint32_t stamp;
    double mass[N_BUCKETS];
    int count[N_BUCKETS];

    /* Of the row at hand: */
    int n, n_blocks;
    float max;
    double lse; /* log of the sum of exp(logit) at temperature 1 */
};

static void *must(void *p)
{
    return p ? p : ink_alloc(SIZE_MAX); /* ends the process with the usual message */
}

struct sampler *sampler_new(int n_max)
{
    assert(n_max > 0 && n_max <= 1 << 24);

    struct sampler *s = ink_zalloc(sizeof(*s));
    size_t n_blocks = ((size_t)n_max + ROW_BLOCK - 1) / ROW_BLOCK;
    size_t n = n_blocks * ROW_BLOCK;

    s->math = row_math_best();
    s->n_max = n_max;
    s->x = must(ink_try_alloc_aligned(n * sizeof(*s->x)));
    s->w = must(ink_try_alloc_aligned(n * sizeof(*s->w)));
    s->block_max = ink_alloc(n_blocks * sizeof(*s->block_max));
    s->block_sum = ink_alloc(n_blocks * sizeof(*s->block_sum));
    s->entries = ink_alloc((size_t)n_max * sizeof(*s->entries));
    s->seen = ink_zalloc((size_t)n_max * sizeof(*s->seen));
    return s;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    free(s->x);
    free(s->w);
    free(s->block_max);
    free(s->block_sum);
    free(s->entries);
    free(s->seen);
    free(s);
}

int sampler_row_find(const int32_t *ids, int n, int32_t id)
{
    int lo = 0, hi = n;

    if (!ids)
        return id >= 0 && id < n ? (int)id : -1;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (ids[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && ids[lo] == id ? lo : -1;
}

static int32_t id_of(const struct sampler_row *row, int index)
{
    return row->ids ? row->ids[index] : (int32_t)index;
}

static double sum_blocks(const struct sampler *s)
{
    double total = 0;

    for (int b = 0; b < s->n_blocks; b++)
        total += s->block_sum[b];
    return total;
}

static void find_max(struct sampler *s)
{
    s->max = -INFINITY;
    for (int b = 0; b < s->n_blocks; b++)
        s->max = s->block_max[b] > s->max ? s->block_max[b] : s->max;
}

static void renew_block_max(struct sampler *s, int block)
{
    s->math->block_max(s->x + (size_t)block * ROW_BLOCK, 1, &s->block_max[block]);
}

/* Copies the row, takes out what is banned, and finds its maximum and normalizer. */
static enum ink_status load(struct sampler *s, const struct sampler_row *row)
{
    assert(row->n > 0 && row->n <= s->n_max);

    s->n = row->n;
    s->n_blocks = (row->n + ROW_BLOCK - 1) / ROW_BLOCK;
    if (!s->math->load(row->logits, row->n, s->x, s->block_max))
        return INK_DEVICE;
    for (int i = 0; i < row->n_banned; i++) {
        int block = row->banned[i] / ROW_BLOCK;

        s->x[row->banned[i]] = -INFINITY;
        /* Neighbours are banned together, mostly: once for all of a block. */
        if (i + 1 == row->n_banned || row->banned[i + 1] / ROW_BLOCK != block)
            renew_block_max(s, block);
    }
    find_max(s);
    assert(s->max > -INFINITY);
    s->math->block_sum(s->x, s->block_max, s->n_blocks, s->max, 1.0f, s->block_sum);
    s->lse = (double)s->max + log(sum_blocks(s));
    return INK_OK;
}

static float logprob_of(const struct sampler *s, float logit)
{
    return (float)((double)logit - s->lse);
}

/* The likeliest entries; equal ones in the order of their ids. */
static void list_top(const struct sampler *s, const struct sampler_row *row, struct ink_token *top,
                     int n_top)
{
    int n = 0;

    for (int i = 0; i < n_top; i++)
        top[i] = (struct ink_token){ .id = -1, .logprob = -INFINITY };
    if (n_top == 0)
        return;
    for (int b = 0; b < s->n_blocks; b++) {
        /* While listing, `logprob` holds the logit itself: no rounding decides the order. */
        if (s->block_max[b] == -INFINITY || (n == n_top && s->block_max[b] <= top[n - 1].logprob))
            continue;
        for (int i = b * ROW_BLOCK; i < (b + 1) * ROW_BLOCK; i++) {
            float x = s->x[i];
            int at;

            if (x == -INFINITY || (n == n_top && x <= top[n - 1].logprob))
                continue;
            n += n < n_top;
            for (at = n - 1; at > 0 && top[at - 1].logprob < x; at--)
                top[at] = top[at - 1];
            top[at] = (struct ink_token){ .id = id_of(row, i), .logprob = x };
        }
    }
    for (int i = 0; i < n; i++)
        top[i].logprob = logprob_of(s, top[i].logprob);
}

static void penalize(struct sampler *s, const struct sampler_row *row, float penalty,
                     const struct ink_token *history, int n_history)
{
    if (penalty == 1.0f || n_history == 0)
        return;
    if (++s->stamp == 0) {
        memset(s->seen, 0, (size_t)s->n_max * sizeof(*s->seen));
        s->stamp = 1;
    }
    for (int i = 0; i < n_history; i++) {
        int at = sampler_row_find(row->ids, row->n, history[i].id);

        if (at < 0 || s->seen[at] == s->stamp)
            continue;
        s->seen[at] = s->stamp;
        s->x[at] = s->x[at] < 0 ? s->x[at] * penalty : s->x[at] / penalty;
        renew_block_max(s, at / ROW_BLOCK);
    }
    find_max(s);
}

static int first_max(const struct sampler *s)
{
    for (int b = 0;; b++) {
        if (s->block_max[b] < s->max)
            continue;
        for (int i = b * ROW_BLOCK;; i++) {
            if (s->x[i] == s->max)
                return i;
        }
    }
}

/* Likelier first; the lower id first among equals. */
static int by_rank(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;

    if (p->x != q->x)
        return p->x > q->x ? -1 : 1;
    return p->index < q->index ? -1 : p->index > q->index;
}

/* Which bucket of the span that starts at `base` a value falls into; >= N_BUCKETS beyond it, < 0 before it. */
static int bucket_of(const struct sampler *s, float x, float per_unit, int base)
{
    float d = (s->max - x) * per_unit;

    if (!(d < (float)(N_SPANS * N_BUCKETS)))
        return N_BUCKETS;
    return (int)d - base;
}

static void fill_histogram(struct sampler *s, float per_unit, int base)
{
    memset(s->mass, 0, sizeof(s->mass));
    memset(s->count, 0, sizeof(s->count));
    for (int b = 0; b < s->n_blocks; b++) {
        if (s->block_sum[b] == 0 || bucket_of(s, s->block_max[b], per_unit, base) >= N_BUCKETS)
            continue;
        for (int i = b * ROW_BLOCK; i < (b + 1) * ROW_BLOCK; i++) {
            int k = bucket_of(s, s->x[i], per_unit, base);

            if (k >= 0 && k < N_BUCKETS) {
                s->mass[k] += (double)s->w[i];
                s->count[k]++;
            }
        }
    }
}

static int gather_bucket(struct sampler *s, float per_unit, int base, int bucket)
{
    int n = 0;

    for (int b = 0; b < s->n_blocks; b++) {
        if (s->block_sum[b] == 0 || bucket_of(s, s->block_max[b], per_unit, base) > bucket)
            continue;
        for (int i = b * ROW_BLOCK; i < (b + 1) * ROW_BLOCK; i++) {
            if (bucket_of(s, s->x[i], per_unit, base) == bucket)
                s->entries[n++] = (struct entry){ s->x[i], i };
        }
    }
    qsort(s->entries, (size_t)n, sizeof(s->entries[0]), by_rank);
    return n;
}

/* What is left of the row: values above `x`, and those equal to it up to entry `last`. */
struct limit {
    float x;
    int last;
};

/* What the walk over the histogram looks for: the k-th value, then the one where the mass reaches its goal. */
struct search {
    float per_unit;
    int base; /* first bucket of the span that the histogram holds; -1: none yet */
};

/* Makes the histogram hold span number `i`. */
static void look_at(struct sampler *s, struct search *at, int i)
{
    if (at->base == i * N_BUCKETS)
        return;
    at->base = i * N_BUCKETS;
    fill_histogram(s, at->per_unit, at->base);
}

/* The limit that keeps the k largest (and ties with the last), and `*mass` of what it keeps. */
static struct limit limit_top_k(struct sampler *s, struct search *at, int k, double *mass)
{
    int seen = 0;
    double sum = 0;

    for (int i = 0; i < N_SPANS; i++) {
        look_at(s, at, i);
        for (int b = 0; b < N_BUCKETS; b++) {
            if (seen + s->count[b] < k) {
                seen += s->count[b];
                sum += s->mass[b];
                continue;
            }
            int n = gather_bucket(s, at->per_unit, at->base, b);
            float cut = s->entries[k - seen - 1].x;

            for (int j = 0; j < n && s->entries[j].x >= cut; j++)
                sum += (double)s->w[s->entries[j].index];
            *mass = sum;
            return (struct limit){ cut, s->n };
        }
    }
    *mass = sum; /* what is further out weighs nothing */
    return (struct limit){ -INFINITY, s->n };
}

/* The limit that keeps the likeliest until their mass reaches `goal`. */
static struct limit limit_top_p(struct sampler *s, struct search *at, double goal)
{
    double sum = 0;

    for (int i = 0; i < N_SPANS; i++) {
        look_at(s, at, i);
        for (int b = 0; b < N_BUCKETS; b++) {
            if (s->count[b] == 0 || sum + s->mass[b] < goal) {
                sum += s->mass[b];
                continue;
            }
            int n = gather_bucket(s, at->per_unit, at->base, b);

            for (int j = 0; j < n; j++) {
                sum += (double)s->w[s->entries[j].index];
                /* The last of the bucket ends the search even when its sum came out in another rounding. */
                if (sum >= goal || j == n - 1)
                    return (struct limit){ s->entries[j].x, s->entries[j].index };
            }
        }
    }
    return (struct limit){ -INFINITY, s->n };
}

static struct limit stricter(struct limit a, struct limit b)
{
    if (a.x != b.x)
        return a.x > b.x ? a : b;
    return a.last < b.last ? a : b;
}

/* Sets the weight of everything beyond the filters to 0; returns the mass that is left. */
static double filter(struct sampler *s, const struct ink_sampling *how, double total)
{
    struct search at = { .per_unit = (float)PER_UNIT / how->temperature, .base = -1 };
    struct limit limit = { -INFINITY, s->n };

    if (how->top_k > 0 && how->top_k < s->n)
        limit = limit_top_k(s, &at, how->top_k, &total);
    if (how->top_p < 1)
        limit = stricter(limit, limit_top_p(s, &at, (double)how->top_p * total));
    if (how->min_p > 0) {
        float x = (float)((double)s->max + (double)how->temperature * log((double)how->min_p));

        limit = stricter(limit, (struct limit){ x < s->max ? x : s->max, s->n });
    }
    if (limit.x == -INFINITY)
        return sum_blocks(s);

    if (limit.last < s->n - 1) {
        /* Of several that are equal to the limit, only the first ones stay. */
        for (int b = limit.last / ROW_BLOCK; b < s->n_blocks; b++) {
            if (s->block_max[b] < limit.x)
                continue;
            for (int i = b * ROW_BLOCK; i < (b + 1) * ROW_BLOCK; i++) {
                if (i > limit.last && s->x[i] == limit.x)
                    s->w[i] = 0;
            }
        }
    }
    s->math->cut(s->x, s->block_max, s->n_blocks, limit.x, s->w, s->block_sum);
    return sum_blocks(s);
}

/* The entry at which the running sum of weights passes `r`. */
static int walk(const struct sampler *s, double r)
{
    int last = -1, b;

    for (b = 0; b < s->n_blocks - 1 && r >= s->block_sum[b]; b++)
        r -= s->block_sum[b];
    /* Rounding may leave r just beyond the last weight: then it is the last entry that has any. */
    for (; b >= 0 && s->block_sum[b] == 0; b--)
        r = INFINITY;
    for (int i = b * ROW_BLOCK; i < (b + 1) * ROW_BLOCK; i++) {
        if (s->w[i] == 0)
            continue;
        last = i;
        if (r < s->w[i])
            break;
        r -= s->w[i];
    }
    return last;
}

/*
 * Whether top-p and min-p would keep an entry: what goes before it, likelier ones and equal ones of lower id, must not
 * have reached p yet.
 */
static bool passes(const struct sampler *s, const struct ink_sampling *how, double total, int at)
{
    double goal = (double)how->top_p * total;
    int n_equal;

    if (s->w[at] < how->min_p)
        return false;
    if (how->top_p >= 1)
        return true;
    double before =
        s->math->above(s->x, s->w, s->block_max, s->block_sum, s->n_blocks, s->x[at], &n_equal);

    if (n_equal > 1) {
        for (int b = 0; b <= at / ROW_BLOCK; b++) {
            if (s->block_max[b] < s->x[at] || s->block_sum[b] == 0)
                continue;
            for (int i = b * ROW_BLOCK; i < (b + 1) * ROW_BLOCK && i < at; i++)
                before += s->x[i] == s->x[at] ? (double)s->w[i] : 0;
        }
    }
    return before < goal;
}

/*
 * Draws from all, and again while the filters exclude what came: the same distribution as drawing from what they keep, without
 * having to find out what that is. At the usual p of 0.9 nine of ten first draws are kept. When it takes too many, or
 * top-k is asked for, the filters are carried out.
 */
static int choose(struct sampler *s, const struct ink_sampling *how,
                  const struct random_place *place)
{
    enum { TRIES = 6 };
    struct random_place at = *place;
    double total;

    /* So cold that dividing by the temperature would overflow: the same as greedy. */
    if (how->temperature < 1e-6f)
        return first_max(s);

    s->math->weights(s->x, s->block_max, s->n_blocks, s->max, 1.0f / how->temperature, s->w,
                     s->block_sum);
    total = sum_blocks(s);
    if (how->top_k <= 0 || how->top_k >= s->n) {
        for (at.try = 0; at.try < TRIES; at.try++) {
            int drawn = walk(s, random_uniform(how->seed, &at) * total);

            if (passes(s, how, total, drawn))
                return drawn;
        }
    }
    total = filter(s, how, total);
    return walk(s, random_uniform(how->seed, &at) * total);
}

enum ink_status sampler_draw(struct sampler *s, const struct sampler_row *row,
                             const struct ink_sampling *how, const struct random_place *place,
                             const struct ink_token *history, int n_history, struct ink_token *top,
                             int n_top, struct ink_token *out)
{
    enum ink_status st = load(s, row);

    if (st != INK_OK)
        return st;
    list_top(s, row, top, n_top);
    penalize(s, row, how->repetition_penalty, history, n_history);
    int at = choose(s, how, place);

    out->id = id_of(row, at);
    out->logprob = logprob_of(s, row->logits[at]);
    return INK_OK;
}

enum ink_status sampler_score(struct sampler *s, const struct sampler_row *row, int32_t id,
                              struct ink_token *top, int n_top, struct ink_token *out)
{
    enum ink_status st = load(s, row);
    int at = sampler_row_find(row->ids, row->n, id);

    if (st != INK_OK)
        return st;
    list_top(s, row, top, n_top);
    out->id = id;
    out->logprob = at < 0 ? -INFINITY : logprob_of(s, s->x[at]);
    return INK_OK;
}
