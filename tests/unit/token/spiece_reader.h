#ifndef TEST_SPIECE_READER_H
#define TEST_SPIECE_READER_H

#include "token/tokenizer.h"

/*
 * Reads a SentencePiece model file for tests: enough of protobuf for its three messages.
 * It trusts the file, whose SHA-256 scripts/fetch_assets.py has checked.
 */
struct spiece {
    struct ink_vocab vocab; /* points into `file` and `pieces` */
    char *file;
    struct ink_piece *pieces;
};

/*
 * `name` is "mt5", "umt5" or "t5": NAME.spiece.model in $INKSTONE_ASSETS or .deps/assets. Fails the running test
 * with a message when it is not there. The caller calls spiece_release().
 */
void spiece_read(const char *name, int32_t n_extra_ids, struct spiece *out);
void spiece_release(struct spiece *s);

/* The tokenizer of one of the three vocabularies, with the extra ids it has; the caller frees it. */
struct ink_tokenizer *spiece_tokenizer(const char *name);

#endif
