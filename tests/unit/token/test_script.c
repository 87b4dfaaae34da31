#include "unit.h"
#include "small_vocab.h"
#include "spiece_reader.h"
#include "token/script.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SP "\xe2\x96\x81"

static void characters_have_their_script(void **state)
{
    static const struct {
        const char *text;
        unsigned script;
    } rows[] = {
        { "", 0 },
        { " \t\n\xe3\x80\x80", 0 },                /* white space, U+3000 too */
        { "\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", 0 }, /* invisible: U+200B, U+FEFF, U+00AD */
        { "中文〇々", INK_SCRIPT_HAN },
        { "ㄅㄆ", INK_SCRIPT_HAN },
        { "\xf0\xa0\x80\x80\xf0\xb0\x80\x80", INK_SCRIPT_HAN },
        { "abcXYZ", INK_SCRIPT_LATIN },
        { "éüßｗＷⅧ", INK_SCRIPT_LATIN },
        { "e\xcc\x81", INK_SCRIPT_LATIN },
        { "0129０９", INK_SCRIPT_DIGIT },
        { "①½²㊿", INK_SCRIPT_DIGIT },
        { ",.!?~@#$", INK_SCRIPT_PUNCT },
        { "，。！？《》“”…—·・℃￥→■", INK_SCRIPT_PUNCT },
        { "😀❤️👍🏻🇨🇳👨‍👩‍👧", INK_SCRIPT_EMOJI },
        { "かなカナーｶﾅ", INK_SCRIPT_KANA },
        { "한국어ㄱ", INK_SCRIPT_HANGUL },
        { "привет", INK_SCRIPT_OTHER },
        { "ไทย", INK_SCRIPT_OTHER },
        { "عربي", INK_SCRIPT_OTHER },
        { "Ωβ", INK_SCRIPT_OTHER },
        { "中a1。😀", INK_SCRIPT_HAN | INK_SCRIPT_LATIN | INK_SCRIPT_DIGIT | INK_SCRIPT_PUNCT |
                         INK_SCRIPT_EMOJI },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (ink_script_of_text(ink_slice_of(rows[i].text)) != rows[i].script)
            fail_msg("\"%s\" has scripts %#x", rows[i].text,
                     ink_script_of_text(ink_slice_of(rows[i].text)));
}

static void every_character_has_at_most_one_script(void **state)
{
    (void)state;

    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char utf8[4];
        size_t n = ink_utf8_encode(cp, utf8);

        if (n == 0)
            continue;
        unsigned set = ink_script_of_text((struct ink_slice){ utf8, n });
        if ((set & (set - 1)) != 0 || (set & ~(unsigned)INK_SCRIPT_ALL) != 0)
            fail_msg("U+%04X has scripts %#x", (unsigned)cp, set);
    }
}

static void chinese_is_han_without_other_scripts(void **state)
{
    static const struct {
        const char *text;
        bool chinese;
    } rows[] = {
        { "这家餐厅的味道非常好。", true },
        { "iPhone15的价格是5999元😀", true },
        { "好\xe2\x80\x8b的", true },
        { "", false },
        { "hello", false },
        { "123。", false },
        { "日本語の文", false },
        { "한국 中", false },
        { "中文 привет", false },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (ink_script_is_chinese(ink_slice_of(rows[i].text)) != rows[i].chinese)
            fail_msg("\"%s\"", rows[i].text);
}

static void names_are_parsed(void **state)
{
    static const struct {
        const char *spec;
        unsigned set;
    } rows[] = {
        { "all", INK_SCRIPT_ALL },
        { "zh", INK_SCRIPT_ZH },
        { "han", INK_SCRIPT_HAN },
        { "zh,latin", INK_SCRIPT_ZH | INK_SCRIPT_LATIN },
        { "han,digit,punct,emoji,latin-common", INK_SCRIPT_ZH },
        { "kana,hangul,other", INK_SCRIPT_KANA | INK_SCRIPT_HANGUL | INK_SCRIPT_OTHER },
    };
    static const char *const bad[] = {
        "", "zh,", ",zh", "chinese", "Han", "han, latin", "zh,,han"
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned set = 0;

        assert_int_equal(ink_script_parse(rows[i].spec, &set, NULL), INK_OK);
        assert_int_equal(set, rows[i].set);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unsigned set = 77;
        struct ink_err err;

        assert_int_equal(ink_script_parse(bad[i], &set, &err), INK_INVALID);
        assert_int_equal(set, 77);
        assert_string_equal(err.param, "scripts");
    }
}

struct selection {
    int32_t *ids, n;
};

static struct selection select_scripts(const struct ink_tokenizer *t, const char *spec)
{
    struct selection s;
    unsigned set;
    struct ink_err err;

    if (ink_script_parse(spec, &set, &err) != INK_OK ||
        ink_script_select(t, set, &s.ids, &s.n, &err) != INK_OK)
        fail_msg("%s", err.text);
    for (int32_t i = 1; i < s.n; i++)
        assert_true(s.ids[i] > s.ids[i - 1]);
    return s;
}

static bool has(const struct selection *s, int32_t id)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->ids[i] == id)
            return true;
    return false;
}

