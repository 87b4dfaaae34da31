#include "task/fake_catalog.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "model/model_file.h"
#include "token/tokenizer.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIECES = 1024, N_PADDING = 6, MAX_ANSWERS = 64, MAX_ANSWER = 600 };

struct fake_options fake_model_options;
const char *fake_missing_key;

/* --- the vocabulary --- */

static const char characters[] =
    "请将以下句子用不同方式表达，保持原意不变：。！？；、一二三四五六七八九十甲乙丙丁戊己庚辛壬癸"
    "这家餐厅的味道非常好服务也很周到天气今明后昨雨晴"
    "abcdefghijklmnopqrstuvwxyz0123456789.,!?あ";

static struct ink_slice pieces[MAX_PIECES];
static char piece_bytes[MAX_PIECES][16];
static float scores[MAX_PIECES];
static int32_t types[MAX_PIECES];
static int n_pieces, first_byte, first_extra;

static int add_piece(const char *text, size_t len, int32_t type)
{
    memcpy(piece_bytes[n_pieces], text, len);
    pieces[n_pieces] = (struct ink_slice){ piece_bytes[n_pieces], len };
    scores[n_pieces] = -2.0f - (float)n_pieces * 0.001f;
    types[n_pieces] = type;
    return n_pieces++;
}

static int find_piece(const char *text, size_t len)
{
    for (int i = 0; i < n_pieces; i++) {
        if (pieces[i].len == len && memcmp(pieces[i].ptr, text, len) == 0)
            return i;
    }
    return -1;
}

static void make_pieces(void)
{
    if (n_pieces > 0)
        return;
    add_piece("<pad>", 5, INK_PIECE_CONTROL);
    add_piece("</s>", 4, INK_PIECE_CONTROL);
    add_piece("<unk>", 5, INK_PIECE_UNKNOWN);
    add_piece("\xe2\x96\x81", 3, INK_PIECE_NORMAL);
    for (const char *p = characters; *p;) {
        uint32_t cp;
        size_t n = ink_utf8_decode(p, strlen(p), &cp);

        if (find_piece(p, n) < 0)
            add_piece(p, n, INK_PIECE_NORMAL);
        p += n;
    }
    first_byte = n_pieces;
    for (int i = 0; i < 256; i++) {
        char name[8];

        add_piece(name, (size_t)snprintf(name, sizeof(name), "<0x%02X>", (unsigned)i),
                  INK_PIECE_BYTE);
    }
    first_extra = n_pieces;
    for (int i = 0; i < 3; i++) {
        char name[16];

        add_piece(name, (size_t)snprintf(name, sizeof(name), "<extra_id_%d>", i),
                  INK_PIECE_CONTROL);
    }
}

/* --- the file --- */

struct ink_model_file {
    char path[64];
};

static bool is_missing(const char *key)
{
    return fake_missing_key && strcmp(key, fake_missing_key) == 0;
}

enum ink_status ink_model_file_open(const char *path, struct ink_model_file **out,
                                    struct ink_err *err)
{
    if (strstr(path, "absent"))
        return ink_err_set(err, INK_NOT_FOUND, "%s: no such file", path);
    make_pieces();
    *out = ink_zalloc(sizeof(**out));
    (void)snprintf((*out)->path, sizeof((*out)->path), "%s", path);
    return INK_OK;
}

void ink_model_file_close(struct ink_model_file *f)
{
    free(f);
}

const char *ink_model_file_path(const struct ink_model_file *f)
{
    return f->path;
}

bool ink_model_file_int(const struct ink_model_file *f, const char *key, int64_t *out)
{
    static const struct {
        const char *key;
        int64_t value;
    } rows[] = { { "tokenizer.ggml.eos_token_id", 1 },
                 { "tokenizer.ggml.unknown_token_id", 2 },
                 { "tokenizer.ggml.padding_token_id", 0 } };
    (void)f;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].key, key) == 0 && !is_missing(key)) {
            *out = rows[i].value;
            return true;
        }
    }
    return false;
}

bool ink_model_file_bool(const struct ink_model_file *f, const char *key, bool *out)
{
    (void)f;
    if (strcmp(key, "inkstone.demo") != 0)
        return false;
    *out = true;
    return true;
}

bool ink_model_file_string(const struct ink_model_file *f, const char *key, const char **out)
{
    (void)f;
    if (is_missing(key) || strcmp(key, "tokenizer.ggml.model") != 0)
        return false;
    *out = "t5";
    return true;
}

int64_t ink_model_file_array(const struct ink_model_file *f, const char *key)
{
    (void)f;
    return strstr(key, "charsmap") || is_missing(key) ? -1 : n_pieces;
}

struct ink_slice ink_model_file_array_string(const struct ink_model_file *f, const char *key,
                                             int64_t i)
{
    (void)f;
    (void)key;
    return pieces[i];
}

const void *ink_model_file_array_data(const struct ink_model_file *f, const char *key,
                                      const char *type)
{
    (void)f;
    (void)type;
    if (is_missing(key) || strstr(key, "charsmap"))
        return NULL;
    return strstr(key, "scores") ? (const void *)scores : types;
}

/* --- the answers --- */

