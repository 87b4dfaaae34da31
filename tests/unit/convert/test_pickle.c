/* The pickle machine: state dictionaries are understood, everything else is refused by name, nothing is executed. */
#include "unit.h"

#include "base/buf.h"
#include "convert/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- writing pickles, opcode by opcode -------------------------------------------------------------- */

struct program {
    struct ink_buf b;
};

static void op(struct program *p, const char *bytes, size_t len)
{
    assert_int_equal(ink_buf_add(&p->b, bytes, len), INK_OK);
}

static void text(struct program *p, const char *s)
{
    uint32_t len = (uint32_t)strlen(s);

    op(p, "X", 1);
    op(p, (const char *)&len, sizeof(len));
    op(p, s, len);
}

static void number(struct program *p, int32_t v)
{
    op(p, "J", 1);
    op(p, (const char *)&v, sizeof(v));
}

static void global(struct program *p, const char *module, const char *name)
{
    assert_int_equal(ink_buf_addf(&p->b, "c%s\n%s\n", module, name), INK_OK);
}

/* torch._utils._rebuild_tensor_v2((storage), offset, (rows, width), (stride, 1), False, OrderedDict()) */
static void tensor(struct program *p, const char *storage_type, const char *key, int elements,
                   int offset, int rows, int width, int stride)
{
    global(p, "torch._utils", "_rebuild_tensor_v2");
    op(p, "((", 2);
    text(p, "storage");
    global(p, "torch", storage_type);
    text(p, key);
    text(p, "cpu");
    number(p, elements);
    op(p, "tQ", 2);
    number(p, offset);
    number(p, rows);
    number(p, width);
    op(p, "\x86", 1);
    number(p, stride);
    op(p, "K\x01\x86\x89", 4);
    global(p, "collections", "OrderedDict");
    op(p, ")RtR", 4);
}

/* An OrderedDict of two tensors, the second a parameter, with a number and attributes beside them. */
static void state_dict(struct program *p)
{
    ink_buf_init(&p->b, 1 << 20);
    op(p, "\x80\x02", 2);
    global(p, "collections", "OrderedDict");
    op(p, ")Rq\x00(", 5);
    text(p, "a.weight");
    tensor(p, "FloatStorage", "0", 6, 0, 2, 3, 3);
    text(p, "epoch");
    number(p, 3);
    text(p, "b.weight");
    global(p, "torch._utils", "_rebuild_parameter");
    op(p, "(", 1);
    tensor(p, "BFloat16Storage", "17", 100, 40, 4, 5, 8);
    op(p, "\x88", 1);
    global(p, "collections", "OrderedDict");
    op(p, ")RtRu}", 6);
    text(p, "_metadata");
    op(p, "h\x00sb.", 5);
}

struct found {
    int n;
    struct pickle_tensor t[4];
};

static enum ink_status collect(void *arg, const struct pickle_tensor *t, struct ink_err *err)
{
    struct found *f = arg;

    (void)err;
    if (f->n < 4)
        f->t[f->n] = *t;
    f->n++;
    return INK_OK;
}

static enum ink_status run(const struct program *p, struct found *f, struct ink_err *err)
{
    f->n = 0;
    *err = (struct ink_err){ 0 };
    return pickle_read((struct ink_slice){ p->b.ptr, p->b.len }, collect, f, NULL, err);
}

