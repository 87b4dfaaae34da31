/* config.json of the T5 family, and the tensors that follow from it. */
#include "unit.h"

#include "convert/config.h"
#include "convert/names.h"
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ink_status load(const char *config, const char *generation, struct t5_config *c,
                            struct ink_err *err)
{
    char *dir = folder_new();

    folder_puts(dir, "config.json", config);
    if (generation)
        folder_puts(dir, "generation_config.json", generation);
    *err = (struct ink_err){ 0 };

    enum ink_status st = config_load(dir, c, err);

    if (st != INK_OK)
        assert_non_null(strstr(err->text, dir));
    folder_remove(dir);
    return st;
}

static void each_family_has_its_defaults(void **state)
{
    static const struct {
        const char *family;
        int64_t vocab_size, d_ff;
        int n_layers;
        const char *activation;
        bool gated, per_layer;
    } rows[] = {
        { "t5", 32128, 2048, 6, "relu", false, false },
        { "mt5", 250112, 1024, 8, "gelu_tanh", true, false },
        { "umt5", 250112, 1024, 8, "gelu_tanh", true, true },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[64];
        struct t5_config c;
        struct ink_err err;

        snprintf(text, sizeof(text), "{\"model_type\": \"%s\"}", rows[i].family);
        assert_int_equal(load(text, NULL, &c, &err), INK_OK);
        assert_string_equal(c.family, rows[i].family);
        assert_int_equal(c.vocab_size, rows[i].vocab_size);
        assert_int_equal(c.d_model, 512);
        assert_int_equal(c.d_ff, rows[i].d_ff);
        assert_int_equal(c.n_encoder_layers, rows[i].n_layers);
        assert_int_equal(c.n_decoder_layers, rows[i].n_layers);
        assert_string_equal(c.activation, rows[i].activation);
        assert_int_equal(c.is_gated, rows[i].gated);
        assert_int_equal(c.bias_per_layer, rows[i].per_layer);
        assert_int_equal(c.n_buckets, 32);
        assert_int_equal(c.max_distance, 128);
        assert_int_equal(c.decoder_start, 0);
        assert_true(c.epsilon == 1e-6);
    }
}

/* As transformers 5.24 computes; releases before 5 scaled mT5's output when the head was tied. */
static void the_output_is_scaled_as_the_reference_does(void **state)
{
    static const struct {
        const char *rest;
        bool scaled, untied;
    } rows[] = {
        { "\"model_type\":\"t5\"", true, false },
        { "\"model_type\":\"t5\",\"tie_word_embeddings\":true", true, false },
        { "\"model_type\":\"t5\",\"tie_word_embeddings\":false", false, true },
        { "\"model_type\":\"t5\",\"tie_word_embeddings\":true,\"scale_decoder_outputs\":false",
          false, false },
        { "\"model_type\":\"umt5\"", true, false },
        { "\"model_type\":\"umt5\",\"tie_word_embeddings\":false", false, true },
        { "\"model_type\":\"mt5\"", false, false },
        { "\"model_type\":\"mt5\",\"tie_word_embeddings\":true", false, false },
        { "\"model_type\":\"mt5\",\"tie_word_embeddings\":false", false, true },
        { "\"model_type\":\"mt5\",\"tie_word_embeddings\":true,\"transformers_version\":\"5.24.0\"",
          false, false },
        { "\"model_type\":\"mt5\",\"tie_word_embeddings\":true,\"transformers_version\":\"4.40.1\"",
          true, false },
        { "\"model_type\":\"mt5\",\"transformers_version\":\"4.40.1\"", false, false },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        struct t5_config c;
        struct ink_err err;

        snprintf(text, sizeof(text), "{%s}", rows[i].rest);
        assert_int_equal(load(text, NULL, &c, &err), INK_OK);
        if (c.scale_output != rows[i].scaled || c.says_untied != rows[i].untied)
            fail_msg("%s: scaled %d, untied %d", rows[i].rest, c.scale_output, c.says_untied);
    }
}

static void the_generation_config_decides_the_start(void **state)
{
    struct t5_config c;
    struct ink_err err;
    (void)state;

    assert_int_equal(load("{\"model_type\":\"t5\",\"pad_token_id\":7}", NULL, &c, &err), INK_OK);
    assert_int_equal(c.decoder_start, 7);
    assert_int_equal(load("{\"model_type\":\"t5\",\"pad_token_id\":7,\"decoder_start_token_id\":3}",
                          NULL, &c, &err),
                     INK_OK);
    assert_int_equal(c.decoder_start, 3);
    assert_int_equal(load("{\"model_type\":\"t5\",\"decoder_start_token_id\":3}",
                          "{\"decoder_start_token_id\":5,\"eos_token_id\":[9,1]}", &c, &err),
                     INK_OK);
    assert_int_equal(c.decoder_start, 5);
    assert_int_equal(c.eos, 9);
}

