/* The import as a whole: whole or not at all, the same bytes every time, and clear about what is wrong. */
#include "unit.h"

#include "base/file.h"
#include "convert/import.h"
#include "folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ink_status import_as(const char *dir, enum ink_import_type type, int n_threads,
                                 struct ink_import_report *r, char **bytes, size_t *len,
                                 struct ink_err *err)
{
    char *out_dir = folder_new(), *out = ink_path_join(out_dir, "m.gguf");
    const struct ink_import_options options = { .type = type, .n_threads = n_threads };

    *err = (struct ink_err){ 0 };
    *bytes = NULL;

    enum ink_status st = ink_import(dir, out, &options, r, err);

    if (st == INK_OK)
        assert_int_equal(ink_file_read(out, 1 << 24, bytes, len, NULL), INK_OK);
    /* Nothing else is left behind, whatever happened. */
    assert_int_equal(folder_n_files(out_dir), st == INK_OK ? 1 : 0);
    free(out);
    folder_remove(out_dir);
    return st;
}

static bool has(const char *bytes, size_t len, const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i + n <= len; i++) {
        if (memcmp(bytes + i, text, n) == 0)
            return true;
    }
    return false;
}

static void the_same_folder_gives_the_same_bytes(void **state)
{
    char *dir = tiny_folder();
    (void)state;

    for (int type = INK_IMPORT_I8; type <= INK_IMPORT_Q6_K; type++) {
        char *one, *two;
        size_t len_one, len_two;
        struct ink_import_report r;
        struct ink_err err;

        assert_int_equal(import_as(dir, (enum ink_import_type)type, 1, &r, &one, &len_one, &err),
                         INK_OK);
        assert_int_equal(import_as(dir, (enum ink_import_type)type, 3, &r, &two, &len_two, &err),
                         INK_OK);
        assert_int_equal(len_one, len_two);
        assert_memory_equal(one, two, len_one);
        assert_int_equal(r.bytes_out, len_one);
        assert_string_equal(r.family, "t5");
        assert_int_equal(r.n_tensors, 26);
        assert_int_equal(r.n_pieces, TINY_PIECES);
        assert_false(r.own_head);
        assert_int_equal(r.n_notes, 0);
        assert_true(has(one, len_one, "inkstone.weights_sha256"));
        assert_int_equal(has(one, len_one, "inkstone.i8_version"), type == INK_IMPORT_I8);
        free(one);
        free(two);
    }
    folder_remove(dir);
}

static void rows_that_are_no_whole_blocks_fall_back(void **state)
{
    char *dir = tiny_folder(), *bytes;
    size_t len;
    struct ink_import_report r;
    struct ink_err err;
    (void)state;

    /* Rows of 8 and 16: no block type divides them. */
    assert_int_equal(import_as(dir, INK_IMPORT_Q8_0, 0, &r, &bytes, &len, &err), INK_OK);
    assert_int_equal(r.n_fallback_f16, 17);
    assert_int_equal(r.n_fallback_q8_0, 0);
    free(bytes);
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
    assert_int_equal(r.n_fallback_f16, 0);
    free(bytes);
    folder_remove(dir);
}

static void the_digest_depends_on_weights_type_and_configuration(void **state)
{
    char *digests[4];
    (void)state;

    for (int i = 0; i < 4; i++) {
        char *dir = tiny_folder(), *bytes;
        size_t len, at;
        struct ink_import_report r;
        struct ink_err err;

        if (i == 1) {
            struct tensors t;

            tiny_tensors(&t, NULL, 0);
            t.data.ptr[t.data.len - 1] ^= 1;
            tensors_end(&t, dir, "model.safetensors");
        }
        if (i == 2) {
            char config[600];

            snprintf(config, sizeof(config), "%.*s,\"layer_norm_epsilon\":1e-5}",
                     (int)strlen(tiny_config) - 1, tiny_config);
            folder_puts(dir, "config.json", config);
        }
        assert_int_equal(
            import_as(dir, i == 3 ? INK_IMPORT_F16 : INK_IMPORT_F32, 0, &r, &bytes, &len, &err),
            INK_OK);
        for (at = 0; memcmp(bytes + at, "weights_sha256", 14) != 0; at++)
            assert_true(at < len);
        digests[i] = malloc(64);
        assert_non_null(digests[i]);
        memcpy(digests[i], bytes + at + 14 + 4 + 8, 64); /* after the key: type and length */
        for (int k = 0; k < 64; k++)
            assert_non_null(memchr("0123456789abcdef", digests[i][k], 16));
        free(bytes);
        folder_remove(dir);
    }
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(digests[i], digests[k], 64);
    }
    for (int i = 0; i < 4; i++)
        free(digests[i]);
}

