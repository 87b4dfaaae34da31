/*
 * T5 v1.0, T5 v1.1, mT5 and umT5: encoder-decoders with relative position bias.
 *
 * One encoder layer:
 *   x += Wo * attention(Wq n, Wk n, Wv n),                      n = rms_norm(x)
 *   x += Wo' * act(Wi n)                                        n = rms_norm(x)
 * One decoder layer: the same with causal attention, and between the two
 *   x += Wo'' * attention(Wq' n, K, V),                         K = Wk' enc, V = Wv' enc
 *
 * Pitfalls:
 *   - attention scores are not scaled: the initialization took 1/sqrt(d) into Wq
 *   - the inner width I = heads * d_kv may differ from E
 *   - the position bias belongs to the first layer and serves all; in umT5 every layer has its own
 *   - v1.0 feeds forward through relu(Wi n), the others through gelu_tanh(Wi_0 n) * (Wi_1 n)
 *   - a head tied to the embedding sees its input scaled by E^-0.5
 *   - the feed-forward output overflows 16-bit floats: activations stay f32 throughout
 *
 * Source of the formulas: Raffel et al. 2020 (arXiv 1910.10683), Shazeer 2020 (2002.05202), Chung et al. 2023 (umT5,
 * 2304.09151), and the numbers of transformers' T5, MT5 and UMT5 modules, which the golden tests compare.
 */
#include "model/arch.h"

#include "base/alloc.h"
#include "model/i8_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one stack's layer has; cross only in the decoder. */
struct t5_layer {
    float *attn_norm, *cross_norm, *ffn_norm;   /* [E], owned */
    struct linear qkv;                          /* [E, 3I] */
    struct linear attn_out;                     /* [I, E] */
    struct linear cross_q, cross_kv, cross_out; /* [E, I] [E, 2I] [I, E] */
    struct linear ffn_in;                       /* [E, F] or [E, 2F], gate first */
    struct linear ffn_out;                      /* [F, E] */
    struct position_bias bias;                  /* umT5: of this layer; else empty */
};

struct t5_stack {
    int n_layers;
    struct t5_layer *layers;
    float *final_norm;         /* [E], owned */
    struct position_bias bias; /* of all layers; empty in umT5 */
};

struct arch {
    int d_model, d_ff, n_heads, d_kv, n_vocab;
    int n_buckets, max_distance;
    int max_source, max_target;
    float eps, logit_scale;
    enum layer_activation activation;
    struct weight embedding; /* [E, V] */
    struct weight output;    /* [E, V]; the embedding when tied */
    struct t5_stack encoder, decoder;
    float *head_norm; /* [E] the decoder's final norm times logit_scale; owned */
    struct arch_load load;
};

/*
 * Bucket of a distance, as the reference: half of the buckets are exact, the rest grow with the logarithm up to
 * max_distance. Bidirectional: buckets are halved between keys before and after the query.
 * `relative` = key position - query position.
 */
static int bucket_of(int relative, bool bidirectional, int n_buckets, int max_distance)
{
    int first = 0, distance;

    if (bidirectional) {
        n_buckets /= 2;
        first = relative > 0 ? n_buckets : 0;
        distance = abs(relative);
    } else {
        distance = relative < 0 ? -relative : 0;
    }
    int n_exact = n_buckets / 2;
    if (distance < n_exact)
        return first + distance;
    /* In single precision and in this order, because the reference truncates the result. */
    float grow =
        logf((float)distance / (float)n_exact) / (float)log((double)max_distance / n_exact);
    int bucket = n_exact + (int)(grow * (float)(n_buckets - n_exact));
    return first + (bucket < n_buckets ? bucket : n_buckets - 1);
}

/*
 * Spreads the bucket values over distances. Encoder: entry (max - 1) + (key - query), so a query at `pos` starts at
 * max - 1 - pos. Decoder: keys never come after the query; the same index with only the first half.
 */
