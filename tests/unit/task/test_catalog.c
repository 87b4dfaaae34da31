#include "unit.h"

#include "engine/stats.h"
#include "model/model.h"
#include "task/fake_catalog.h"
#include "token/tokenizer.h"

#include <string.h>

static const struct fake_answer answers[] = { { "甲乙", 1 }, { NULL, 0 } };

static void a_model_is_found_by_name_or_by_what_it_can_do(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, answers);
    struct ink_served *s, *other;
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_catalog_add(c, "/models/second.gguf", "two", &err), INK_OK);
    assert_int_equal(ink_catalog_n_models(c), 2);
    assert_int_equal(ink_catalog_find(c, NULL, INK_CAN_REWRITE, &s, &err), INK_OK);
    assert_string_equal(ink_served_name(s), "fake");
    assert_int_equal(ink_catalog_find(c, "two", INK_CAN_SCORE, &other, &err), INK_OK);
    assert_ptr_equal(other, ink_catalog_model(c, 1));
    assert_int_equal(ink_catalog_find(c, "three", 0, &s, &err), INK_NOT_FOUND);
    assert_string_equal(err.reason, "model_not_found");
    assert_string_equal(err.param, "model");
    assert_non_null(strstr(err.text, "fake, two"));
    assert_int_equal(ink_catalog_find(c, "two", INK_CAN_CHAT, &s, &err), INK_INVALID);
    assert_string_equal(err.param, "model");
    assert_int_equal(ink_catalog_find(c, NULL, INK_CAN_ASK, &s, &err), INK_NOT_FOUND);
    assert_int_equal(ink_catalog_add(c, "/elsewhere/two.gguf", NULL, &err), INK_INVALID);
    assert_int_equal(ink_catalog_add(c, "/models/absent.gguf", NULL, &err), INK_NOT_FOUND);
    assert_int_equal(ink_catalog_n_models(c), 2);
    ink_catalog_free(c);
}

static void a_served_model_knows_its_properties(void **state)
{
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .max_target_tokens = 100 }, answers);
    const struct ink_served *s = ink_catalog_model(c, 0);
    (void)state;

    assert_int_equal(ink_served_capabilities(s), INK_CAN_REWRITE | INK_CAN_SCORE);
    assert_true(ink_served_is_demo(s));
    assert_int_equal(ink_served_max_source(s),
                     256); /* the model's own bound is lower than the default */
    assert_int_equal(ink_served_max_target(s), 100);
    assert_string_equal(ink_served_prompt(s), "{text}");
    assert_string_equal(ink_served_info(s)->arch, "t5");
    assert_true(ink_tokenizer_n_pieces(ink_served_tokenizer(s)) < ink_served_info(s)->n_vocab);
    ink_catalog_free(c);
}

static void the_template_defaults_and_must_have_a_place_for_the_text(void **state)
{
    struct ink_catalog *c = ink_catalog_new(&(struct ink_catalog_options){ 0 });
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_OK);
    assert_string_equal(ink_served_prompt(ink_catalog_model(c, 0)),
                        "请将以下句子用不同方式表达，保持原意不变：{text}");
    ink_catalog_free(c);

    c = ink_catalog_new(&(struct ink_catalog_options){ .prompt = "rewrite" });
    assert_int_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_INVALID);
    assert_string_equal(err.param, "prompt");
    ink_catalog_free(c);
}

static void a_vocabulary_can_be_opened_without_weights(void **state)
{
    struct ink_catalog *c =
        ink_catalog_new(&(struct ink_catalog_options){ .vocabulary_only = true });
    struct ink_engine_stats st;
    struct ink_served *s;
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_OK);
    assert_int_equal(ink_catalog_find(c, NULL, 0, &s, &err), INK_OK);
    assert_int_equal(ink_served_capabilities(s), 0);
    assert_non_null(ink_served_tokenizer(s));
    ink_served_stats(s, &st);
    assert_int_equal(st.jobs_submitted, 0);
    assert_int_equal(ink_catalog_find(c, "m", INK_CAN_REWRITE, &s, &err), INK_INVALID);
    ink_catalog_free(c);
}

static void a_file_without_its_vocabulary_is_refused_by_key(void **state)
{
    static const char *const keys[] = { "tokenizer.ggml.model", "tokenizer.ggml.tokens",
                                        "tokenizer.ggml.scores", "tokenizer.ggml.token_type" };
    (void)state;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct ink_catalog *c = ink_catalog_new(&(struct ink_catalog_options){ 0 });
        struct ink_err err;

        fake_missing_key = keys[i];
        assert_int_not_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_OK);
        assert_non_null(strstr(err.text, keys[i]));
        assert_non_null(strstr(err.text, "/m.gguf"));
        fake_missing_key = NULL;
        ink_catalog_free(c);
    }
    /* Special ids that are not named are found by their spelling. */
    struct ink_catalog *c = ink_catalog_new(&(struct ink_catalog_options){ 0 });
    struct ink_err err;
    fake_missing_key = "tokenizer.ggml.eos_token_id";
    assert_int_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_OK);
    assert_int_equal(ink_tokenizer_eos(ink_served_tokenizer(ink_catalog_model(c, 0))), 1);
    fake_missing_key = NULL;
    ink_catalog_free(c);
}

static void kv_memory_is_bounded_when_asked(void **state)
{
    struct ink_err err;
    (void)state;

    /* The model without weights counts 1,000 bytes a block. */
    struct ink_catalog *c = ink_catalog_new(&(struct ink_catalog_options){
        .max_memory = 50000, .max_source_tokens = 160, .max_target_tokens = 160 });
    assert_int_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_OK);
    assert_int_equal(ink_served_info(ink_catalog_model(c, 0))->n_blocks, 50);
    ink_catalog_free(c);
    c = ink_catalog_new(&(struct ink_catalog_options){
        .max_memory = 15000, .max_source_tokens = 160, .max_target_tokens = 160 });
    assert_int_equal(ink_catalog_add(c, "/m.gguf", NULL, &err), INK_NO_MEMORY);
    assert_non_null(strstr(err.text, "20000"));
    ink_catalog_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_found_by_name_or_by_what_it_can_do),
        cmocka_unit_test(a_served_model_knows_its_properties),
        cmocka_unit_test(the_template_defaults_and_must_have_a_place_for_the_text),
        cmocka_unit_test(a_vocabulary_can_be_opened_without_weights),
        cmocka_unit_test(a_file_without_its_vocabulary_is_refused_by_key),
        cmocka_unit_test(kv_memory_is_bounded_when_asked),
    };
    return cmocka_run_group_tests_name("catalog", tests, NULL, NULL);
}
