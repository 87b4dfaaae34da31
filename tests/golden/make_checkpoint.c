/*
 * Writes a Hugging Face checkpoint folder with made-up weights of a named shape.
 *
 *     make_checkpoint --list
 *     make_checkpoint SHAPE SPIECE_MODEL OUT_DIR
 *
 * Every weight is a function of (seed, tensor name, index), the same bits here and in
 * tools/golden/weights.py, so that golden values made with the reference stay valid
 * without storing a checkpoint. The recipe stands in README.md, "Weights".
 *
 * Needs a C17 compiler and libc only. Little-endian machines only: safetensors is
 * little-endian and the values are written as they lie in memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum dtype { F32, F16, BF16 };

static const char *const dtype_names[] = { "F32", "F16", "BF16" };
static const char *const dtype_torch_names[] = { "float32", "float16", "bfloat16" };
static const size_t dtype_sizes[] = { 4, 2, 2 };

struct shape {
    const char *name;
    const char *model_type; /* "t5", "mt5", "umt5" */
    const char *class_name;
    int vocab_size, d_model, d_kv, n_heads, d_ff, n_encoder, n_decoder;
    int n_buckets, max_distance; /* relative position bias */
    bool gated;                  /* gated-gelu, else relu */
    bool has_lm_head;            /* separate from the embedding */
    bool has_copies;             /* encoder/decoder.embed_tokens written beside shared */
    int extra_ids; /* of the tokenizer: <extra_id_N> after the pieces of spiece.model */
    int n_shards;
    enum dtype dtype;
    double epsilon;
    double gain_embed, gain_head, gain_q, gain_wi, gain_wo;
};

/* Keep in step with tools/golden/weights.py, whose check compares every tensor. */
/* clang-format off */
static const struct shape shapes[] = {
    { .name = "tiny", .model_type = "mt5", .class_name = "MT5ForConditionalGeneration",
      .vocab_size = 32128, .d_model = 64, .d_kv = 16, .n_heads = 4, .d_ff = 128,
      .n_encoder = 2, .n_decoder = 2, .n_buckets = 32, .max_distance = 128,
      .gated = true, .has_lm_head = true, .extra_ids = 100, .n_shards = 1,
      .dtype = F32, .epsilon = 1e-6,
      .gain_embed = 1.75, .gain_head = 4.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 1.75 },
    { .name = "odd", .model_type = "mt5", .class_name = "MT5ForConditionalGeneration",
      .vocab_size = 32128, .d_model = 96, .d_kv = 24, .n_heads = 5, .d_ff = 168,
      .n_encoder = 4, .n_decoder = 2, .n_buckets = 16, .max_distance = 64,
      .gated = true, .has_lm_head = true, .has_copies = true, .extra_ids = 100, .n_shards = 2,
      .dtype = F32, .epsilon = 1e-5,
      .gain_embed = 1.75, .gain_head = 4.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 1.75 },
    { .name = "t5v10", .model_type = "t5", .class_name = "T5ForConditionalGeneration",
      .vocab_size = 32128, .d_model = 64, .d_kv = 16, .n_heads = 4, .d_ff = 128,
      .n_encoder = 3, .n_decoder = 3, .n_buckets = 32, .max_distance = 128,
      .extra_ids = 100, .n_shards = 1,
      .dtype = F32, .epsilon = 1e-6,
      .gain_embed = 4.0, .gain_head = 0.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 30.0 },
    { .name = "t5v11", .model_type = "t5", .class_name = "T5ForConditionalGeneration",
      .vocab_size = 32128, .d_model = 64, .d_kv = 32, .n_heads = 2, .d_ff = 160,
      .n_encoder = 2, .n_decoder = 3, .n_buckets = 32, .max_distance = 128,
      .gated = true, .has_lm_head = true, .extra_ids = 100, .n_shards = 1,
      .dtype = BF16, .epsilon = 1e-6,
      .gain_embed = 1.75, .gain_head = 8.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 1.75 },
    { .name = "umt5", .model_type = "umt5", .class_name = "UMT5ForConditionalGeneration",
      .vocab_size = 256384, .d_model = 64, .d_kv = 16, .n_heads = 4, .d_ff = 128,
      .n_encoder = 2, .n_decoder = 2, .n_buckets = 32, .max_distance = 128,
      .gated = true, .has_lm_head = true, .extra_ids = 300, .n_shards = 1,
      .dtype = F32, .epsilon = 1e-6,
      .gain_embed = 1.75, .gain_head = 4.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 1.75 },
    { .name = "overflow", .model_type = "mt5", .class_name = "MT5ForConditionalGeneration",
      .vocab_size = 32128, .d_model = 64, .d_kv = 16, .n_heads = 4, .d_ff = 256,
      .n_encoder = 3, .n_decoder = 3, .n_buckets = 32, .max_distance = 128,
      .gated = true, .has_lm_head = true, .extra_ids = 100, .n_shards = 1,
      .dtype = F16, .epsilon = 1e-6,
      .gain_embed = 1.75, .gain_head = 8.0, .gain_q = 2.5, .gain_wi = 250.0, .gain_wo = 14.0 },
    { .name = "mid", .model_type = "mt5", .class_name = "MT5ForConditionalGeneration",
      .vocab_size = 32128, .d_model = 256, .d_kv = 64, .n_heads = 4, .d_ff = 512,
      .n_encoder = 4, .n_decoder = 4, .n_buckets = 32, .max_distance = 128,
      .gated = true, .has_lm_head = true, .extra_ids = 100, .n_shards = 1,
      .dtype = F32, .epsilon = 1e-6,
      .gain_embed = 1.75, .gain_head = 4.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 1.75 },
    { .name = "base", .model_type = "mt5", .class_name = "MT5ForConditionalGeneration",
      .vocab_size = 250112, .d_model = 768, .d_kv = 64, .n_heads = 12, .d_ff = 2048,
      .n_encoder = 12, .n_decoder = 12, .n_buckets = 32, .max_distance = 128,
      .gated = true, .has_lm_head = true, .extra_ids = 0, .n_shards = 1,
      .dtype = F32, .epsilon = 1e-6,
      .gain_embed = 1.75, .gain_head = 4.0, .gain_q = 2.5, .gain_wi = 2.5, .gain_wo = 1.75 },
};
/* clang-format on */
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static const uint64_t seed = 20240229;