static void refused(struct program *p, enum ink_status st, const char *part)
{
    struct found f;
    struct ink_err err;
    enum ink_status got = run(p, &f, &err);

    if (got != st || !strstr(err.text, part))
        fail_msg("wanted %s with \"%s\", got %s: %s", ink_status_name(st), part,
                 ink_status_name(got), err.text);
    ink_buf_release(&p->b);
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void a_state_dictionary_gives_its_tensors(void **state)
{
    struct program p;
    struct found f;
    struct ink_err err;
    (void)state;

    state_dict(&p);
    assert_int_equal(run(&p, &f, &err), INK_OK);
    assert_int_equal(f.n, 2);
    assert_true(ink_slice_eq(f.t[0].name, ink_slice_of("a.weight")));
    assert_true(ink_slice_eq(f.t[0].storage, ink_slice_of("0")));
    assert_int_equal(f.t[0].type, SOURCE_F32);
    assert_int_equal(f.t[0].n_dims, 2);
    assert_int_equal(f.t[0].shape[0], 2);
    assert_int_equal(f.t[0].shape[1], 3);
    assert_int_equal(f.t[0].storage_elements, 6);
    assert_true(ink_slice_eq(f.t[1].name, ink_slice_of("b.weight")));
    assert_true(ink_slice_eq(f.t[1].storage, ink_slice_of("17")));
    assert_int_equal(f.t[1].type, SOURCE_BF16);
    assert_int_equal(f.t[1].element_size, 2);
    assert_int_equal(f.t[1].offset, 40);
    assert_int_equal(f.t[1].stride[0], 8);
    ink_buf_release(&p.b);
}

static void newer_protocols_are_understood(void **state)
{
    struct program p;
    struct found f;
    struct ink_err err;
    (void)state;

    static const char bytes[] =
        "\x80\x04\x95\0\0\0\0\0\0\0\0}\x94(\x8c\x01w\x94"
        "\x8c\x0ctorch._utils\x94\x8c\x12_rebuild_tensor_v2\x94\x93\x94"
        "((\x8c\x07storage\x94\x8c\x05torch\x94\x8c\x0bHalfStorage\x94\x93\x94"
        "\x8c\x01"
        "5\x94\x8c\x03"
        "cpu\x94K\x02t\x94QK\x00K\x02\x85\x94K\x01\x85\x94\x89)t\x94R\x94u.";

    ink_buf_init(&p.b, 1 << 16);
    op(&p, bytes, sizeof(bytes) - 1);
    assert_int_equal(run(&p, &f, &err), INK_OK);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.t[0].type, SOURCE_F16);
    assert_int_equal(f.t[0].n_dims, 1);
    assert_int_equal(f.t[0].shape[0], 2);
    ink_buf_release(&p.b);
}

static void every_truncation_is_refused(void **state)
{
    struct program whole;
    (void)state;

    state_dict(&whole);
    for (size_t len = 0; len < whole.b.len; len++) {
        struct found f = { 0 };
        struct ink_err err = { 0 };

        assert_int_equal(
            pickle_read((struct ink_slice){ whole.b.ptr, len }, collect, &f, NULL, &err),
            INK_CORRUPT);
        assert_int_equal(f.n, 0);
        assert_non_null(strstr(err.text, "byte"));
    }
    ink_buf_release(&whole.b);
}

