#ifndef TASK_INSPECT_H
#define TASK_INSPECT_H

#include "base/hash.h"
#include "base/status.h"
#include "model/model.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What a GGUF file holds and what running it would take, for a person. Reading needs no supported architecture;
 * the memory comes from loading the model once as serving it would, and from nothing else.
 */

/* Tensors of one role and one type together. */
struct ink_inspect_group {
    const char *role; /* "embedding", "output head", "attention", "feed-forward", ...; a literal */
    const char *type; /* "i8", "f32", ... */
    int64_t n_tensors, n_weights, bytes;
};

enum { INK_INSPECT_GROUPS = 64 };

struct ink_inspection {
    struct ink_model_file *file; /* owned; strings below are borrowed from it */
    const char *name, *arch, *family, *type, *license; /* "" when the file does not say */
    const char *prompt; /* rewriting template; NULL: the default one */
    bool demo;
    int64_t bytes, n_tensors, n_weights;
    char digest[INK_SHA256_HEX];
    struct ink_inspect_group groups[INK_INSPECT_GROUPS];
    int n_groups;

    /* -1 where the file does not say. */
    int64_t n_vocab, context, d_model, d_ff, n_heads, d_head, n_encoder_layers, n_decoder_layers;
    const char *activation;
    bool own_head;

    const char *tokenizer;               /* tokenizer.ggml.model: "t5", "llama", "gpt2"; "" */
    int64_t n_pieces, n_unused, n_bytes; /* all, padding among them, byte pieces */
    int64_t bos, eos, unk, pad;          /* -1: none */
    int64_t charsmap_bytes;              /* of the normalization table; 0: none */

    bool loaded;                /* the fields below are true */
    struct ink_model_info info; /* strings as its header says, borrowed until ink_inspect_close() */
    struct ink_model *model;    /* owned */
    struct ink_err load_err;    /* why it was not loaded; code INK_OK when nobody asked */
};

/*
 * Opens, reads, and with `load` also loads the file. A file that cannot be read fails; one that can be read but not
 * loaded succeeds, with `load_err` set. Free with ink_inspect_close().
 */
INK_NODISCARD enum ink_status ink_inspect(const char *path, bool load,
                                          const struct ink_model_options *options,
                                          struct ink_inspection **out, struct ink_err *err);
void ink_inspect_close(struct ink_inspection *x); /* NULL is fine */

#endif
