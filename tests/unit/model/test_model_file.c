/* GGUF reading: what is there is found, and whatever is wrong is named. */
#define _DEFAULT_SOURCE /* mkstemp */
#include "unit.h"

#include "base/buf.h"
#include "model/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    BOOL = 7,
    STRING = 8,
    ARRAY = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12
};
enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_2_REMOVED = 4, TYPE_Q8_0 = 8, TYPE_I8 = 24 };

/* --- writing GGUF by hand ------------------------------------------------------------------------- */

struct gguf {
    struct ink_buf bytes;
};

static void put(struct gguf *g, const void *p, size_t n)
{
    assert_int_equal(ink_buf_add(&g->bytes, p, n), INK_OK);
}

static void put_u8(struct gguf *g, unsigned v)
{
    uint8_t b = (uint8_t)v;

    put(g, &b, sizeof(b));
}

static void put_u32(struct gguf *g, uint32_t v)
{
    put(g, &v, sizeof(v));
}

static void put_u64(struct gguf *g, uint64_t v)
{
    put(g, &v, sizeof(v));
}

static void put_string(struct gguf *g, const char *s)
{
    put_u64(g, strlen(s));
    put(g, s, strlen(s));
}

static void begin(struct gguf *g, uint64_t n_tensors, uint64_t n_keys)
{
    ink_buf_init(&g->bytes, 16 << 20);
    put(g, "GGUF", 4);
    put_u32(g, 3);
    put_u64(g, n_tensors);
    put_u64(g, n_keys);
}

static void key(struct gguf *g, const char *name, uint32_t type)
{
    put_string(g, name);
    put_u32(g, type);
}

static void array_key(struct gguf *g, const char *name, uint32_t type, uint64_t n)
{
    key(g, name, ARRAY);
    put_u32(g, type);
    put_u64(g, n);
}

static void tensor(struct gguf *g, const char *name, uint32_t type, uint64_t ne0, uint64_t ne1,
                   uint64_t offset)
{
    put_string(g, name);
    put_u32(g, 2);
    put_u64(g, ne0);
    put_u64(g, ne1);
    put_u32(g, type);
    put_u64(g, offset);
}

static void align(struct gguf *g, size_t to)
{
    while (g->bytes.len % to != 0)
        put_u8(g, 0);
}

/* Writes what was built to a file, opens that, and removes both. */
static enum ink_status open_bytes(struct gguf *g, struct ink_model_file **out, struct ink_err *err)
{
    char path[] = "/tmp/inkstone-gguf-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, g->bytes.ptr, g->bytes.len), (ssize_t)g->bytes.len);
    close(fd);
    ink_buf_release(&g->bytes);
    *err = (struct ink_err){ 0 };

    enum ink_status st = ink_model_file_open(path, out, err);

    unlink(path);
    if (st != INK_OK)
        assert_non_null(strstr(err->text, path));
    return st;
}

static void refused(struct gguf *g, enum ink_status status, const char *part)
{
    struct ink_model_file *f = NULL;
    struct ink_err err;
    enum ink_status st = open_bytes(g, &f, &err);

    if (st != status || !strstr(err.text, part))
        fail_msg("wanted %s with \"%s\", got %s: %s", ink_status_name(status), part,
                 ink_status_name(st), err.text);
    assert_null(f);
}

/* One tensor of 2 rows of 32 f32, with its data. */
static void one_tensor(struct gguf *g)
{
    tensor(g, "w", TYPE_F32, 32, 2, 0);
    align(g, 32);
    for (unsigned i = 0; i < 64; i++) {
        float v = (float)i;

        put(g, &v, sizeof(v));
    }
}

/* --- reading ---------------------------------------------------------------------------------------- */