static void names_that_are_not_on_the_list_are_refused(void **state)
{
    static const struct {
        const char *module, *name;
    } rows[] = {
        { "os", "system" },
        { "posix", "system" },
        { "builtins", "eval" },
        { "__builtin__", "exec" },
        { "torch", "load" },
        { "torch._utils", "_rebuild_device_tensor_from_numpy" },
        { "torch", "FloatStorage2" },
        { "collections", "defaultdict" },
        { "", "" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct program p;
        char part[100];

        snprintf(part, sizeof(part), "it names %s.%s", rows[i].module, rows[i].name);
        ink_buf_init(&p.b, 1 << 16);
        op(&p, "\x80\x02", 2);
        global(&p, rows[i].module, rows[i].name);
        op(&p, "X\x04\0\0\0true\x85R.", 12);
        refused(&p, INK_UNSUPPORTED, part);
    }
}

static void opcodes_that_build_objects_are_refused(void **state)
{
    /* INST, OBJ, NEWOBJ, NEWOBJ_EX, EXT1, PERSID, BYTEARRAY8, INT, and what is no opcode. */
    static const uint8_t ops[] = { 'i', 'o', 0x81, 0x92, 0x82, 'P', 0x96, 'I', 0xff };
    (void)state;

    for (size_t i = 0; i < sizeof(ops); i++) {
        struct program p;
        char part[20];

        snprintf(part, sizeof(part), "opcode 0x%02x", ops[i]);
        ink_buf_init(&p.b, 1 << 16);
        op(&p, "\x80\x02}", 3);
        op(&p, (const char *)&ops[i], 1);
        op(&p, "xxxxxxxx\n.", 10);
        refused(&p, INK_UNSUPPORTED, part);
    }
}

static void misuse_of_the_stack_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum ink_status st;
        const char *part;
    } rows[] = {
        { ".", 1, INK_CORRUPT, "too little on the stack" },
        { "N.", 2, INK_UNSUPPORTED, "no dictionary" },
        { "R.", 2, INK_CORRUPT, "too little" },
        { "t.", 2, INK_CORRUPT, "no mark" },
        { "u.", 2, INK_CORRUPT, "no mark" },
        { "N(NNu.", 6, INK_CORRUPT, "no dictionary" },
        { "}(Nu.", 5, INK_CORRUPT, "no dictionary" },
        { "NNNs.", 5, INK_CORRUPT, "no dictionary" },
        { "(0.", 3, INK_CORRUPT, "too little" },
        { "h\x05.", 3, INK_CORRUPT, "never put" },
        { "j\xff\xff\xff\xff.", 6, INK_CORRUPT, "never put" },
        { "Nr\xff\xff\xff\xff.", 7, INK_UNSUPPORTED, "a memo of over a million" },
        { "N)R.", 4, INK_CORRUPT, "a call of what is no name" },
        { "NQ.", 3, INK_UNSUPPORTED, "no storage" },
        { ")Q.", 3, INK_UNSUPPORTED, "no storage" },
        { "NN\x93.", 4, INK_CORRUPT, "no text" },
        { "\x80\x63.", 3, INK_UNSUPPORTED, "unknown protocol" },
        { "\x8a\x09xxxxxxxxx.", 12, INK_UNSUPPORTED, "an integer of over 64 bits" },
        { "X\xff\xff\xff\xff", 5, INK_CORRUPT, "inside a string" },
        { "cos\nsystem", 10, INK_CORRUPT, "an unended line" },
        { "ctorch\nFloatStorage\n)R.", 23, INK_UNSUPPORTED, "a storage that is made in place" },
        { "ctorch._utils\n_rebuild_tensor_v2\n)R.", 36, INK_CORRUPT,
          "a tensor that is not described" },
        { "ccollections\nOrderedDict\nN\x85R.", 29, INK_UNSUPPORTED,
          "an OrderedDict made from something" },
        { "ctorch._utils\n_rebuild_parameter\nN\x85R.", 37, INK_CORRUPT,
          "a parameter without a tensor" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct program p;

        ink_buf_init(&p.b, 1 << 16);
        op(&p, rows[i].bytes, rows[i].len);
        refused(&p, rows[i].st, rows[i].part);
    }
}

static void tensors_with_negative_or_too_many_dimensions_are_refused(void **state)
{
    struct program p;
    (void)state;

    for (int i = 0; i < 4; i++) {
        ink_buf_init(&p.b, 1 << 16);
        op(&p, "}", 1);
        text(&p, "w");
        tensor(&p, "FloatStorage", "0", i == 3 ? -6 : 6, i == 0 ? -1 : 0, i == 1 ? -2 : 2, 3,
               i == 2 ? -3 : 3);
        op(&p, "s.", 2);
        refused(&p, i == 3 ? INK_UNSUPPORTED : INK_CORRUPT,
                i == 3 ? "no storage" : "not described by storage");
    }
}