/* ---- weights ------------------------------------------------------------ */

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static uint64_t fnv1a64(const char *s)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001B3);
    return h;
}

/* The finalizer of splitmix64. */
static inline uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Uniform in [-1, 1) on a grid of 2^-23: exact in f32. */
static inline float unit(uint64_t key, uint64_t i)
{
    uint64_t h = mix64(key + (i + 1) * GOLDEN);

    return (float)((int32_t)(h >> 40) - (1 << 23)) * 0x1p-23f;
}

/* Rounds to the nearest, ties to even, like every IEEE conversion. Inputs are finite and in range. */
static uint16_t half_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t magnitude = bits & 0x7FFFFFFF;
    uint32_t half, rest, half_way;

    if (magnitude >= 0x38800000) { /* normal in half precision */
        half = (magnitude - 0x38000000) >> 13;
        rest = magnitude & 0x1FFF;
        half_way = 0x1000;
    } else if (magnitude >= 0x33000000) { /* subnormal there */
        uint32_t shift = 126 - (magnitude >> 23);
        uint32_t digits = (magnitude & 0x7FFFFF) | 0x800000;

        half = digits >> shift;
        rest = digits & ((UINT32_C(1) << shift) - 1);
        half_way = UINT32_C(1) << (shift - 1);
    } else {
        return (uint16_t)sign;
    }
    if (rest > half_way || (rest == half_way && (half & 1)))
        half++;
    return (uint16_t)(sign | half);
}

static uint16_t bf16_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* The factor of v for a tensor, or 0 for a norm, which is 1 + v/8. */
static float scale_of(const struct shape *s, const char *name)
{
    double width = s->d_model, inner = (double)s->n_heads * s->d_kv;

    if (ends_with(name, "layer_norm.weight"))
        return 0.0f;
    if (ends_with(name, "relative_attention_bias.weight"))
        return 1.5f;
    if (strcmp(name, "shared.weight") == 0)
        return (float)s->gain_embed;
    if (strcmp(name, "lm_head.weight") == 0)
        return (float)(s->gain_head / sqrt(width));
    if (ends_with(name, ".q.weight"))
        return (float)(s->gain_q / sqrt(width * s->d_kv));
    if (ends_with(name, ".o.weight"))
        return (float)(1.75 / sqrt(inner));
    if (ends_with(name, ".wo.weight"))
        return (float)(s->gain_wo / sqrt((double)s->d_ff));
    if (strstr(name, ".wi"))
        return (float)(s->gain_wi / sqrt(width));
    return (float)(1.75 / sqrt(width)); /* k, v */
}

/* ---- the list of tensors ------------------------------------------------ */