static enum ink_status load_bias(const struct arch *a, struct position_bias *b, bool encoder,
                                 int layer, struct ink_err *err)
{
    struct weight w;
    const int max = encoder ? a->max_source : a->max_target;
    enum ink_status st = weight_bind(a->load.file, &w, a->n_heads, a->n_buckets, err,
                                     "%s.blk.%d.attn_rel_b.weight", encoder ? "enc" : "dec", layer);

    if (st != INK_OK)
        return st;
    float *values = ink_alloc((size_t)a->n_heads * sizeof(*values));
    b->n = encoder ? 2 * max - 1 : max;
    b->bias = ink_alloc((size_t)b->n * (size_t)a->n_heads * sizeof(*b->bias));
    for (int i = 0; i < b->n; i++) {
        weight_row(&w, bucket_of(i - (max - 1), encoder, a->n_buckets, a->max_distance), values);
        for (int h = 0; h < a->n_heads; h++)
            b->bias[(size_t)h * (size_t)b->n + (size_t)i] = values[h];
    }
    free(values);
    return INK_OK;
}

static int encoder_bias_from(const struct arch *a, int pos)
{
    return a->max_source - 1 - pos;
}

static int decoder_bias_from(const struct arch *a, int pos)
{
    return a->max_target - 1 - pos;
}

/* Binds up to three matrices of one layer by their names and makes one linear layer of them. */
static enum ink_status load_linear(const struct arch *a, struct linear *l, bool encoder, int layer,
                                   const char *const *names, const int *n_out, int n_parts,
                                   int n_in, struct ink_err *err)
{
    struct weight parts[LINEAR_PARTS_MAX];

    for (int i = 0; i < n_parts; i++) {
        enum ink_status st =
            weight_bind(a->load.file, &parts[i], n_in, n_out[i], err, "%s.blk.%d.%s.weight",
                        encoder ? "enc" : "dec", layer, names[i]);
        if (st != INK_OK)
            return st;
    }
    return linear_init(l, parts, n_parts, a->load.compute, a->load.kernel, NULL, 0,
                       a->load.n_threads, a->load.file, err);
}

static enum ink_status load_layer(const struct arch *a, struct t5_layer *l, bool encoder, int i,
                                  struct ink_err *err)
{
    static const char *const qkv[] = { "attn_q", "attn_k", "attn_v" };
    static const char *const attn_out[] = { "attn_o" };
    static const char *const cross_q[] = { "cross_attn_q" };
    static const char *const cross_kv[] = { "cross_attn_k", "cross_attn_v" };
    static const char *const cross_out[] = { "cross_attn_o" };
    static const char *const gate_up[] = { "ffn_gate", "ffn_up" };
    static const char *const up[] = { "ffn_up" };
    static const char *const down[] = { "ffn_down" };
    const char *side = encoder ? "enc" : "dec";
    const int e = a->d_model, inner = a->n_heads * a->d_kv;
    const int width_e[] = { e }, width_i[] = { inner, inner, inner },
              width_f[] = { a->d_ff, a->d_ff };
    const bool gated = a->activation == LAYER_GELU_GATE;
    enum ink_status st;