static void values_of_every_type_are_read(void **state)
{
    static const struct {
        uint32_t type;
        uint8_t bytes[8];
        size_t n;
        int64_t value;
    } rows[] = {
        { U8, { 200 }, 1, 200 },
        { I8, { 0xff }, 1, -1 },
        { U16, { 0, 0x80 }, 2, 32768 },
        { I16, { 0, 0x80 }, 2, -32768 },
        { U32, { 0xff, 0xff, 0xff, 0xff }, 4, 4294967295 },
        { I32, { 0xfe, 0xff, 0xff, 0xff }, 4, -2 },
        { U64, { 1, 0, 0, 0, 1 }, 8, 4294967297 },
        { I64, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 8, -1 },
    };
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    struct gguf g;
    struct ink_model_file *f;
    struct ink_err err;
    float f32 = 0.25F;
    double f64 = -3.5, d;
    int64_t i;
    bool b;
    const char *s;
    (void)state;

    begin(&g, 1, N + 5);
    for (unsigned k = 0; k < N; k++) {
        char name[8];

        snprintf(name, sizeof(name), "k%u", k);
        key(&g, name, rows[k].type);
        put(&g, rows[k].bytes, rows[k].n);
    }
    key(&g, "f32", F32);
    put(&g, &f32, sizeof(f32));
    key(&g, "f64", F64);
    put(&g, &f64, sizeof(f64));
    key(&g, "bool", BOOL);
    put_u8(&g, 1);
    key(&g, "general.architecture", STRING);
    put_string(&g, "t5");
    key(&g, "general.name", STRING);
    put_string(&g, "caf\xc3\xa9 \xff!");
    one_tensor(&g);
    assert_int_equal(open_bytes(&g, &f, &err), INK_OK);

    for (unsigned k = 0; k < N; k++) {
        char name[8];

        snprintf(name, sizeof(name), "k%u", k);
        assert_true(ink_model_file_int(f, name, &i));
        assert_int_equal(i, rows[k].value);
    }
    assert_true(ink_model_file_float(f, "f32", &d));
    assert_true(d == 0.25);
    assert_true(ink_model_file_float(f, "f64", &d));
    assert_true(d == -3.5);
    assert_true(ink_model_file_bool(f, "bool", &b) && b);
    assert_string_equal(ink_model_file_arch(f), "t5");
    assert_true(ink_model_file_string(f, "general.name", &s));
    assert_string_equal(s, "caf\xc3\xa9 ?!");

    /* Another type, or no such key. */
    assert_false(ink_model_file_int(f, "f32", &i));
    assert_false(ink_model_file_int(f, "bool", &i));
    assert_false(ink_model_file_float(f, "k0", &d));
    assert_false(ink_model_file_bool(f, "k0", &b));
    assert_false(ink_model_file_string(f, "k0", &s));
    assert_false(ink_model_file_int(f, "nothing", &i));
    ink_model_file_close(f);
}

static void arrays_are_read_in_place_and_aligned(void **state)
{
    struct gguf g;
    struct ink_model_file *f;
    struct ink_err err;
    const float scores[] = { -1.0F, 2.5F };
    (void)state;

    begin(&g, 0, 4);
    array_key(&g, "tokens", STRING, 3);
    put_string(&g, "a");
    put_string(&g, "");
    put_string(&g, "\xe2\x96\x81\xe8\xbf\x99");
    array_key(&g, "s", F32, 2); /* lies at an odd offset */
    put(&g, scores, sizeof(scores));
    array_key(&g, "types", I32, 1);
    put_u32(&g, 6);
    array_key(&g, "bytes", U8, 2);
    put(&g, "\x01\x02", 2);
    assert_int_equal(open_bytes(&g, &f, &err), INK_OK);

    assert_int_equal(ink_model_file_array(f, "tokens"), 3);
    assert_int_equal(ink_model_file_array(f, "none"), -1);
    struct ink_slice s = ink_model_file_array_string(f, "tokens", 2);
    assert_int_equal(s.len, 6);
    assert_memory_equal(s.ptr, "\xe2\x96\x81\xe8\xbf\x99", 6);
    assert_int_equal(ink_model_file_array_string(f, "tokens", 1).len, 0);
    assert_int_equal(ink_model_file_array_string(f, "tokens", 3).len, 0);
    assert_int_equal(ink_model_file_array_string(f, "tokens", -1).len, 0);
    assert_int_equal(ink_model_file_array_string(f, "s", 0).len, 0);

    const float *read = ink_model_file_array_data(f, "s", "f32");
    assert_non_null(read);
    assert_int_equal((uintptr_t)read % sizeof(float), 0);
    assert_true(read[0] == -1.0F && read[1] == 2.5F);
    assert_null(ink_model_file_array_data(f, "s", "i32"));
    assert_null(ink_model_file_array_data(f, "tokens", "u8"));
    assert_int_equal(*(const int32_t *)ink_model_file_array_data(f, "types", "i32"), 6);
    assert_memory_equal(ink_model_file_array_data(f, "bytes", "u8"), "\x01\x02", 2);
    assert_int_equal(ink_model_file_n_tensors(f), 0);
    ink_model_file_close(f);
}