static void what_is_not_supported_is_named(void **state)
{
    static const struct {
        const char *text;
        enum ink_status st;
        const char *part;
    } rows[] = {
        { "{}", INK_INVALID, "config.json: model_type: missing" },
        { "[]", INK_INVALID, "must be an object" },
        { "{\"model_type\":", INK_INVALID, "not valid JSON" },
        { "{\"model_type\":\"bart\"}", INK_UNSUPPORTED,
          "bart is not supported; t5, mt5 and umt5 are" },
        { "{\"model_type\":\"mt5\",\"architectures\":[\"MT5EncoderModel\"]}", INK_UNSUPPORTED,
          "MT5EncoderModel is not supported" },
        { "{\"model_type\":\"mt5\",\"architectures\":[\"T5ForConditionalGeneration\"]}",
          INK_UNSUPPORTED, "T5ForConditionalGeneration" },
        { "{\"model_type\":\"t5\",\"feed_forward_proj\":\"gated-silu\"}", INK_UNSUPPORTED,
          "feed_forward_proj: gated-silu" },
        { "{\"model_type\":\"t5\",\"feed_forward_proj\":\"gelu\"}", INK_UNSUPPORTED,
          "feed_forward_proj: gelu" },
        { "{\"model_type\":\"t5\",\"quantization_config\":{\"load_in_8bit\":true}}",
          INK_UNSUPPORTED, "quantization_config" },
        { "{\"model_type\":\"t5\",\"d_model\":0}", INK_INVALID, "d_model: 0 is not in 1.." },
        { "{\"model_type\":\"t5\",\"d_model\":\"512\"}", INK_INVALID,
          "d_model: must be a whole number" },
        { "{\"model_type\":\"t5\",\"num_layers\":100000}", INK_INVALID, "num_layers: 100000" },
        { "{\"model_type\":\"t5\",\"vocab_size\":-1}", INK_INVALID, "vocab_size: -1" },
        { "{\"model_type\":\"t5\",\"decoder_start_token_id\":40000}", INK_INVALID,
          "decoder_start_token_id" },
        { "{\"model_type\":\"t5\",\"eos_token_id\":\"</s>\"}", INK_INVALID, "eos_token_id" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct t5_config c;
        struct ink_err err;
        enum ink_status st = load(rows[i].text, NULL, &c, &err);

        if (st != rows[i].st || !strstr(err.text, rows[i].part))
            fail_msg("wanted \"%s\", got %s", rows[i].part, err.text);
    }
}

/* --- names ------------------------------------------------------------------------------------------- */

static const struct tensor_spec *find(const struct tensor_spec *list, int n, const char *name)
{
    const struct tensor_spec *hit = NULL;

    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            assert_null(hit);
            hit = &list[i];
        }
    }
    return hit;
}

static void the_tensors_follow_from_the_configuration(void **state)
{
    static const struct {
        const char *text;
        bool own_head;
        int n;
        const char *there, *missing;
    } rows[] = {
        /* per encoder layer 7 + gate, per decoder layer 12 + gate, biases, two norms, embedding, head */
        { "{\"model_type\":\"t5\",\"num_layers\":2,\"num_decoder_layers\":3}", false,
          2 * 8 + 3 * 13 + 2 + 3, "dec.blk.2.ffn_up.weight", "dec.blk.2.ffn_gate.weight" },
        { "{\"model_type\":\"mt5\",\"num_layers\":2,\"num_decoder_layers\":3}", true,
          2 * 9 + 3 * 14 + 2 + 4, "enc.blk.1.ffn_gate.weight", "enc.blk.1.attn_rel_b.weight" },
        { "{\"model_type\":\"umt5\",\"num_layers\":2,\"num_decoder_layers\":3}", false,
          2 * 10 + 3 * 15 + 3, "enc.blk.1.attn_rel_b.weight", "output.weight" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct t5_config c;
        struct ink_err err;
        int n;

        assert_int_equal(load(rows[i].text, NULL, &c, &err), INK_OK);
        c.has_own_head = rows[i].own_head;
        struct tensor_spec *list = names_list(&c, &n);

        assert_int_equal(n, rows[i].n);
        assert_non_null(find(list, n, rows[i].there));
        assert_null(find(list, n, rows[i].missing));
        assert_non_null(find(list, n, "token_embd.weight"));
        assert_non_null(find(list, n, "enc.output_norm.weight"));
        assert_non_null(find(list, n, "dec.output_norm.weight"));
        free(list);
    }
}

static void shapes_keep_inner_and_model_width_apart(void **state)
{
    struct t5_config c;
    struct ink_err err;
    int n;
    (void)state;

    assert_int_equal(
        load(
            "{\"model_type\":\"mt5\",\"d_model\":10,\"d_kv\":3,\"num_heads\":5,\"d_ff\":7,\"num_layers\":1,"
            "\"relative_attention_num_buckets\":8}",
            NULL, &c, &err),
        INK_OK);
    struct tensor_spec *list = names_list(&c, &n);
    const struct tensor_spec *t = find(list, n, "dec.blk.0.cross_attn_q.weight");

    assert_string_equal(t->source, "decoder.block.0.layer.1.EncDecAttention.q.weight");
    assert_int_equal(t->shape[0], 15);
    assert_int_equal(t->shape[1], 10);
    t = find(list, n, "dec.blk.0.cross_attn_o.weight");
    assert_int_equal(t->shape[0], 10);
    assert_int_equal(t->shape[1], 15);
    t = find(list, n, "enc.blk.0.ffn_down.weight");
    assert_string_equal(t->source, "encoder.block.0.layer.1.DenseReluDense.wo.weight");
    assert_int_equal(t->shape[0], 10);
    assert_int_equal(t->shape[1], 7);
    t = find(list, n, "enc.blk.0.attn_rel_b.weight");
    assert_int_equal(t->kind, TENSOR_SMALL);
    assert_int_equal(t->shape[0], 8);
    assert_int_equal(t->shape[1], 5);
    t = find(list, n, "dec.blk.0.cross_attn_norm.weight");
    assert_string_equal(t->source, "decoder.block.0.layer.1.layer_norm.weight");
    assert_int_equal(t->n_dims, 1);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_has_its_defaults),
        cmocka_unit_test(the_output_is_scaled_as_the_reference_does),
        cmocka_unit_test(the_generation_config_decides_the_start),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(the_tensors_follow_from_the_configuration),
        cmocka_unit_test(shapes_keep_inner_and_model_width_apart),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