    st = weight_vector(a->load.file, &l->attn_norm, e, err, "%s.blk.%d.attn_norm.weight", side, i);
    if (st == INK_OK)
        st = load_linear(a, &l->qkv, encoder, i, qkv, width_i, 3, e, err);
    if (st == INK_OK)
        st = load_linear(a, &l->attn_out, encoder, i, attn_out, width_e, 1, inner, err);
    if (st == INK_OK && !encoder) {
        st = weight_vector(a->load.file, &l->cross_norm, e, err, "%s.blk.%d.cross_attn_norm.weight",
                           side, i);
        if (st == INK_OK)
            st = load_linear(a, &l->cross_q, encoder, i, cross_q, width_i, 1, e, err);
        if (st == INK_OK)
            st = load_linear(a, &l->cross_kv, encoder, i, cross_kv, width_i, 2, e, err);
        if (st == INK_OK)
            st = load_linear(a, &l->cross_out, encoder, i, cross_out, width_e, 1, inner, err);
    }
    if (st == INK_OK)
        st =
            weight_vector(a->load.file, &l->ffn_norm, e, err, "%s.blk.%d.ffn_norm.weight", side, i);
    if (st == INK_OK)
        st = load_linear(a, &l->ffn_in, encoder, i, gated ? gate_up : up, width_f, gated ? 2 : 1, e,
                         err);
    if (st == INK_OK)
        st = load_linear(a, &l->ffn_out, encoder, i, down, width_e, 1, a->d_ff, err);
    return st;
}

static enum ink_status load_stack(const struct arch *a, struct t5_stack *s, bool encoder,
                                  int n_layers, struct ink_err *err)
{
    const char *side = encoder ? "enc" : "dec";
    /* One bias for all layers, or one each: told apart by the second layer's tensor. */
    const bool own_bias =
        n_layers > 1 && weight_exists(a->load.file, "%s.blk.1.attn_rel_b.weight", side);
    enum ink_status st = INK_OK;

    s->n_layers = n_layers;
    s->layers = ink_zalloc((size_t)n_layers * sizeof(*s->layers));
    for (int i = 0; st == INK_OK && i < n_layers; i++) {
        st = load_layer(a, &s->layers[i], encoder, i, err);
        if (st == INK_OK && (own_bias || i == 0))
            st = load_bias(a, own_bias ? &s->layers[i].bias : &s->bias, encoder, i, err);
    }
    if (st == INK_OK)
        st = weight_vector(a->load.file, &s->final_norm, a->d_model, err, "%s.output_norm.weight",
                           side);
    return st;
}

static void free_stack(struct t5_stack *s)
{
    for (int i = 0; i < s->n_layers; i++) {
        struct t5_layer *l = &s->layers[i];

        free(l->attn_norm);
        free(l->cross_norm);
        free(l->ffn_norm);
        linear_release(&l->qkv);
        linear_release(&l->attn_out);
        linear_release(&l->cross_q);
        linear_release(&l->cross_kv);
        linear_release(&l->cross_out);
        linear_release(&l->ffn_in);
        linear_release(&l->ffn_out);
        free(l->bias.bias);
    }
    free(s->layers);
    free(s->final_norm);
    free(s->bias.bias);
}

static void t5_free(struct arch *a)
{
    if (!a)
        return;
    free_stack(&a->encoder);
    free_stack(&a->decoder);
    free(a->head_norm);
    free(a);
}

static enum ink_status read_numbers(struct arch *a, int *n_encoder, int *n_decoder,
                                    int *decoder_start, struct ink_err *err)
{
    const struct ink_model_file *f = a->load.file;
    enum { DIM_MAX = 32768, LAYERS_MAX = 256, VOCAB_MAX = 1 << 22 };
    enum ink_status st;

    st = hparam_int(f, "embedding_length", 1, DIM_MAX, &a->d_model, err);
    if (st == INK_OK)
        st = hparam_int(f, "feed_forward_length", 1, DIM_MAX, &a->d_ff, err);
    if (st == INK_OK)
        st = hparam_int(f, "block_count", 1, LAYERS_MAX, n_encoder, err);
    if (st == INK_OK)
        st = hparam_int_or(f, "decoder_block_count", 1, LAYERS_MAX, *n_encoder, n_decoder, err);
    if (st == INK_OK)
        st = hparam_int(f, "attention.head_count", 1, 1024, &a->n_heads, err);
    if (st == INK_OK)
        st = hparam_int_or(f, "attention.key_length", 1, 1024, a->d_model / a->n_heads, &a->d_kv,
                           err);
    if (st == INK_OK)
        st = hparam_int_or(f, "attention.relative_buckets_count", 4, 1024, 32, &a->n_buckets, err);
    if (st == INK_OK)
        st = hparam_int_or(f, "attention.relative_max_distance", 1, 1 << 20, 128, &a->max_distance,
                           err);
    if (st == INK_OK)
        st = hparam_int_or(f, "decoder_start_token_id", 0, VOCAB_MAX, 0, decoder_start, err);
    if (st == INK_OK && (int64_t)a->n_heads * a->d_kv > DIM_MAX)
        st = ink_err_set(err, INK_CORRUPT, "%s: %d heads of %d are wider than %d",
                         ink_model_file_path(f), a->n_heads, a->d_kv, DIM_MAX);
    if (st == INK_OK && a->max_distance <= a->n_buckets / 4)
        st = ink_err_set(err, INK_CORRUPT,
                         "%s: attention.relative_max_distance: %d is too small for %d buckets",
                         ink_model_file_path(f), a->max_distance, a->n_buckets);
    a->eps = hparam_float_or(f, "attention.layer_norm_rms_epsilon",
                             hparam_float_or(f, "attention.layer_norm_epsilon", 1e-6f));
    return st;
}