static int32_t answers[MAX_ANSWERS][MAX_ANSWER];
static int answer_len[MAX_ANSWERS];
static double answer_weight[MAX_ANSWERS];
static int n_answers;
static struct ink_model *last_model;

static int32_t next_id(const char **p)
{
    uint32_t cp;
    int id;
    unsigned x;

    if (sscanf(*p, "{X%u}", &x) == 1) {
        id = first_extra + (int)x;
        *p = strchr(*p, '}') + 1;
    } else if (sscanf(*p, "{b %x}", &x) == 1) {
        id = first_byte + (int)x;
        *p = strchr(*p, '}') + 1;
    } else if (**p == ' ') {
        id = 3;
        ++*p;
    } else {
        size_t n = ink_utf8_decode(*p, strlen(*p), &cp);

        id = find_piece(*p, n);
        *p += n;
    }
    assert_true(id >= 0);
    return id;
}

static void set_answers(const struct fake_answer *a)
{
    n_answers = 0;
    for (; a->text; a++, n_answers++) {
        int n = 0;

        for (const char *p = a->text; *p;)
            answers[n_answers][n++] = next_id(&p);
        answers[n_answers][n++] = FAKE_EOS;
        answer_len[n_answers] = n;
        answer_weight[n_answers] = a->weight;
    }
}

/* Log of the weight of all answers that go on with each token. */
static void logits_of_answers(const int32_t *source, int n_source, const int32_t *history,
                              int n_history, float *logits, int n_vocab)
{
    int n = n_history - 1;
    (void)source;
    (void)n_source;

    for (int i = 0; i < n_vocab; i++)
        logits[i] = 0;
    for (int i = 0; i < n_answers; i++) {
        if (n < answer_len[i] && memcmp(answers[i], history + 1, (size_t)n * sizeof(*history)) == 0)
            logits[answers[i][n]] += (float)answer_weight[i];
    }
    for (int i = 0; i < n_vocab; i++)
        logits[i] = logits[i] > 0 ? logf(logits[i]) : -40;
}

enum ink_status ink_model_open(const struct ink_model_file *file,
                               const struct ink_model_options *options, struct ink_model **out,
                               struct ink_err *err)
{
    struct fake_options o = fake_model_options;

    (void)file;
    (void)err;
    o.n_vocab = n_pieces + N_PADDING;
    if (o.max_rows == 0)
        o.max_rows = options->max_rows;
    if (o.n_blocks == 0)
        o.n_blocks = options->n_blocks;
    if (!o.logits)
        o.logits = logits_of_answers;
    *out = last_model = fake_model_new(&o);
    return INK_OK;
}

struct ink_catalog *fake_catalog_new(const struct ink_catalog_options *options,
                                     const struct fake_answer *list)
{
    struct ink_catalog_options o = *options;
    struct ink_catalog *c;
    struct ink_err err;

    make_pieces();
    set_answers(list);
    if (!o.prompt)
        o.prompt = "{text}";
    c = ink_catalog_new(&o);
    if (ink_catalog_add(c, "/models/fake.gguf", NULL, &err) != INK_OK)
        fail_msg("%s", err.text);
    memset(&fake_model_options, 0, sizeof(fake_model_options));
    return c;
}

struct ink_model *fake_catalog_model(void)
{
    return last_model;
}

/* --- reading --- */

void fake_take(struct fake_stream *s, const struct ink_task_event *ev)
{
    assert_false(s->done);
    assert_in_range(ev->index, 0, 15);
    char *text = s->text[ev->index];

    switch (ev->kind) {
    case INK_TASK_TEXT:
        assert_true(ev->text.len > 0 && ink_utf8_is_valid(ev->text.ptr, ev->text.len));
        assert_true(strlen(text) + ev->text.len < sizeof(s->text[0]));
        strncat(text, ev->text.ptr, ev->text.len);
        s->n_texts++;
        break;
    case INK_TASK_RESET:
        assert_int_equal(ev->text.len, 0);
        assert_true(strcmp(ev->reason, "duplicate") == 0 || strcmp(ev->reason, "empty") == 0);
        text[0] = '\0';
        s->n_resets[ev->index]++;
        break;
    case INK_TASK_CANDIDATE:
        assert_int_equal(ev->candidate->index, ev->index);
        assert_int_equal(ev->candidate->text.len, strlen(text));
        assert_memory_equal(ev->candidate->text.ptr, text, strlen(text));
        s->n_candidates++;
        break;
    case INK_TASK_QUEUED:
        s->n_queued++;
        break;
    case INK_TASK_DONE:
        s->done = true;
        break;
    case INK_TASK_IDLE:
        break;
    }
}

void fake_read_all(struct ink_task *task, struct fake_stream *s)
{
    struct ink_task_event ev;

    memset(s, 0, sizeof(*s));
    do {
        s->status = ink_task_next(task, 10000, &ev, &s->err);
        if (s->status == INK_OK)
            fake_take(s, &ev);
    } while (s->status == INK_OK && !s->done);
    assert_int_equal(ink_task_next(task, 0, &ev, NULL), INK_CANCELLED);
    assert_false(ink_task_has_event(task));
}