static void the_head_is_what_the_tensors_say(void **state)
{
    static const struct {
        int head;
        bool untied, own, note;
    } rows[] = {
        { 0, false, false, false }, /* none: tied */
        { 1, false, true, false },  /* differs: its own, whatever the configuration says */
        { 2, true, false, false },  /* a copy of the embedding */
        { 0, true, false, true },   /* said to be there, but is not */
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *dir = tiny_folder(), *bytes;
        char config[600];
        size_t len;
        struct tensors t;
        struct ink_import_report r;
        struct ink_err err;

        snprintf(config, sizeof(config), "%.*s,\"tie_word_embeddings\":%s}",
                 (int)strlen(tiny_config) - 1, tiny_config, rows[i].untied ? "false" : "true");
        folder_puts(dir, "config.json", config);
        tiny_tensors(&t, NULL, rows[i].head == 1);
        if (rows[i].head == 2)
            tensors_add(&t, "lm_head.weight", TINY_ROWS, 8,
                        0.0F); /* shared.weight is the first, filled from 0 */
        tensors_end(&t, dir, "model.safetensors");
        assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
        assert_int_equal(r.own_head, rows[i].own);
        assert_int_equal(has(bytes, len, "output.weight"), rows[i].own);
        assert_int_equal(r.n_notes, rows[i].note);
        free(bytes);
        folder_remove(dir);
    }
}

static void tensors_nobody_needs_are_counted_and_strange_ones_noted(void **state)
{
    char *dir = tiny_folder(), *bytes;
    size_t len;
    struct tensors t;
    struct ink_import_report r;
    struct ink_err err;
    (void)state;

    tiny_tensors(&t, NULL, 0);
    tensors_add(&t, "encoder.embed_tokens.weight", TINY_ROWS, 8, 0.0F);
    tensors_add(&t, "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", 8, 2,
                0.0F);
    tensors_end(&t, dir, "model.safetensors");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
    assert_int_equal(r.n_unused, 2);
    assert_int_equal(r.n_notes, 0);
    free(bytes);

    tiny_tensors(&t, NULL, 0);
    tensors_add(&t, "adapter.down.weight", 2, 8, 0.0F);
    tensors_end(&t, dir, "model.safetensors");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
    assert_int_equal(r.n_notes, 1);
    assert_non_null(strstr(r.notes[0], "adapter.down.weight"));
    free(bytes);
    folder_remove(dir);
}

static void the_embedding_may_have_another_name(void **state)
{
    char *dir = tiny_folder(), *bytes;
    size_t len;
    struct tensors t;
    struct ink_import_report r;
    struct ink_err err;
    (void)state;

    tiny_tensors(&t, "shared.weight", 0);
    tensors_add(&t, "decoder.embed_tokens.weight", TINY_ROWS, 8, 0.0F);
    tensors_end(&t, dir, "model.safetensors");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
    assert_true(has(bytes, len, "token_embd.weight"));
    free(bytes);
    folder_remove(dir);
}