static void a_piece_is_selected_when_all_of_it_is_wanted(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    v.vocab.n_extra_ids = 1;
    int32_t space = small_vocab_add(&v, SP, -1, INK_PIECE_NORMAL);
    int32_t han = small_vocab_add(&v, SP "中文", -1, INK_PIECE_NORMAL);
    int32_t mixed = small_vocab_add(&v, "中1", -1, INK_PIECE_NORMAL);
    int32_t cyrillic = small_vocab_add(&v, "中ж", -1, INK_PIECE_NORMAL);
    int32_t invisible = small_vocab_add(&v, "\xe2\x80\x8f", -1, INK_PIECE_NORMAL);
    int32_t unused = small_vocab_add(&v, "汉", -1, INK_PIECE_UNUSED);
    int32_t bytes = small_vocab_add_bytes(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);

    struct selection s = select_scripts(t, "han");
    assert_int_equal(s.n, 3 + 256);
    assert_true(has(&s, SMALL_EOS) && has(&s, space) && has(&s, han) && has(&s, bytes) &&
                has(&s, bytes + 255));
    free(s.ids);

    s = select_scripts(t, "han,digit");
    assert_true(has(&s, mixed) && !has(&s, cyrillic));
    free(s.ids);

    s = select_scripts(t, "all");
    assert_int_equal(s.n, v.vocab.n_pieces - 3); /* without <unk>, <pad> and the unused one */
    assert_true(has(&s, cyrillic) && has(&s, invisible) && !has(&s, unused) &&
                !has(&s, v.vocab.n_pieces));
    free(s.ids);
    ink_tokenizer_free(t);
}

static void the_chinese_head_of_mt5_spells_everything(void **state)
{
    static const char *const wanted[] = { SP,  "的", "餐厅", "，",  "。",   ",",   "！", "a",
                                          "Z", "OK", "XP",   "USB", "2008", "100", "😀" };
    static const char *const unwanted[] = { "ж", "の", "한", "ไ", SP "для" };
    struct ink_tokenizer *t = spiece_tokenizer("mt5");
    struct selection s = select_scripts(t, "zh");
    struct selection full = select_scripts(t, "all");
    (void)state;

    print_message("mt5: zh %d of %d ids\n", (int)s.n, (int)full.n);
    assert_in_range(s.n, 32000, 50000);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        int32_t id = ink_tokenizer_find(t, ink_slice_of(wanted[i]));

        if (id >= 0 && !has(&s, id))
            fail_msg("\"%s\" is missing", wanted[i]);
    }
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++) {
        int32_t id = ink_tokenizer_find(t, ink_slice_of(unwanted[i]));

        if (id >= 0 && has(&s, id))
            fail_msg("\"%s\" should not be there", unwanted[i]);
    }
    /* Letters, digits and bytes one by one: with them nothing is out of reach. */
    for (int c = 0; c < 256; c++) {
        char piece[8] = { (char)c };
        int32_t id = -1;

        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            id = ink_tokenizer_find(t, ink_slice_of(piece));
            assert_true(id >= 0 && has(&s, id));
        }
        snprintf(piece, sizeof(piece), "<0x%02X>", (unsigned)c);
        id = ink_tokenizer_find(t, ink_slice_of(piece));
        assert_true(id >= 0 && has(&s, id));
    }
    assert_true(has(&s, ink_tokenizer_eos(t)));
    assert_false(has(&s, ink_tokenizer_pad(t)));
    assert_false(has(&s, ink_tokenizer_unk(t)));
    assert_false(has(&full, 250099)); /* ▁<extra_id_0> */
    assert_int_equal(full.n, 250100 - 100 - 2);
    free(s.ids);
    free(full.ids);
    ink_tokenizer_free(t);
}

static void common_latin_is_part_of_latin(void **state)
{
    struct ink_tokenizer *t = spiece_tokenizer("t5");
    struct selection common = select_scripts(t, "latin-common");
    struct selection all = select_scripts(t, "latin");
    (void)state;

    assert_true(common.n < all.n);
    for (int32_t i = 0, k = 0; i < common.n; i++) {
        while (k < all.n && all.ids[k] < common.ids[i])
            k++;
        assert_true(k < all.n && all.ids[k] == common.ids[i]);
    }
    free(common.ids);
    free(all.ids);
    ink_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_their_script),
        cmocka_unit_test(every_character_has_at_most_one_script),
        cmocka_unit_test(chinese_is_han_without_other_scripts),
        cmocka_unit_test(names_are_parsed),
        cmocka_unit_test(a_piece_is_selected_when_all_of_it_is_wanted),
        cmocka_unit_test(the_chinese_head_of_mt5_spells_everything),
        cmocka_unit_test(common_latin_is_part_of_latin),
    };
    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