enum { NAME_MAX_LEN = 128 };

struct tensor {
    char name[NAME_MAX_LEN];
    const char *source; /* the name that seeds the values: another tensor's for a copy */
    int rows, columns;  /* rows == 0: one dimension */
    int shard;
};

struct tensor_list {
    struct tensor *items;
    size_t n, cap;
};

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *fmt, ...)
{
    va_list args;

    fputs("make_checkpoint: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void add(struct tensor_list *list, int rows, int columns, const char *source,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void add(struct tensor_list *list, int rows, int columns, const char *source,
                const char *fmt, ...)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 64;
        list->items = realloc(list->items, list->cap * sizeof(list->items[0]));
        if (!list->items)
            fail("out of memory");
    }
    struct tensor *t = &list->items[list->n++];
    va_list args;

    memset(t, 0, sizeof(*t));
    va_start(args, fmt);
    vsnprintf(t->name, sizeof(t->name), fmt, args);
    va_end(args);
    t->rows = rows;
    t->columns = columns;
    t->source = source;
}

static void add_attention(struct tensor_list *list, const struct shape *s, const char *stack,
                          int block, int layer, const char *kind, bool has_bias)
{
    int inner = s->n_heads * s->d_kv;

    add(list, inner, s->d_model, NULL, "%s.block.%d.layer.%d.%s.q.weight", stack, block, layer,
        kind);
    add(list, inner, s->d_model, NULL, "%s.block.%d.layer.%d.%s.k.weight", stack, block, layer,
        kind);
    add(list, inner, s->d_model, NULL, "%s.block.%d.layer.%d.%s.v.weight", stack, block, layer,
        kind);
    add(list, s->d_model, inner, NULL, "%s.block.%d.layer.%d.%s.o.weight", stack, block, layer,
        kind);
    if (has_bias)
        add(list, s->n_buckets, s->n_heads, NULL,
            "%s.block.%d.layer.%d.%s.relative_attention_bias.weight", stack, block, layer, kind);
    add(list, 0, s->d_model, NULL, "%s.block.%d.layer.%d.layer_norm.weight", stack, block, layer);
}

static void add_feed_forward(struct tensor_list *list, const struct shape *s, const char *stack,
                             int block, int layer)
{
    if (s->gated) {
        add(list, s->d_ff, s->d_model, NULL, "%s.block.%d.layer.%d.DenseReluDense.wi_0.weight",
            stack, block, layer);
        add(list, s->d_ff, s->d_model, NULL, "%s.block.%d.layer.%d.DenseReluDense.wi_1.weight",
            stack, block, layer);
    } else {
        add(list, s->d_ff, s->d_model, NULL, "%s.block.%d.layer.%d.DenseReluDense.wi.weight", stack,
            block, layer);
    }
    add(list, s->d_model, s->d_ff, NULL, "%s.block.%d.layer.%d.DenseReluDense.wo.weight", stack,
        block, layer);
    add(list, 0, s->d_model, NULL, "%s.block.%d.layer.%d.layer_norm.weight", stack, block, layer);
}

static void list_tensors(const struct shape *s, struct tensor_list *list)
{
    bool bias_everywhere = strcmp(s->model_type, "umt5") == 0;

    add(list, s->vocab_size, s->d_model, NULL, "shared.weight");
    if (s->has_copies) {
        add(list, s->vocab_size, s->d_model, "shared.weight", "encoder.embed_tokens.weight");
        add(list, s->vocab_size, s->d_model, "shared.weight", "decoder.embed_tokens.weight");
    }
    for (int i = 0; i < s->n_encoder; i++) {
        add_attention(list, s, "encoder", i, 0, "SelfAttention", i == 0 || bias_everywhere);
        add_feed_forward(list, s, "encoder", i, 1);
    }
    add(list, 0, s->d_model, NULL, "encoder.final_layer_norm.weight");
    for (int i = 0; i < s->n_decoder; i++) {
        add_attention(list, s, "decoder", i, 0, "SelfAttention", i == 0 || bias_everywhere);
        add_attention(list, s, "decoder", i, 1, "EncDecAttention", false);
        add_feed_forward(list, s, "decoder", i, 2);
    }
    add(list, 0, s->d_model, NULL, "decoder.final_layer_norm.weight");
    if (s->has_lm_head)
        add(list, s->vocab_size, s->d_model, NULL, "lm_head.weight");

    for (size_t i = 0; i < list->n; i++) {
        if (!list->items[i].source)
            list->items[i].source = list->items[i].name;
        list->items[i].shard = (int)(i * (size_t)s->n_shards / list->n);
    }
}