static void the_card_is_written(void **state)
{
    char *dir = tiny_folder(), *bytes;
    size_t len;
    struct ink_import_report r;
    struct ink_err err;
    (void)state;

    folder_puts(dir, "README.md", "---\nlanguage: zh\nlicense: apache-2.0\n---\n# A model\n");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
    assert_true(has(bytes, len, "apache-2.0"));
    assert_true(has(bytes, len, strrchr(dir, '/') + 1)); /* the folder's name */
    assert_false(has(bytes, len, "inkstone.prompt"));
    free(bytes);
    folder_puts(
        dir, "inkstone.json",
        "{\"name\":\"Brush\",\"license\":\"MIT\",\"prompt\":\"rewrite: {text}\",\"demo\":true}");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_OK);
    assert_true(has(bytes, len, "Brush"));
    assert_true(has(bytes, len, "rewrite: {text}"));
    assert_true(has(bytes, len, "inkstone.demo"));
    assert_false(has(bytes, len, "apache-2.0"));
    free(bytes);
    folder_puts(dir, "inkstone.json", "{\"prompt\":\"rewrite\"}");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "inkstone.json: prompt: has no {text}"));
    folder_remove(dir);
}

/* --- what is wrong ---------------------------------------------------------------------------------- */

static void wrong_paths_are_named(void **state)
{
    char *dir = tiny_folder(), *empty = folder_new(), *file = ink_path_join(dir, "config.json");
    struct ink_err err = { 0 };
    (void)state;

    assert_int_equal(ink_import("/nonexistent", "/tmp/x.gguf", NULL, NULL, &err), INK_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent: no such folder"));
    assert_int_equal(ink_import(file, "/tmp/x.gguf", NULL, NULL, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "not a folder"));
    assert_int_equal(ink_import(empty, "/tmp/x.gguf", NULL, NULL, &err), INK_NOT_FOUND);
    assert_non_null(strstr(err.text, "no config.json"));
    assert_int_equal(ink_import(dir, empty, NULL, NULL, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "is a folder; name the file"));
    assert_int_equal(ink_import(dir, "/nonexistent/x.gguf", NULL, NULL, &err), INK_IO);
    folder_puts(empty, "config.json", tiny_config);
    assert_int_equal(ink_import(empty, "/tmp/x.gguf", NULL, NULL, &err), INK_NOT_FOUND);
    assert_non_null(strstr(err.text, "no weights"));
    free(file);
    folder_remove(dir);
    folder_remove(empty);
}

static void a_missing_tensor_is_named(void **state)
{
    static const char *const names[] = { "shared.weight",
                                         "encoder.block.0.layer.1.DenseReluDense.wo.weight",
                                         "decoder.final_layer_norm.weight" };
    (void)state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *dir = tiny_folder(), *bytes;
        size_t len;
        struct tensors t;
        struct ink_import_report r;
        struct ink_err err;

        tiny_tensors(&t, names[i], 0);
        tensors_end(&t, dir, "model.safetensors");
        assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_CORRUPT);
        assert_non_null(strstr(err.text, names[i]));
        assert_non_null(strstr(err.text, "missing"));
        folder_remove(dir);
    }
}

static void a_wrong_shape_is_named_with_both_shapes(void **state)
{
    char *dir = tiny_folder(), *bytes;
    size_t len;
    struct tensors t;
    struct ink_import_report r;
    struct ink_err err;
    (void)state;

    tiny_tensors(&t, "encoder.block.0.layer.1.DenseReluDense.wi.weight", 0);
    tensors_add(&t, "encoder.block.0.layer.1.DenseReluDense.wi.weight", 8, 16, 0.0F);
    tensors_end(&t, dir, "model.safetensors");
    assert_int_equal(import_as(dir, INK_IMPORT_F32, 0, &r, &bytes, &len, &err), INK_CORRUPT);
    assert_non_null(
        strstr(err.text, "DenseReluDense.wi.weight: is 8 x 16, but config.json demands 16 x 8"));
    folder_remove(dir);
}