static enum ink_status t5_load(const struct arch_load *load, struct arch **out,
                               struct ink_model_info *info, struct ink_err *err)
{
    struct arch *a = ink_zalloc(sizeof(*a));
    int n_encoder, n_decoder, decoder_start;

    a->load = *load;
    a->max_source = load->options->max_encode_tokens;
    a->max_target = info->max_target_tokens;
    enum ink_status st = read_numbers(a, &n_encoder, &n_decoder, &decoder_start, err);
    if (st == INK_OK)
        st = weight_bind(load->file, &a->embedding, a->d_model, 0, err, "token_embd.weight");
    if (st != INK_OK)
        goto out;

    a->n_vocab = a->embedding.n_out;
    if (decoder_start >= a->n_vocab) {
        st = ink_err_set(err, INK_CORRUPT,
                         "%s: decoder_start_token_id: %d is not in the vocabulary of %d",
                         ink_model_file_path(load->file), decoder_start, a->n_vocab);
        goto out;
    }
    a->activation =
        weight_exists(load->file, "enc.blk.0.ffn_gate.weight") ? LAYER_GELU_GATE : LAYER_RELU;
    bool tied = !weight_exists(load->file, "output.weight");
    a->output = a->embedding;
    if (!tied)
        st = weight_bind(load->file, &a->output, a->d_model, a->n_vocab, err, "output.weight");
    a->logit_scale =
        hparam_float_or(load->file, "logit_scale", tied ? 1.0f / sqrtf((float)a->d_model) : 1.0f);
    if (st == INK_OK)
        st = load_stack(a, &a->encoder, true, n_encoder, err);
    if (st == INK_OK)
        st = load_stack(a, &a->decoder, false, n_decoder, err);
    if (st != INK_OK)
        goto out;

    /* The head's input is scaled, which is the same as scaling the norm before it, and free. */
    a->head_norm = ink_alloc((size_t)a->d_model * sizeof(*a->head_norm));
    for (int i = 0; i < a->d_model; i++)
        a->head_norm[i] = a->decoder.final_norm[i] * a->logit_scale;

    info->has_encoder = true;
    info->n_vocab = a->n_vocab;
    info->n_encoder_layers = n_encoder;
    info->n_decoder_layers = n_decoder;
    info->d_model = a->d_model;
    info->decoder_start = decoder_start;
    info->max_source_tokens = a->max_source;
    *out = a;
    a = NULL;
out:
    t5_free(a);
    return st;
}

static void t5_kv_shape(const struct arch *a, int *n_heads, int *d)
{
    *n_heads = a->n_heads;
    *d = a->d_kv;
}

