/*
 * One row per tensor. The names on the right are those of llama.cpp's T5 converter, so that its files and ours are
 * alike; the ones on the left are those of transformers' T5, mT5 and umT5.
 */
#include "convert/names.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

enum size { NONE, D_MODEL, D_FF, INNER, VOCAB, HEADS, BUCKETS };

enum condition {
    ALWAYS,
    FIRST_OR_ALL, /* position biases: of the first block only, or of each */
    GATED,
    NOT_GATED,
    UNTIED, /* the output head */
};

struct row {
    const char *source, *name; /* %d: the block's number */
    enum tensor_kind kind;
    enum size out, in;
    enum condition when;
};

static const struct row before[] = {
    { "shared.weight", "token_embd.weight", TENSOR_EMBEDDING, VOCAB, D_MODEL, ALWAYS },
};

/* clang-format off */
static const struct row encoder_block[] = {
    { "encoder.block.%d.layer.0.layer_norm.weight", "enc.blk.%d.attn_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
    { "encoder.block.%d.layer.0.SelfAttention.relative_attention_bias.weight", "enc.blk.%d.attn_rel_b.weight",
      TENSOR_SMALL, BUCKETS, HEADS, FIRST_OR_ALL },
    { "encoder.block.%d.layer.0.SelfAttention.q.weight", "enc.blk.%d.attn_q.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "encoder.block.%d.layer.0.SelfAttention.k.weight", "enc.blk.%d.attn_k.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "encoder.block.%d.layer.0.SelfAttention.v.weight", "enc.blk.%d.attn_v.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "encoder.block.%d.layer.0.SelfAttention.o.weight", "enc.blk.%d.attn_o.weight", TENSOR_LINEAR, D_MODEL, INNER, ALWAYS },
    { "encoder.block.%d.layer.1.layer_norm.weight", "enc.blk.%d.ffn_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
    { "encoder.block.%d.layer.1.DenseReluDense.wi_0.weight", "enc.blk.%d.ffn_gate.weight", TENSOR_LINEAR, D_FF, D_MODEL, GATED },
    { "encoder.block.%d.layer.1.DenseReluDense.wi_1.weight", "enc.blk.%d.ffn_up.weight", TENSOR_LINEAR, D_FF, D_MODEL, GATED },
    { "encoder.block.%d.layer.1.DenseReluDense.wi.weight", "enc.blk.%d.ffn_up.weight", TENSOR_LINEAR, D_FF, D_MODEL, NOT_GATED },
    { "encoder.block.%d.layer.1.DenseReluDense.wo.weight", "enc.blk.%d.ffn_down.weight", TENSOR_LINEAR, D_MODEL, D_FF, ALWAYS },
};

static const struct row between[] = {
    { "encoder.final_layer_norm.weight", "enc.output_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
};

static const struct row decoder_block[] = {
    { "decoder.block.%d.layer.0.layer_norm.weight", "dec.blk.%d.attn_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
    { "decoder.block.%d.layer.0.SelfAttention.relative_attention_bias.weight", "dec.blk.%d.attn_rel_b.weight",
      TENSOR_SMALL, BUCKETS, HEADS, FIRST_OR_ALL },
    { "decoder.block.%d.layer.0.SelfAttention.q.weight", "dec.blk.%d.attn_q.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "decoder.block.%d.layer.0.SelfAttention.k.weight", "dec.blk.%d.attn_k.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "decoder.block.%d.layer.0.SelfAttention.v.weight", "dec.blk.%d.attn_v.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "decoder.block.%d.layer.0.SelfAttention.o.weight", "dec.blk.%d.attn_o.weight", TENSOR_LINEAR, D_MODEL, INNER, ALWAYS },
    { "decoder.block.%d.layer.1.layer_norm.weight", "dec.blk.%d.cross_attn_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
    { "decoder.block.%d.layer.1.EncDecAttention.q.weight", "dec.blk.%d.cross_attn_q.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "decoder.block.%d.layer.1.EncDecAttention.k.weight", "dec.blk.%d.cross_attn_k.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "decoder.block.%d.layer.1.EncDecAttention.v.weight", "dec.blk.%d.cross_attn_v.weight", TENSOR_LINEAR, INNER, D_MODEL, ALWAYS },
    { "decoder.block.%d.layer.1.EncDecAttention.o.weight", "dec.blk.%d.cross_attn_o.weight", TENSOR_LINEAR, D_MODEL, INNER, ALWAYS },
    { "decoder.block.%d.layer.2.layer_norm.weight", "dec.blk.%d.ffn_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
    { "decoder.block.%d.layer.2.DenseReluDense.wi_0.weight", "dec.blk.%d.ffn_gate.weight", TENSOR_LINEAR, D_FF, D_MODEL, GATED },
    { "decoder.block.%d.layer.2.DenseReluDense.wi_1.weight", "dec.blk.%d.ffn_up.weight", TENSOR_LINEAR, D_FF, D_MODEL, GATED },
    { "decoder.block.%d.layer.2.DenseReluDense.wi.weight", "dec.blk.%d.ffn_up.weight", TENSOR_LINEAR, D_FF, D_MODEL, NOT_GATED },
    { "decoder.block.%d.layer.2.DenseReluDense.wo.weight", "dec.blk.%d.ffn_down.weight", TENSOR_LINEAR, D_MODEL, D_FF, ALWAYS },
};

static const struct row after[] = {
    { "decoder.final_layer_norm.weight", "dec.output_norm.weight", TENSOR_SMALL, D_MODEL, NONE, ALWAYS },
    { "lm_head.weight", "output.weight", TENSOR_OUTPUT, VOCAB, D_MODEL, UNTIED },
};
/* clang-format on */

#define ROWS(table) table, sizeof(table) / sizeof((table)[0])

static int64_t size_of(const struct t5_config *c, enum size size)
{
    switch (size) {
    case D_MODEL:
        return c->d_model;
    case D_FF:
        return c->d_ff;
    case INNER:
        return c->n_heads * c->d_kv;
    case VOCAB:
        return c->vocab_size;
    case HEADS:
        return c->n_heads;
    case BUCKETS:
        return c->n_buckets;
    case NONE:
        break;
    }
    return 1;
}

static bool applies(const struct t5_config *c, enum condition when, int block)
{
    switch (when) {
    case FIRST_OR_ALL:
        return block == 0 || c->bias_per_layer;
    case GATED:
        return c->is_gated;
    case NOT_GATED:
        return !c->is_gated;
    case UNTIED:
        return c->has_own_head;
    case ALWAYS:
        break;
    }
    return true;
}

/* The table's `%d` (at most one) replaced by `block`. */
static void fill_in(const char *pattern, int block, char *out, size_t size)
{
    const char *mark = strstr(pattern, "%d");

    if (mark)
        snprintf(out, size, "%.*s%d%s", (int)(mark - pattern), pattern, block, mark + 2);
    else
        snprintf(out, size, "%s", pattern);
}

static int add(const struct t5_config *c, const struct row *rows, size_t n_rows, int block,
               struct tensor_spec *out)
{
    int n = 0;

    for (size_t i = 0; i < n_rows; i++) {
        const struct row *r = &rows[i];
        struct tensor_spec *t = &out[n];

        if (!applies(c, r->when, block))
            continue;
        fill_in(r->source, block, t->source, sizeof(t->source));
        fill_in(r->name, block, t->name, sizeof(t->name));
        t->kind = r->kind;
        t->n_dims = r->in == NONE ? 1 : 2;
        t->shape[0] = size_of(c, r->out);
        t->shape[1] = size_of(c, r->in);
        n++;
    }
    return n;
}

struct tensor_spec *names_list(const struct t5_config *c, int *n_out)
{
    /* As many as there could be, whatever applies. */
    size_t max = 8 +
                 (size_t)c->n_encoder_layers * sizeof(encoder_block) / sizeof(encoder_block[0]) +
                 (size_t)c->n_decoder_layers * sizeof(decoder_block) / sizeof(decoder_block[0]);
    struct tensor_spec *out = ink_zalloc(max * sizeof(*out));
    int n = add(c, ROWS(before), 0, out);

    for (int i = 0; i < c->n_encoder_layers; i++)
        n += add(c, ROWS(encoder_block), i, out + n);
    n += add(c, ROWS(between), 0, out + n);
    for (int i = 0; i < c->n_decoder_layers; i++)
        n += add(c, ROWS(decoder_block), i, out + n);
    n += add(c, ROWS(after), 0, out + n);
    *n_out = n;
    return out;
}

bool names_is_unused(const char *source)
{
    return strcmp(source, "encoder.embed_tokens.weight") == 0 ||
           strcmp(source, "decoder.embed_tokens.weight") == 0 ||
           strstr(source, ".EncDecAttention.relative_attention_bias.weight") != NULL;
}
