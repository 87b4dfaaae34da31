#include "unit.h"
#include "spiece_reader.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const unsigned char *at, *end;
};

struct field {
    uint64_t number, kind, value;
    struct ink_slice bytes;
};

static uint64_t varint(struct cursor *c)
{
    uint64_t v = 0;

    for (int shift = 0; c->at < c->end; shift += 7) {
        unsigned char b = *c->at++;

        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            break;
    }
    return v;
}

static bool next_field(struct cursor *c, struct field *f)
{
    if (c->at >= c->end)
        return false;
    uint64_t key = varint(c);
    *f = (struct field){ .number = key >> 3, .kind = key & 7 };
    size_t size = 0;
    if (f->kind == 0) {
        f->value = varint(c);
        return true;
    }
    size = f->kind == 1 ? 8 : f->kind == 5 ? 4 : (size_t)varint(c);
    assert_true(size <= (size_t)(c->end - c->at));
    f->bytes = (struct ink_slice){ (const char *)c->at, size };
    c->at += size;
    return true;
}

static struct cursor inside(struct ink_slice s)
{
    return (struct cursor){ (const unsigned char *)s.ptr, (const unsigned char *)s.ptr + s.len };
}

static void read_piece(struct ink_slice message, struct ink_piece *p)
{
    struct cursor c = inside(message);
    struct field f;

    *p = (struct ink_piece){ .type = INK_PIECE_NORMAL };
    while (next_field(&c, &f)) {
        if (f.number == 1)
            p->text = f.bytes;
        if (f.number == 2)
            memcpy(&p->score, f.bytes.ptr, sizeof(p->score));
        if (f.number == 3)
            p->type = (int32_t)f.value;
    }
}

static void read_trainer(struct ink_slice message, struct ink_vocab *v)
{
    struct cursor c = inside(message);
    struct field f;

    while (next_field(&c, &f)) {
        if (f.number == 35)
            v->byte_fallback = f.value != 0;
        if (f.number == 40)
            v->unk = (int32_t)f.value;
        if (f.number == 41)
            v->bos = (int32_t)(int64_t)f.value;
        if (f.number == 42)
            v->eos = (int32_t)(int64_t)f.value;
        if (f.number == 43)
            v->pad = (int32_t)(int64_t)f.value;
    }
}

static void read_normalizer(struct ink_slice message, struct ink_vocab *v)
{
    struct cursor c = inside(message);
    struct field f;

    while (next_field(&c, &f)) {
        if (f.number == 2)
            v->charsmap = f.bytes;
        if (f.number == 3)
            v->add_dummy_prefix = f.value != 0;
        if (f.number == 4)
            v->remove_extra_whitespaces = f.value != 0;
        if (f.number == 5)
            v->escape_whitespaces = f.value != 0;
    }
}

void spiece_read(const char *name, int32_t n_extra_ids, struct spiece *out)
{
    enum { MAX_FILE = 64 * 1024 * 1024 };
    const char *folder = getenv("INKSTONE_ASSETS");
    char path[4096];
    size_t len;
    struct ink_err err;
    struct field f;

    snprintf(path, sizeof(path), "%s/%s.spiece.model", folder ? folder : ".deps/assets", name);
    if (ink_file_read(path, MAX_FILE, &out->file, &len, &err) != INK_OK)
        fail_msg("%s: run scripts/fetch_assets.py", err.text);
    /* The values that the file leaves out have the defaults of sentencepiece_model.proto. */
    out->vocab = (struct ink_vocab){
        .kind = INK_VOCAB_UNIGRAM,
        .unk = 0,
        .bos = 1,
        .eos = 2,
        .pad = -1,
        .n_extra_ids = n_extra_ids,
        .add_dummy_prefix = true,
        .remove_extra_whitespaces = true,
        .escape_whitespaces = true,
    };
    struct cursor c = inside((struct ink_slice){ out->file, len });
    while (next_field(&c, &f))
        out->vocab.n_pieces += f.number == 1;
    out->pieces = ink_alloc((size_t)out->vocab.n_pieces * sizeof(*out->pieces));
    out->vocab.pieces = out->pieces;
    c = inside((struct ink_slice){ out->file, len });
    for (int32_t i = 0; next_field(&c, &f);) {
        if (f.number == 1)
            read_piece(f.bytes, &out->pieces[i++]);
        if (f.number == 2)
            read_trainer(f.bytes, &out->vocab);
        if (f.number == 3)
            read_normalizer(f.bytes, &out->vocab);
    }
}

void spiece_release(struct spiece *s)
{
    free(s->file);
    free(s->pieces);
}

struct ink_tokenizer *spiece_tokenizer(const char *name)
{
    struct spiece s;
    struct ink_tokenizer *t;
    struct ink_err err;
    int32_t n_extra_ids = strcmp(name, "t5") == 0 ? 100 : strcmp(name, "umt5") == 0 ? 300 : 0;

    spiece_read(name, n_extra_ids, &s);
    if (ink_tokenizer_new(&s.vocab, &t, &err) != INK_OK)
        fail_msg("%s: %s", name, err.text);
    spiece_release(&s);
    return t;
}
