#define _DEFAULT_SOURCE /* mkdtemp */
#include "folder.h"

#include "unit.h"

#include "base/alloc.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- folders ---------------------------------------------------------------------------------------- */

char *folder_new(void)
{
    char *dir = ink_strdup("/tmp/inkstone-folder-XXXXXX");

    assert_non_null(mkdtemp(dir));
    return dir;
}

static int each_file(const char *dir, void (*visit)(const char *path))
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *path = ink_path_join(dir, e->d_name);

        if (visit)
            visit(path);
        free(path);
        n++;
    }
    closedir(d);
    return n;
}

static void remove_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

void folder_remove(char *dir)
{
    each_file(dir, remove_file);
    assert_int_equal(rmdir(dir), 0);
    free(dir);
}

int folder_n_files(const char *dir)
{
    return each_file(dir, NULL);
}

void folder_put(const char *dir, const char *name, const void *bytes, size_t len)
{
    char *path = ink_path_join(dir, name);
    FILE *fp = fopen(path, "wb");

    assert_non_null(fp);
    assert_int_equal(fwrite(bytes, 1, len, fp), len);
    assert_int_equal(fclose(fp), 0);
    free(path);
}

void folder_puts(const char *dir, const char *name, const char *text)
{
    folder_put(dir, name, text, strlen(text));
}

static void add(struct ink_buf *b, const void *bytes, size_t len)
{
    assert_int_equal(ink_buf_add(b, bytes, len), INK_OK);
}

/* --- protocol buffers ------------------------------------------------------------------------------- */

static void varint(struct ink_buf *b, uint64_t v)
{
    do {
        uint8_t byte = (uint8_t)(v & 0x7f) | (v > 0x7f ? 0x80 : 0);

        add(b, &byte, 1);
        v >>= 7;
    } while (v > 0);
}

void proto_bytes(struct ink_buf *b, unsigned field, const void *bytes, size_t len)
{
    varint(b, (uint64_t)field << 3 | 2);
    varint(b, len);
    add(b, bytes, len);
}

void proto_int(struct ink_buf *b, unsigned field, uint64_t v)
{
    varint(b, (uint64_t)field << 3);
    varint(b, v);
}

void proto_float(struct ink_buf *b, unsigned field, float v)
{
    varint(b, (uint64_t)field << 3 | 5);
    add(b, &v, sizeof(v));
}

void proto_piece(struct ink_buf *b, const char *text, float score, unsigned type)
{
    struct ink_buf piece;

    ink_buf_init(&piece, 4096);
    proto_bytes(&piece, 1, text, strlen(text));
    proto_float(&piece, 2, score);
    if (type)
        proto_int(&piece, 3, type);
    proto_bytes(b, 1, piece.ptr, piece.len);
    ink_buf_release(&piece);
}

/* --- safetensors ------------------------------------------------------------------------------------ */

void tensors_begin(struct tensors *t)
{
    ink_buf_init(&t->header, 1 << 20);
    ink_buf_init(&t->data, 1 << 20);
    add(&t->header, "{", 1);
}

void tensors_add(struct tensors *t, const char *name, int ne1, int ne0, float fill)
{
    size_t begin = t->data.len;
    int n = (ne1 ? ne1 : 1) * ne0;

    for (int i = 0; i < n; i++) {
        float v = fill + (float)i / 1024.0F;

        add(&t->data, &v, sizeof(v));
    }
    if (t->header.len > 1)
        add(&t->header, ",", 1);
    if (ne1)
        assert_int_equal(ink_buf_addf(&t->header, "\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],",
                                      name, ne1, ne0),
                         INK_OK);
    else
        assert_int_equal(
            ink_buf_addf(&t->header, "\"%s\":{\"dtype\":\"F32\",\"shape\":[%d],", name, ne0),
            INK_OK);
    assert_int_equal(ink_buf_addf(&t->header, "\"data_offsets\":[%zu,%zu]}", begin, t->data.len),
                     INK_OK);
}

void tensors_end(struct tensors *t, const char *dir, const char *file)
{
    struct ink_buf all;
    uint64_t len;

    add(&t->header, "}", 1);
    len = t->header.len;
    ink_buf_init(&all, 4 << 20);
    add(&all, &len, sizeof(len));
    add(&all, t->header.ptr, t->header.len);
    add(&all, t->data.ptr, t->data.len);
    folder_put(dir, file, all.ptr, all.len);
    ink_buf_release(&all);
    ink_buf_release(&t->header);
    ink_buf_release(&t->data);
}

/* --- a whole checkpoint ----------------------------------------------------------------------------- */