static void bounds_hold_against_bombs(void **state)
{
    struct program p;
    (void)state;

    /* A stack that only grows, */
    ink_buf_init(&p.b, 4 << 20);
    for (int i = 0; i < 70000; i++)
        op(&p, "N", 1);
    refused(&p, INK_UNSUPPORTED, "a stack deeper than");
    /* values that only grow, */
    ink_buf_init(&p.b, 8 << 20);
    for (int i = 0; i < 1100000; i++)
        op(&p, "N0", 2);
    refused(&p, INK_UNSUPPORTED, "over a million values");
    /* a tuple of 60,000 copies, again and again, */
    ink_buf_init(&p.b, 8 << 20);
    for (int round = 0; round < 40; round++) {
        op(&p, "(N", 2);
        for (int i = 0; i < 60000; i++)
            op(&p, "2", 1);
        op(&p, "t0", 2);
    }
    refused(&p, INK_UNSUPPORTED, "over a million values");
    /* and a dictionary that holds itself. */
    ink_buf_init(&p.b, 1 << 16);
    op(&p, "}q\x00X\x01\0\0\0ah\x00sh\x00", 14);
    struct found f;
    struct ink_err err;
    op(&p, ".", 1);
    assert_int_equal(run(&p, &f, &err), INK_OK);
    assert_int_equal(f.n, 0);
    ink_buf_release(&p.b);
}


static enum ink_status stop(void *arg, const struct pickle_tensor *t, struct ink_err *err)
{
    (void)t;
    ++*(int *)arg;
    return ink_err_set(err, INK_CANCELLED, "enough");
}

static void a_status_of_the_caller_ends_it(void **state)
{
    struct program p;
    struct ink_err err;
    int calls = 0;
    (void)state;

    state_dict(&p);
    assert_int_equal(pickle_read((struct ink_slice){ p.b.ptr, p.b.len }, stop, &calls, NULL, &err),
                     INK_CANCELLED);
    assert_int_equal(calls, 1);
    ink_buf_release(&p.b);
}

static enum ink_status join(void *arg, struct ink_slice s, struct ink_err *err)
{
    (void)err;
    assert_int_equal(ink_buf_add(arg, s.ptr, s.len), INK_OK);
    return ink_buf_adds(arg, ";");
}

static void a_list_of_strings_is_read_and_its_length_told(void **state)
{
    static const char list[] = "\x80\x02]q\x00(X\x02\0\0\0"
                               "94q\x01X\x01\0\0\0"
                               "7q\x02"
                               "eX\x01\0\0\0xa.more";
    struct ink_buf found;
    struct ink_err err;
    size_t used;
    (void)state;

    ink_buf_init(&found, 100);
    assert_int_equal(pickle_read_strings((struct ink_slice){ list, sizeof(list) - 1 }, join, &found,
                                         &used, &err),
                     INK_OK);
    assert_string_equal(found.ptr, "94;7;x;");
    assert_string_equal(list + used, "more");
    assert_int_equal(pickle_read_strings((struct ink_slice){ "].", 2 }, join, &found, NULL, &err),
                     INK_OK);
    assert_int_equal(pickle_read_strings((struct ink_slice){ "}.", 2 }, join, &found, NULL, &err),
                     INK_UNSUPPORTED);
    assert_int_equal(
        pickle_read_strings((struct ink_slice){ "]K\x01a.", 5 }, join, &found, NULL, &err),
        INK_UNSUPPORTED);
    assert_int_equal(pickle_read_strings((struct ink_slice){ "NNa.", 4 }, join, &found, NULL, &err),
                     INK_CORRUPT);
    ink_buf_release(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_dictionary_gives_its_tensors),
        cmocka_unit_test(newer_protocols_are_understood),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(names_that_are_not_on_the_list_are_refused),
        cmocka_unit_test(opcodes_that_build_objects_are_refused),
        cmocka_unit_test(misuse_of_the_stack_is_refused),
        cmocka_unit_test(tensors_with_negative_or_too_many_dimensions_are_refused),
        cmocka_unit_test(bounds_hold_against_bombs),
        cmocka_unit_test(a_status_of_the_caller_ends_it),
        cmocka_unit_test(a_list_of_strings_is_read_and_its_length_told),
    };
    return cmocka_run_group_tests_name("pickle", tests, NULL, NULL);
}