static uint64_t n_elements(const struct tensor *t)
{
    return (uint64_t)(t->rows ? t->rows : 1) * (uint64_t)t->columns;
}

/* ---- files -------------------------------------------------------------- */

static FILE *open_in(const char *dir, const char *name, char *path, size_t cap)
{
    if ((size_t)snprintf(path, cap, "%s/%s", dir, name) >= cap)
        fail("%s/%s: the path is too long", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f)
        fail("%s: %s", path, strerror(errno));
    return f;
}

static void close_checked(FILE *f, const char *path)
{
    bool failed = ferror(f) != 0;

    if (fclose(f) != 0 || failed)
        fail("%s: cannot write: %s", path, strerror(errno));
}

enum { BLOCK = 1 << 16 }; /* values computed and written at a time */

static void write_values(FILE *f, const char *path, const struct shape *s, const struct tensor *t)
{
    static float values[BLOCK];
    static uint16_t narrow[BLOCK];
    const uint64_t key = mix64(fnv1a64(t->source) + seed * GOLDEN);
    const float scale = scale_of(s, t->source);
    const uint64_t n = n_elements(t);

    for (uint64_t at = 0; at < n; at += BLOCK) {
        size_t count = n - at < BLOCK ? (size_t)(n - at) : BLOCK;
        const void *bytes = values;

        if (scale == 0.0f) {
            /* v/8 is exact, so a fused multiply-add gives the same sum. */
            for (size_t i = 0; i < count; i++)
                values[i] = 1.0f + 0.125f * unit(key, at + i);
        } else {
            for (size_t i = 0; i < count; i++)
                values[i] = scale * unit(key, at + i);
        }
        if (s->dtype != F32) {
            for (size_t i = 0; i < count; i++)
                narrow[i] = s->dtype == F16 ? half_of(values[i]) : bf16_of(values[i]);
            bytes = narrow;
        }
        if (fwrite(bytes, dtype_sizes[s->dtype], count, f) != count)
            fail("%s: cannot write: %s", path, strerror(errno));
    }
}

static void shard_name(const struct shape *s, int shard, char *out, size_t cap)
{
    if (s->n_shards == 1)
        snprintf(out, cap, "model.safetensors");
    else
        snprintf(out, cap, "model-%05d-of-%05d.safetensors", shard + 1, s->n_shards);
}

static void write_shard(const char *dir, const struct shape *s, const struct tensor_list *list,
                        int shard)
{
    char file[64], path[4096];

    shard_name(s, shard, file, sizeof(file));
    FILE *f = open_in(dir, file, path, sizeof(path));

    /* The header's length comes first, so the header is put together in memory. */
    size_t cap = 256 + list->n * (NAME_MAX_LEN + 128), len = 0;
    char *header = malloc(cap);
    if (!header)
        fail("out of memory");
    uint64_t offset = 0;

    len += (size_t)snprintf(header + len, cap - len, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < list->n; i++) {
        const struct tensor *t = &list->items[i];
        uint64_t bytes = n_elements(t) * dtype_sizes[s->dtype];

        if (t->shard != shard)
            continue;
        len += (size_t)snprintf(header + len, cap - len, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                                t->name, dtype_names[s->dtype]);
        if (t->rows)
            len += (size_t)snprintf(header + len, cap - len, "%d,", t->rows);
        len += (size_t)snprintf(header + len, cap - len,
                                "%d],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->columns,
                                offset, offset + bytes);
        offset += bytes;
    }
    len += (size_t)snprintf(header + len, cap - len, "}");
    while (len % 8 != 0)
        header[len++] = ' ';

    uint64_t len_le = len;
    if (fwrite(&len_le, sizeof(len_le), 1, f) != 1 || fwrite(header, 1, len, f) != len)
        fail("%s: cannot write: %s", path, strerror(errno));
    free(header);
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].shard == shard)
            write_values(f, path, s, &list->items[i]);
    close_checked(f, path);
}

static void write_index(const char *dir, const struct shape *s, const struct tensor_list *list)
{
    char path[4096], shard[64];
    uint64_t total = 0;

    for (size_t i = 0; i < list->n; i++)
        total += n_elements(&list->items[i]) * dtype_sizes[s->dtype];
    FILE *f = open_in(dir, "model.safetensors.index.json", path, sizeof(path));
    fprintf(f, "{\n  \"metadata\": {\"total_size\": %" PRIu64 "},\n  \"weight_map\": {", total);
    for (size_t i = 0; i < list->n; i++) {
        shard_name(s, list->items[i].shard, shard, sizeof(shard));
        fprintf(f, "%s\n    \"%s\": \"%s\"", i ? "," : "", list->items[i].name, shard);
    }
    fputs("\n  }\n}\n", f);
    close_checked(f, path);
}