const char tiny_config[] =
    "{\"model_type\":\"t5\",\"architectures\":[\"T5ForConditionalGeneration\"],\"vocab_size\":16,\"d_model\":8,"
    "\"d_kv\":4,\"d_ff\":16,\"num_layers\":1,\"num_heads\":2,\"relative_attention_num_buckets\":8,"
    "\"relative_attention_max_distance\":16,\"pad_token_id\":0,\"eos_token_id\":1,\"decoder_start_token_id\":0}";

void tiny_spiece(const char *dir)
{
    struct ink_buf b, spec;

    ink_buf_init(&b, 1 << 16);
    ink_buf_init(&spec, 1 << 16);
    proto_piece(&b, "<pad>", 0.0F, 3);
    proto_piece(&b, "</s>", 0.0F, 3);
    proto_piece(&b, "<unk>", 0.0F, 2);
    for (int i = 3; i < TINY_PIECES; i++) {
        char text[8];

        snprintf(text, sizeof(text), "\xe2\x96\x81%c", 'a' + i);
        proto_piece(&b, text, -(float)i, 0);
    }
    proto_int(&spec, 3, 1);  /* unigram */
    proto_int(&spec, 40, 2); /* unk, bos, eos, pad */
    proto_int(&spec, 41, UINT64_MAX);
    proto_int(&spec, 42, 1);
    proto_int(&spec, 43, 0);
    proto_bytes(&b, 2, spec.ptr, spec.len);
    ink_buf_clear(&spec);
    proto_bytes(&spec, 1, "identity", 8);
    proto_bytes(&b, 3, spec.ptr, spec.len);
    folder_put(dir, "spiece.model", b.ptr, b.len);
    ink_buf_release(&spec);
    ink_buf_release(&b);
}

void tiny_tensors(struct tensors *t, const char *skip, int head)
{
    static const struct {
        const char *name;
        int ne1, ne0;
    } rows[] = {
        { "shared.weight", TINY_ROWS, 8 },
        { "encoder.block.0.layer.0.layer_norm.weight", 0, 8 },
        { "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 8, 2 },
        { "encoder.block.0.layer.0.SelfAttention.q.weight", 8, 8 },
        { "encoder.block.0.layer.0.SelfAttention.k.weight", 8, 8 },
        { "encoder.block.0.layer.0.SelfAttention.v.weight", 8, 8 },
        { "encoder.block.0.layer.0.SelfAttention.o.weight", 8, 8 },
        { "encoder.block.0.layer.1.layer_norm.weight", 0, 8 },
        { "encoder.block.0.layer.1.DenseReluDense.wi.weight", 16, 8 },
        { "encoder.block.0.layer.1.DenseReluDense.wo.weight", 8, 16 },
        { "encoder.final_layer_norm.weight", 0, 8 },
        { "decoder.block.0.layer.0.layer_norm.weight", 0, 8 },
        { "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 8, 2 },
        { "decoder.block.0.layer.0.SelfAttention.q.weight", 8, 8 },
        { "decoder.block.0.layer.0.SelfAttention.k.weight", 8, 8 },
        { "decoder.block.0.layer.0.SelfAttention.v.weight", 8, 8 },
        { "decoder.block.0.layer.0.SelfAttention.o.weight", 8, 8 },
        { "decoder.block.0.layer.1.layer_norm.weight", 0, 8 },
        { "decoder.block.0.layer.1.EncDecAttention.q.weight", 8, 8 },
        { "decoder.block.0.layer.1.EncDecAttention.k.weight", 8, 8 },
        { "decoder.block.0.layer.1.EncDecAttention.v.weight", 8, 8 },
        { "decoder.block.0.layer.1.EncDecAttention.o.weight", 8, 8 },
        { "decoder.block.0.layer.2.layer_norm.weight", 0, 8 },
        { "decoder.block.0.layer.2.DenseReluDense.wi.weight", 16, 8 },
        { "decoder.block.0.layer.2.DenseReluDense.wo.weight", 8, 16 },
        { "decoder.final_layer_norm.weight", 0, 8 },
    };

    tensors_begin(t);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!skip || strcmp(skip, rows[i].name) != 0)
            tensors_add(t, rows[i].name, rows[i].ne1, rows[i].ne0, (float)i);
    }
    if (head)
        tensors_add(t, "lm_head.weight", TINY_ROWS, 8, -1.0F);
}

char *tiny_folder(void)
{
    struct tensors t;
    char *dir = folder_new();

    folder_puts(dir, "config.json", tiny_config);
    tiny_spiece(dir);
    tiny_tensors(&t, NULL, 0);
    tensors_end(&t, dir, "model.safetensors");
    return dir;
}