static void values_that_do_not_fit_are_named(void **state)
{
    static const struct {
        float value;
        enum ink_import_type type;
        enum ink_status st;
        const char *part;
    } rows[] = {
        { NAN, INK_IMPORT_F32, INK_CORRUPT, "row 3 has a NaN" },
        { INFINITY, INK_IMPORT_I8, INK_CORRUPT, "row 3 has a NaN or an infinity" },
        { 1e6F, INK_IMPORT_F16, INK_INVALID,
          "row 3 has values too large for f16; import with --type bf16" },
        { 1e6F, INK_IMPORT_BF16, INK_OK, "" },
        { 1e6F, INK_IMPORT_I8, INK_OK, "" },
        { 65504.0F, INK_IMPORT_F16, INK_OK, "" },
        { 1e-42F, INK_IMPORT_I8, INK_OK, "" }, /* a scale that cannot be inverted counts as zero */
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *dir = tiny_folder(), *bytes;
        size_t len, end;
        struct tensors t;
        struct ink_import_report r;
        struct ink_err err;

        tiny_tensors(&t, "encoder.block.0.layer.0.SelfAttention.q.weight", 0);
        tensors_add(&t, "encoder.block.0.layer.0.SelfAttention.q.weight", 8, 8, 0.0F);
        end = t.data.len;
        memcpy(t.data.ptr + end - (64 - 3 * 8 - 1) * sizeof(float), &rows[i].value, sizeof(float));
        tensors_end(&t, dir, "model.safetensors");
        enum ink_status st = import_as(dir, rows[i].type, 0, &r, &bytes, &len, &err);

        if (st != rows[i].st || !strstr(err.text, rows[i].part))
            fail_msg("row %zu: got %s", i, err.text);
        if (st != INK_OK)
            assert_non_null(strstr(err.text, "SelfAttention.q.weight"));
        free(bytes);
        folder_remove(dir);
    }
}

struct canceller {
    atomic_bool flag;
    int calls;
    int64_t done, total;
};

static void count_and_cancel(void *arg, int64_t done, int64_t total, const char *what)
{
    struct canceller *c = arg;

    assert_true(done >= c->done && done <= total && what[0] != '\0');
    c->done = done;
    c->total = total;
    if (++c->calls == 5)
        atomic_store(&c->flag, true);
}

static void cancelling_leaves_nothing_behind(void **state)
{
    char *dir = tiny_folder(), *out_dir = folder_new(), *out = ink_path_join(out_dir, "m.gguf");
    struct canceller c = { .calls = 0 };
    struct ink_import_options options = { .cancel = &c.flag,
                                          .progress = count_and_cancel,
                                          .progress_arg = &c };
    struct ink_err err;
    (void)state;

    folder_puts(out_dir, "m.gguf", "the file before");
    assert_int_equal(ink_import(dir, out, &options, NULL, &err), INK_CANCELLED);
    assert_int_equal(c.calls, 5);
    assert_int_equal(folder_n_files(out_dir), 1);

    char *text;
    size_t len;
    assert_int_equal(ink_file_read(out, 100, &text, &len, NULL), INK_OK);
    assert_string_equal(text, "the file before");
    free(text);

    options.cancel = NULL;
    c = (struct canceller){ .calls = 0 };
    assert_int_equal(ink_import(dir, out, &options, NULL, &err), INK_OK);
    assert_int_equal(c.calls, 26);
    assert_true(c.done == c.total && c.total > 0);
    free(out);
    folder_remove(out_dir);
    folder_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_folder_gives_the_same_bytes),
        cmocka_unit_test(rows_that_are_no_whole_blocks_fall_back),
        cmocka_unit_test(the_digest_depends_on_weights_type_and_configuration),
        cmocka_unit_test(the_head_is_what_the_tensors_say),
        cmocka_unit_test(tensors_nobody_needs_are_counted_and_strange_ones_noted),
        cmocka_unit_test(the_embedding_may_have_another_name),
        cmocka_unit_test(the_card_is_written),
        cmocka_unit_test(wrong_paths_are_named),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(a_wrong_shape_is_named_with_both_shapes),
        cmocka_unit_test(values_that_do_not_fit_are_named),
        cmocka_unit_test(cancelling_leaves_nothing_behind),
    };
    return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