static void write_configs(const char *dir, const struct shape *s)
{
    char path[4096];
    FILE *f = open_in(dir, "config.json", path, sizeof(path));

    fprintf(
        f,
        "{\n"
        "  \"architectures\": [\"%s\"],\n"
        "  \"d_ff\": %d,\n  \"d_kv\": %d,\n  \"d_model\": %d,\n"
        "  \"decoder_start_token_id\": 0,\n  \"dropout_rate\": 0.1,\n  \"eos_token_id\": 1,\n"
        "  \"feed_forward_proj\": \"%s\",\n"
        "  \"initializer_factor\": 1.0,\n  \"is_encoder_decoder\": true,\n"
        "  \"layer_norm_epsilon\": %g,\n  \"model_type\": \"%s\",\n"
        "  \"num_decoder_layers\": %d,\n  \"num_heads\": %d,\n  \"num_layers\": %d,\n"
        "  \"pad_token_id\": 0,\n"
        "  \"relative_attention_max_distance\": %d,\n  \"relative_attention_num_buckets\": %d,\n"
        "  \"tie_word_embeddings\": %s,\n  \"torch_dtype\": \"%s\",\n"
        "  \"use_cache\": true,\n  \"vocab_size\": %d\n"
        "}\n",
        s->class_name, s->d_ff, s->d_kv, s->d_model, s->gated ? "gated-gelu" : "relu", s->epsilon,
        s->model_type, s->n_decoder, s->n_heads, s->n_encoder, s->max_distance, s->n_buckets,
        s->has_lm_head ? "false" : "true", dtype_torch_names[s->dtype], s->vocab_size);
    close_checked(f, path);

    f = open_in(dir, "generation_config.json", path, sizeof(path));
    fputs("{\n  \"decoder_start_token_id\": 0,\n  \"eos_token_id\": 1,\n  \"pad_token_id\": 0\n}\n",
          f);
    close_checked(f, path);

    f = open_in(dir, "tokenizer_config.json", path, sizeof(path));
    fprintf(
        f,
        "{\n  \"additional_special_tokens\": null,\n  \"eos_token\": \"</s>\",\n  \"extra_ids\": %d,\n"
        "  \"pad_token\": \"<pad>\",\n  \"tokenizer_class\": \"T5Tokenizer\",\n  \"unk_token\": \"<unk>\"\n}\n",
        s->extra_ids);
    close_checked(f, path);
}

static void copy_vocabulary(const char *dir, const char *spiece)
{
    static char block[1 << 16];
    char path[4096];
    size_t n;
    FILE *in = fopen(spiece, "rb");

    if (!in)
        fail("%s: %s; scripts/fetch_assets.py fetches the vocabularies", spiece, strerror(errno));
    FILE *out = open_in(dir, "spiece.model", path, sizeof(path));
    while ((n = fread(block, 1, sizeof(block), in)) > 0)
        if (fwrite(block, 1, n, out) != n)
            fail("%s: cannot write: %s", path, strerror(errno));
    if (ferror(in))
        fail("%s: cannot read", spiece);
    fclose(in);
    close_checked(out, path);
}

int main(int argc, char **argv)
{
    const struct shape *s = NULL;
    struct tensor_list list = { 0 };

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < N_SHAPES; i++)
            puts(shapes[i].name);
        return 0;
    }
    if (argc != 4) {
        fputs("usage: make_checkpoint --list | make_checkpoint SHAPE SPIECE_MODEL OUT_DIR\n",
              stderr);
        return 2;
    }
    for (int i = 0; i < N_SHAPES; i++)
        if (strcmp(shapes[i].name, argv[1]) == 0)
            s = &shapes[i];
    if (!s)
        fail("%s: no such shape; --list prints them", argv[1]);

    const char *dir = argv[3];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        fail("%s: %s", dir, strerror(errno));
    list_tensors(s, &list);
    for (int shard = 0; shard < s->n_shards; shard++)
        write_shard(dir, s, &list, shard);
    if (s->n_shards > 1)
        write_index(dir, s, &list);
    write_configs(dir, s);
    copy_vocabulary(dir, argv[2]);
    free(list.items);
    return 0;
}
