#ifndef CONVERT_METADATA_H
#define CONVERT_METADATA_H

#include "base/status.h"
#include "convert/config.h"
#include "convert/import.h"
#include "convert/vocab.h"

#include <gguf.h>

/* The keys of the GGUF file that is written; see import.h for those of our own. */

/* What the folder says about itself, beside the configuration. */
struct model_card {
    char *name;    /* owned */
    char *license; /* owned; NULL: not said */
    char *prompt;  /* owned; NULL: none */
    bool demo;
};

/* From inkstone.json {"name", "license", "prompt", "demo"}, else the folder's name and the head of its README.md. */
INK_NODISCARD enum ink_status model_card_load(const char *dir, struct model_card *out,
                                              struct ink_err *err);
void model_card_release(struct model_card *card);

void metadata_write_general(struct gguf_context *g, const struct model_card *card,
                            enum ink_import_type type);
void metadata_write_config(struct gguf_context *g, const struct t5_config *c);
void metadata_write_vocab(struct gguf_context *g, const struct vocab *v, const struct t5_config *c);

#endif