static bool stack_uses_i8(const struct t5_stack *s)
{
    for (int i = 0; i < s->n_layers; i++)
        if (s->layers[i].qkv.kind == LINEAR_I8 || s->layers[i].ffn_out.kind == LINEAR_I8)
            return true;
    return false;
}

static bool t5_uses_i8(const struct arch *a)
{
    return stack_uses_i8(&a->encoder) || stack_uses_i8(&a->decoder) ||
           linear_kind_of(&a->output, a->load.compute) == LINEAR_I8;
}

static int64_t stack_packed_bytes(const struct t5_stack *s)
{
    int64_t n = 0;

    for (int i = 0; i < s->n_layers; i++) {
        const struct t5_layer *l = &s->layers[i];

        n += linear_packed_bytes(&l->qkv) + linear_packed_bytes(&l->attn_out) +
             linear_packed_bytes(&l->cross_q) + linear_packed_bytes(&l->cross_kv) +
             linear_packed_bytes(&l->cross_out) + linear_packed_bytes(&l->ffn_in) +
             linear_packed_bytes(&l->ffn_out);
    }
    return n;
}

static int64_t t5_packed_bytes(const struct arch *a)
{
    return stack_packed_bytes(&a->encoder) + stack_packed_bytes(&a->decoder);
}

static enum ink_status t5_make_head(struct arch *a, const int32_t *ids, int n, struct linear *out,
                                    struct ink_err *err)
{
    return linear_init(out, &a->output, 1, a->load.compute, a->load.kernel, ids, n,
                       a->load.n_threads, a->load.file, err);
}

static struct ggml_tensor *t5_embed(struct arch *a, struct graph *g, const int32_t *tokens, int n)
{
    return layer_embed(g, &a->embedding, tokens, n); /* [E, N] */
}

/* act(Wi n) through Wo', without the residual. */
static struct ggml_tensor *feed_forward(struct arch *a, struct graph *g, const struct t5_layer *l,
                                        struct act *n)
{
    struct ggml_tensor *up = linear_apply(g, &l->ffn_in, n);  /* [F or 2F, N] */
    struct act hidden = layer_activate(g, up, a->activation); /* [F, N] */

    return linear_apply(g, &l->ffn_out, &hidden); /* [E, N] */
}

static const struct position_bias *bias_of(const struct t5_stack *s, const struct t5_layer *l)
{
    return l->bias.bias ? &l->bias : &s->bias;
}

/* Self-attention over rows that are stored first; the same for both stacks. */
static struct ggml_tensor *self_attention(struct arch *a, struct graph *g, const struct t5_stack *s,
                                          const struct t5_layer *l, struct act *n,
                                          struct kv_memory *kv, int kv_layer,
                                          const struct kv_slot *slots,
                                          const struct attend_row *rows)
{
    const int inner = a->n_heads * a->d_kv;
    struct ggml_tensor *qkv = linear_apply(g, &l->qkv, n); /* [3I, N] */
    struct ggml_tensor *stored = layer_kv_store(g, kv, kv_layer, qkv, inner, 2 * inner, slots);
    struct act o =
        act_of(layer_attend(g, kv, kv_layer, qkv, stored, 1.0f, rows, bias_of(s, l))); /* [I, N] */

    return linear_apply(g, &l->attn_out, &o); /* [E, N] */
}

static struct ggml_tensor *t5_encode(struct arch *a, struct graph *g, struct ggml_tensor *x,
                                     int from, int to, struct kv_memory *scratch,
                                     const struct kv_slot *slots, const struct attend_row *rows)
{
    const struct t5_stack *s = &a->encoder;
    struct ggml_tensor *delta = NULL; /* the last sub-layer's output, added by the next norm */
    struct layer_norm n = { .sum = x };

    for (int i = from; i < to; i++) {
        const struct t5_layer *l = &s->layers[i];

        n = layer_add_norm(g, n.sum, delta, l->attn_norm, a->eps, NULL, 0);
        delta = self_attention(a, g, s, l, &n.normed, scratch, 0, slots, rows);
        graph_name(g, delta, "enc.%d.attn_out", i);
        n = layer_add_norm(g, n.sum, delta, l->ffn_norm, a->eps, NULL, 0);
        delta = feed_forward(a, g, l, &n.normed);
        graph_name(g, delta, "enc.%d.ffn_out", i);
    }
    return delta ? ggml_add(g->ctx, n.sum, delta) : x;
}