static void tensors_are_found_by_name_and_number(void **state)
{
    struct gguf g;
    struct ink_model_file *f;
    struct ink_tensor_info t;
    struct ink_err err;
    uint8_t data[96] = { 1, 2, 3 };
    (void)state;

    begin(&g, 3, 0);
    tensor(&g, "z", TYPE_I8, 32, 1, 0);
    tensor(&g, "a.weight", TYPE_Q8_0, 32, 1, 32);
    tensor(&g, "m", TYPE_F16, 4, 2, 80 / 32 * 32 + 32);
    align(&g, 32);
    put(&g, data, sizeof(data));
    put(&g, data, 16);
    assert_int_equal(open_bytes(&g, &f, &err), INK_OK);

    assert_int_equal(ink_model_file_n_tensors(f), 3);
    ink_model_file_tensor(f, 0, &t);
    assert_string_equal(t.name, "z");
    assert_string_equal(t.type, "i8");
    assert_int_equal(t.size, 32);
    assert_memory_equal(t.data, "\1\2\3", 3);
    assert_true(ink_model_file_find(f, "a.weight", &t));
    assert_string_equal(t.type, "q8_0");
    assert_int_equal(t.size, 34);
    assert_true(ink_model_file_find(f, "m", &t));
    assert_int_equal(t.ne[0], 4);
    assert_int_equal(t.ne[1], 2);
    assert_int_equal(t.ne[2], 1);
    assert_int_equal(t.n_dims, 2);
    assert_false(ink_model_file_find(f, "b", &t));
    assert_string_equal(ink_model_file_type(f), "q8_0"); /* most bytes */
    ink_model_file_drop(f, &t);
    assert_memory_equal(t.data, "\1\2\3", 3); /* a dropped page is read again */
    ink_model_file_close(f);
}

static void the_alignment_key_moves_the_data(void **state)
{
    struct gguf g;
    struct ink_model_file *f;
    struct ink_tensor_info t;
    struct ink_err err;
    (void)state;

    begin(&g, 1, 1);
    key(&g, "general.alignment", U32);
    put_u32(&g, 256);
    tensor(&g, "w", TYPE_F32, 1, 1, 256);
    align(&g, 256);
    for (int i = 0; i < 256; i++)
        put_u8(&g, 0);
    put_u32(&g, 0x3f800000);
    assert_int_equal(open_bytes(&g, &f, &err), INK_OK);
    assert_true(ink_model_file_find(f, "w", &t));
    assert_true(*(const float *)t.data == 1.0F);
    ink_model_file_close(f);
}

