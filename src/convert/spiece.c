/*
 * The part of SentencePiece's sentencepiece_model.proto that decides ids and text.
 *
 *   ModelProto      1: pieces (repeated)  2: trainer_spec  3: normalizer_spec
 *   SentencePiece   1: piece (string)  2: score (float)  3: type (enum)
 *   TrainerSpec     3: model_type  24: treat_whitespace_as_suffix  35: byte_fallback
 *                   40: unk_id  41: bos_id  42: eos_id  43: pad_id
 *   NormalizerSpec  2: precompiled_charsmap  3: add_dummy_prefix  4: remove_extra_whitespaces
 *                   5: escape_whitespaces
 *
 * A protocol buffer is a run of fields: a varint of number and wire type, then the value. Fields not named above are
 * skipped by their wire type.
 */
#include "convert/spiece.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum { MODEL_UNIGRAM = 1 };

struct field {
    uint32_t number;
    enum wire wire;
    uint64_t value;         /* varint, or the raw 32 or 64 bits */
    struct ink_slice bytes; /* WIRE_BYTES */
};

static bool read_varint(struct ink_slice *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->len > 0; shift += 7) {
        uint8_t b = (uint8_t)*in->ptr;

        in->ptr++;
        in->len--;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct ink_slice *in, size_t size, uint64_t *out)
{
    if (in->len < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)(uint8_t)in->ptr[i] << (8 * i);
    in->ptr += size;
    in->len -= size;
    return true;
}

/* Takes the next field off `in`; false when the bytes are no field. */
static bool read_field(struct ink_slice *in, struct field *f)
{
    uint64_t tag, len;

    if (!read_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (enum wire)(tag & 7);
    switch (f->wire) {
    case WIRE_VARINT:
        return read_varint(in, &f->value);
    case WIRE_64:
        return read_fixed(in, 8, &f->value);
    case WIRE_32:
        return read_fixed(in, 4, &f->value);
    case WIRE_BYTES:
        if (!read_varint(in, &len) || len > in->len)
            return false;
        f->bytes = (struct ink_slice){ in->ptr, (size_t)len };
        in->ptr += len;
        in->len -= (size_t)len;
        return true;
    }
    return false;
}

static enum ink_status damaged(struct ink_err *err, const char *what)
{
    return ink_err_set(err, INK_CORRUPT, "not a SentencePiece model, or a damaged one: %s", what);
}

static enum ink_status read_piece(struct ink_slice in, struct vocab *v, struct ink_err *err)
{
    struct ink_slice text = { "", 0 };
    float score = 0.0F;
    int32_t type = PIECE_NORMAL;
    struct field f;

    while (in.len > 0) {
        if (!read_field(&in, &f))
            return damaged(err, "a piece");
        if (f.number == 1 && f.wire == WIRE_BYTES) {
            text = f.bytes;
        } else if (f.number == 2 && f.wire == WIRE_32) {
            uint32_t bits = (uint32_t)f.value;

            memcpy(&score, &bits, sizeof(score));
        } else if (f.number == 3 && f.wire == WIRE_VARINT) {
            if (f.value < PIECE_NORMAL || f.value > PIECE_BYTE)
                return damaged(err, "a piece's type");
            type = (int32_t)f.value;
        }
    }
    return vocab_add(v, text, score, type, err);
}

static enum ink_status read_trainer(struct ink_slice in, struct vocab *v, uint64_t *model_type,
                                    bool *suffix, struct ink_err *err)
{
    struct field f;

    while (in.len > 0) {
        if (!read_field(&in, &f))
            return damaged(err, "trainer_spec");
        if (f.wire != WIRE_VARINT)
            continue;
        switch (f.number) {
        case 3:
            *model_type = f.value;
            break;
        case 24:
            *suffix = f.value != 0;
            break;
        case 35:
            v->byte_fallback = f.value != 0;
            break;
        case 40:
            v->unk = (int32_t)f.value;
            break;
        case 41:
            v->bos = (int32_t)f.value;
            break;
        case 42:
            v->eos = (int32_t)f.value;
            break;
        case 43:
            v->pad = (int32_t)f.value;
            break;
        default:
            break;
        }
    }
    return INK_OK;
}

static enum ink_status read_normalizer(struct ink_slice in, struct vocab *v, struct ink_err *err)
{
    struct field f;

    while (in.len > 0) {
        if (!read_field(&in, &f))
            return damaged(err, "normalizer_spec");
        if (f.number == 2 && f.wire == WIRE_BYTES) {
            if (f.bytes.len > VOCAB_MAX_CHARSMAP)
                return damaged(err, "a charsmap over 16 MiB");
            v->charsmap = (struct ink_slice){ ink_arena_strndup(v->arena, f.bytes.ptr, f.bytes.len),
                                              f.bytes.len };
        } else if (f.number == 3 && f.wire == WIRE_VARINT) {
            v->add_dummy_prefix = f.value != 0;
        } else if (f.number == 4 && f.wire == WIRE_VARINT) {
            v->remove_extra_whitespaces = f.value != 0;
        } else if (f.number == 5 && f.wire == WIRE_VARINT) {
            v->escape_whitespaces = f.value != 0;
        }
    }
    return INK_OK;
}

/* An id that names a piece of the vocabulary, or -1. */
static int32_t id_or_none(const struct vocab *v, int32_t id)
{
    return id >= 0 && id < v->n_pieces ? id : -1;
}

enum ink_status spiece_read(struct ink_slice in, struct vocab *v, struct ink_err *err)
{
    uint64_t model_type = MODEL_UNIGRAM;
    bool suffix = false;
    struct field f;
    enum ink_status st = INK_OK;

    /* The defaults of the .proto. */
    v->unk = 0;
    v->bos = 1;
    v->eos = 2;
    v->pad = -1;
    v->add_dummy_prefix = v->remove_extra_whitespaces = v->escape_whitespaces = true;

    while (in.len > 0 && st == INK_OK) {
        if (!read_field(&in, &f))
            return damaged(err, "a field");
        if (f.wire != WIRE_BYTES)
            continue;
        if (f.number == 1)
            st = read_piece(f.bytes, v, err);
        else if (f.number == 2)
            st = read_trainer(f.bytes, v, &model_type, &suffix, err);
        else if (f.number == 3)
            st = read_normalizer(f.bytes, v, err);
    }
    if (st != INK_OK)
        return st;
    if (v->n_pieces == 0)
        return damaged(err, "no pieces in it");
    if (model_type != MODEL_UNIGRAM)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "a SentencePiece model of kind %s; only unigram models are supported",
                           model_type == 2   ? "bpe"
                           : model_type == 3 ? "word"
                                             : "char");
    if (suffix)
        return ink_err_set(err, INK_UNSUPPORTED, "treat_whitespace_as_suffix is not supported");

    v->bos = id_or_none(v, v->bos);
    v->eos = id_or_none(v, v->eos);
    v->pad = id_or_none(v, v->pad);
    v->unk = id_or_none(v, v->unk);
    for (int32_t i = 0; i < v->n_pieces; i++) {
        if (v->pieces[i].type == PIECE_UNKNOWN)
            v->unk = i;
    }
    if (v->unk < 0)
        return damaged(err, "no unknown piece");
    v->n_own = v->n_pieces;
    return INK_OK;
}