static void t5_encode_finish(struct arch *a, struct graph *g, struct ggml_tensor *x,
                             struct kv_memory *kv, const struct kv_slot *slots)
{
    const int inner = a->n_heads * a->d_kv;
    struct layer_norm n = layer_add_norm(g, x, NULL, a->encoder.final_norm, a->eps, NULL, 0);

    graph_name(g, n.normed.rows, "enc.out");
    for (int i = 0; i < a->decoder.n_layers; i++) {
        struct ggml_tensor *both =
            linear_apply(g, &a->decoder.layers[i].cross_kv, &n.normed); /* [2I, N] */

        graph_output(g, layer_kv_store(g, kv, i, both, 0, inner, slots));
    }
}

static struct ggml_tensor *t5_decode(struct arch *a, struct graph *g, struct ggml_tensor *x,
                                     struct kv_memory *kv, const struct kv_slot *slots,
                                     const struct attend_row *self, const struct attend_row *cross)
{
    const struct t5_stack *s = &a->decoder;
    struct ggml_tensor *delta = NULL;
    struct layer_norm n = { .sum = x };

    for (int i = 0; i < s->n_layers; i++) {
        const struct t5_layer *l = &s->layers[i];

        n = layer_add_norm(g, n.sum, delta, l->attn_norm, a->eps, NULL, 0);
        delta = self_attention(a, g, s, l, &n.normed, kv, i, slots, self);
        graph_name(g, delta, "dec.%d.attn_out", i);

        n = layer_add_norm(g, n.sum, delta, l->cross_norm, a->eps, NULL, 0);
        struct ggml_tensor *q = linear_apply(g, &l->cross_q, &n.normed);           /* [I, N] */
        struct act o = act_of(layer_attend(g, kv, i, q, NULL, 1.0f, cross, NULL)); /* [I, N] */
        delta = linear_apply(g, &l->cross_out, &o);                                /* [E, N] */
        graph_name(g, delta, "dec.%d.cross_out", i);

        n = layer_add_norm(g, n.sum, delta, l->ffn_norm, a->eps, NULL, 0);
        delta = feed_forward(a, g, l, &n.normed);
        graph_name(g, delta, "dec.%d.ffn_out", i);
    }
    return ggml_add(g->ctx, n.sum, delta);
}

static struct ggml_tensor *t5_logits(struct arch *a, struct graph *g, struct ggml_tensor *x,
                                     const struct linear *head, const int32_t *pick, int n_pick)
{
    struct layer_norm n = layer_add_norm(g, x, NULL, a->head_norm, a->eps, pick, n_pick);

    if (g->probe) /* the reference's module boundary lies before the scaling */
        graph_name(
            g, layer_add_norm(g, x, NULL, a->decoder.final_norm, a->eps, pick, n_pick).normed.rows,
            "dec.out");
    return linear_apply(g, head, &n.normed); /* [n of head, n_pick] */
}

const struct arch_ops t5_ops = {
    .name = "t5",
    .load = t5_load,
    .free = t5_free,
    .kv_shape = t5_kv_shape,
    .uses_i8 = t5_uses_i8,
    .packed_bytes = t5_packed_bytes,
    .make_head = t5_make_head,
    .encode = t5_encode,
    .encode_finish = t5_encode_finish,
    .embed = t5_embed,
    .decode = t5_decode,
    .logits = t5_logits,
    .encoder_bias_from = encoder_bias_from,
    .decoder_bias_from = decoder_bias_from,
};