static void the_digest_is_the_stored_one_or_depends_on_the_weights(void **state)
{
    static const char stored[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    uint8_t digests[4][32];
    (void)state;

    for (int i = 0; i < 4; i++) {
        struct gguf g;
        struct ink_model_file *f;
        struct ink_err err;

        begin(&g, 1, i >= 2);
        if (i >= 2) {
            key(&g, "inkstone.weights_sha256", STRING);
            put_string(&g, i == 2 ? stored : "no digest");
        }
        one_tensor(&g);
        if (i == 1)
            g.bytes.ptr[g.bytes.len - 1] ^= 1;
        assert_int_equal(open_bytes(&g, &f, &err), INK_OK);
        ink_model_file_digest(f, digests[i]);
        ink_model_file_close(f);
    }
    assert_memory_not_equal(digests[0], digests[1], 32);
    assert_int_equal(digests[2][1], 0x11);
    assert_int_equal(digests[2][31], 0xff);
    assert_memory_equal(digests[3], digests[0], 32);
}

/* --- what is wrong ---------------------------------------------------------------------------------- */

static void other_files_are_named_as_such(void **state)
{
    struct gguf g;
    struct ink_model_file *f = NULL;
    struct ink_err err = { 0 };
    (void)state;

    assert_int_equal(ink_model_file_open("/nonexistent/x.gguf", &f, &err), INK_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/x.gguf"));
    assert_int_not_equal(ink_model_file_open("/tmp", &f, &err), INK_OK);

    ink_buf_init(&g.bytes, 100);
    refused(&g, INK_CORRUPT, "not a GGUF file");
    ink_buf_init(&g.bytes, 100);
    put(&g, "PK\3\4 something else", 19);
    refused(&g, INK_CORRUPT, "not a GGUF file");
    ink_buf_init(&g.bytes, 100);
    put(&g, "GGUF\1\0\0\0", 8);
    refused(&g, INK_UNSUPPORTED, "version 1");
    ink_buf_init(&g.bytes, 100);
    put(&g, "GGUF\0\0\0\3", 8);
    refused(&g, INK_UNSUPPORTED, "big-endian");
    begin(&g, 0, 1);
    key(&g, "split.count", U16);
    put(&g, "\3\0", 2);
    refused(&g, INK_UNSUPPORTED, "3 parts");
}

/* Every cut of a whole file is refused as truncated, with what it was cut in. */
static void every_truncation_is_noticed(void **state)
{
    struct gguf whole, g;
    struct ink_model_file *f;
    struct ink_err err;
    (void)state;

    begin(&whole, 1, 3);
    key(&whole, "general.architecture", STRING);
    put_string(&whole, "t5");
    array_key(&whole, "tokens", STRING, 2);
    put_string(&whole, "one");
    put_string(&whole, "two");
    array_key(&whole, "scores", F32, 2);
    put_u64(&whole, 0);
    one_tensor(&whole);
    for (size_t len = 4; len < whole.bytes.len; len++) {
        ink_buf_init(&g.bytes, 1 << 20);
        put(&g, whole.bytes.ptr, len);
        refused(&g, INK_CORRUPT, "truncated");
    }
    assert_int_equal(open_bytes(&whole, &f, &err), INK_OK);
    ink_model_file_close(f);
}

static void broken_keys_are_named(void **state)
{
    struct gguf g;
    char name[300];
    (void)state;

    begin(&g, 0, 1);
    key(&g, "odd.key", 99);
    refused(&g, INK_CORRUPT, "key odd.key: unknown value type");
    begin(&g, 0, 1);
    array_key(&g, "nested", ARRAY, 1);
    refused(&g, INK_CORRUPT, "key nested: arrays of arrays");
    begin(&g, 0, 2);
    key(&g, "twice", U8);
    put_u8(&g, 1);
    key(&g, "twice", U8);
    put_u8(&g, 1);
    refused(&g, INK_CORRUPT, "key twice: there twice");
    begin(&g, 0, 1);
    array_key(&g, "huge", U64, UINT64_MAX / 8 + 1); /* n * 8 would wrap around */
    put_u64(&g, 0);
    refused(&g, INK_CORRUPT, "key huge");
    begin(&g, 0, 1);
    array_key(&g, "huge", STRING, 1ULL << 60);
    refused(&g, INK_CORRUPT, "key huge");
    begin(&g, 0, 1);
    key(&g, "long", STRING);
    put_u64(&g, UINT64_MAX);
    refused(&g, INK_CORRUPT, "key long");
    begin(&g, 0, 1);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    key(&g, name, U8);
    put_u8(&g, 0);
    refused(&g, INK_CORRUPT, "key number 1 of 1: its name");
    begin(&g, 0, 1);
    key(&g, "\xff\xfe", U8);
    put_u8(&g, 0);
    refused(&g, INK_CORRUPT, "not valid UTF-8");
    begin(&g, 0, 1ULL << 40);
    refused(&g, INK_CORRUPT, "more than 65536 keys");
    begin(&g, 0, 1);
    key(&g, "general.alignment", U32);
    put_u32(&g, 48);
    refused(&g, INK_CORRUPT, "general.alignment: 48");
}

static void broken_tensors_are_named(void **state)
{
    static const struct {
        uint32_t type;
        uint64_t ne0, ne1, offset;
        enum ink_status st;
        const char *part;
    } rows[] = {
        { TYPE_F32, 32, 2, 8, INK_CORRUPT, "tensor w: its offset 8" },
        { TYPE_F32, 32, 2, 1 << 20, INK_CORRUPT, "tensor w needs 256 bytes" },
        { TYPE_F32, 32, 2, UINT64_MAX - 31, INK_CORRUPT, "truncated" },
        { TYPE_F32, 0, 2, 0, INK_CORRUPT, "tensor w: a dimension is zero" },
        { TYPE_F32, UINT64_MAX, 1, 0, INK_CORRUPT, "tensor w: a dimension is zero or negative" },
        { TYPE_F32, 1ULL << 40, 1ULL << 40, 0, INK_CORRUPT,
          "tensor w: its dimensions are too large" },
        { TYPE_Q8_0, 33, 2, 0, INK_CORRUPT, "rows of 33 are not whole blocks of q8_0" },
        { TYPE_Q4_2_REMOVED, 32, 2, 0, INK_UNSUPPORTED, "tensor w: its type has number 4" },
        { 1000, 32, 2, 0, INK_UNSUPPORTED, "tensor w: its type has number 1000" },
    };
    struct gguf g;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(&g, 1, 0);
        tensor(&g, "w", rows[i].type, rows[i].ne0, rows[i].ne1, rows[i].offset);
        align(&g, 32);
        for (int k = 0; k < 16; k++)
            put_u64(&g, 0);
        refused(&g, rows[i].st, rows[i].part);
    }

    begin(&g, 2, 0);
    tensor(&g, "w", TYPE_F32, 1, 1, 0);
    tensor(&g, "w", TYPE_F32, 1, 1, 32);
    refused(&g, INK_CORRUPT, "tensor w: there twice");
    begin(&g, 2, 0);
    tensor(&g, "one", TYPE_F32, 16, 1, 0);
    tensor(&g, "two", TYPE_F32, 1, 1, 32);
    align(&g, 32);
    for (int k = 0; k < 16; k++)
        put_u64(&g, 0);
    refused(&g, INK_CORRUPT, "overlap");
    begin(&g, 1, 0);
    put_string(&g, "w");
    put_u32(&g, 5); /* dimensions */
    for (int k = 0; k < 8; k++)
        put_u64(&g, 1);
    refused(&g, INK_CORRUPT, "tensor w: 5 dimensions");
    begin(&g, 1ULL << 50, 0);
    refused(&g, INK_CORRUPT, "more than 65536 tensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type_are_read),
        cmocka_unit_test(arrays_are_read_in_place_and_aligned),
        cmocka_unit_test(tensors_are_found_by_name_and_number),
        cmocka_unit_test(the_alignment_key_moves_the_data),
        cmocka_unit_test(the_digest_is_the_stored_one_or_depends_on_the_weights),
        cmocka_unit_test(other_files_are_named_as_such),
        cmocka_unit_test(every_truncation_is_noticed),
        cmocka_unit_test(broken_keys_are_named),
        cmocka_unit_test(broken_tensors_are_named),
    };
    return cmocka_run_group_tests_name("model_file", tests, NULL, NULL);
}
