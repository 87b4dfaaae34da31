/* safetensors: what the header says is listed; what does not fit is refused with file and tensor. */
#include "unit.h"

#include "convert/checkpoint.h"
#include "folder.h"

#include <stdlib.h>
#include <string.h>

/* A folder whose model.safetensors has this header and `n_data` bytes. */
static char *make(const char *header, size_t n_data)
{
    char *dir = folder_new();
    size_t len = strlen(header);
    char *bytes = calloc(1, 8 + len + n_data + 1);

    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(len >> (8 * i) & 0xff);
    memcpy(bytes + 8, header, len);
    folder_put(dir, "model.safetensors", bytes, 8 + len + n_data);
    free(bytes);
    return dir;
}

static void tensors_are_listed_with_type_shape_and_place(void **state)
{
    char *dir = make("{\"__metadata__\":{\"format\":\"pt\"},"
                     "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                     "\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                     "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]}}",
                     24);
    struct checkpoint *c;
    struct ink_err err;
    (void)state;

    assert_int_equal(checkpoint_open(dir, &c, &err), INK_OK);
    assert_int_equal(c->n_tensors, 3);
    const struct source_tensor *t = checkpoint_find(c, "w");
    assert_non_null(t);
    assert_int_equal(t->type, SOURCE_BF16);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->size, 12);
    assert_int_equal(checkpoint_find(c, "s")->n_dims, 0);
    assert_int_equal(checkpoint_find(c, "ids")->type, SOURCE_OTHER);
    assert_null(checkpoint_find(c, "x"));

    struct source_reader r;
    assert_int_equal(source_reader_open(c, checkpoint_find(c, "ids"), &r, &err), INK_UNSUPPORTED);
    assert_non_null(strstr(err.text, "tensor ids: elements of type I64"));
    checkpoint_close(c);
    folder_remove(dir);
}

static void reading_gives_the_bytes_in_order(void **state)
{
    struct tensors t;
    struct checkpoint *c;
    struct source_reader r;
    struct ink_err err;
    char *dir = folder_new();
    double scratch[8];
    const void *p;
    (void)state;

    tensors_begin(&t);
    tensors_add(&t, "a", 0, 3, 1.0F);
    tensors_add(&t, "b", 2, 4, 7.0F);
    tensors_end(&t, dir, "model.safetensors");
    assert_int_equal(checkpoint_open(dir, &c, &err), INK_OK);
    assert_int_equal(source_reader_open(c, checkpoint_find(c, "b"), &r, &err), INK_OK);
    for (int row = 0; row < 2; row++) {
        assert_int_equal(source_reader_next(&r, 4 * sizeof(float), scratch, &p, &err), INK_OK);
        assert_int_equal((uintptr_t)p % 8, 0);
        for (int i = 0; i < 4; i++) {
            float v;

            memcpy(&v, (const char *)p + 4 * i, sizeof(v));
            assert_true(v == 7.0F + (float)(4 * row + i) / 1024.0F);
        }
    }
    source_reader_close(&r);
    checkpoint_close(c);
    folder_remove(dir);
}

static void broken_files_are_refused_by_name(void **state)
{
    static const struct {
        const char *header;
        size_t n_data;
        const char *part;
    } rows[] = {
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 12,
          "truncated: tensor w ends at byte 16" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 20,
          "4 bytes at its end" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,16]}}", 16,
          "tensor w: 16 bytes do not fit" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}}", 16,
          "tensor w: its shape" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,16]}}",
          16, "tensor w: its shape" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,16]}}", 16,
          "tensor w: its shape" },
        { "{\"w\":{\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "tensor w: dtype" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}", 16,
          "tensor w: dtype or data_offsets" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16.5]}}", 16,
          "tensor w: dtype or data_offsets" },
        { "{\"w\":7}", 0, "tensor w: dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
          12, "tensor b: overlaps" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}",
          20, "tensor b: leaves a gap" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
          "\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
          16, "duplicate" },
        { "{\"w\":", 0, "not valid JSON" },
        { "[1,2,3]", 0, "not a safetensors file" },
        { "{}", 0, "no tensors" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *dir = make(rows[i].header, rows[i].n_data);
        struct checkpoint *c = NULL;
        struct ink_err err = { 0 };

        assert_int_equal(checkpoint_open(dir, &c, &err), INK_CORRUPT);
        if (!strstr(err.text, rows[i].part) || !strstr(err.text, dir))
            fail_msg("wanted \"%s\", got %s", rows[i].part, err.text);
        folder_remove(dir);
    }
}

static void files_that_are_no_safetensors_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *part;
    } rows[] = {
        { "", 0, "not a safetensors file" },
        { "\2\0\0", 3, "not a safetensors file" },
        { "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "not a safetensors file" },
        { "\x40\0\0\0\0\0\0\0{}", 10, "truncated: its header has 64 bytes" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *dir = folder_new();
        struct checkpoint *c = NULL;
        struct ink_err err = { 0 };

        folder_put(dir, "model.safetensors", rows[i].bytes, rows[i].len);
        assert_int_equal(checkpoint_open(dir, &c, &err), INK_CORRUPT);
        if (!strstr(err.text, rows[i].part))
            fail_msg("wanted \"%s\", got %s", rows[i].part, err.text);
        folder_remove(dir);
    }
}

/* --- shards ------------------------------------------------------------------------------------------- */

static char *sharded(const char *index)
{
    struct tensors t;
    char *dir = folder_new();

    tensors_begin(&t);
    tensors_add(&t, "a", 0, 3, 1.0F);
    tensors_end(&t, dir, "one.safetensors");
    tensors_begin(&t);
    tensors_add(&t, "b", 0, 3, 1.0F);
    tensors_end(&t, dir, "two.safetensors");
    folder_puts(dir, "model.safetensors.index.json", index);
    return dir;
}

static void shards_are_read_as_one(void **state)
{
    char *dir = sharded(
        "{\"metadata\":{},\"weight_map\":{\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}");
    struct checkpoint *c;
    struct ink_err err;
    (void)state;

    assert_int_equal(checkpoint_open(dir, &c, &err), INK_OK);
    assert_int_equal(c->n_tensors, 2);
    assert_non_null(strstr(checkpoint_path_of(c, checkpoint_find(c, "a")), "one.safetensors"));
    assert_non_null(strstr(checkpoint_path_of(c, checkpoint_find(c, "b")), "two.safetensors"));
    checkpoint_close(c);
    folder_remove(dir);
}

static void an_index_that_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *index;
        enum ink_status st;
        const char *part;
    } rows[] = {
        { "{\"weight_map\":{\"a\":\"three.safetensors\"}}", INK_NOT_FOUND,
          "three.safetensors: missing" },
        { "{\"weight_map\":{\"c\":\"one.safetensors\"}}", INK_CORRUPT,
          "one.safetensors: tensor c: not in the file" },
        { "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}}", INK_CORRUPT,
          "tensor b" },
        { "{\"weight_map\":{\"a\":\"../one.safetensors\"}}", INK_CORRUPT, "no plain file name" },
        { "{\"weight_map\":{\"a\":7}}", INK_CORRUPT, "no plain file name" },
        { "{\"weight_map\":{}}", INK_CORRUPT, "no weight_map" },
        { "[]", INK_CORRUPT, "no weight_map" },
        { "{", INK_INVALID, "not valid JSON" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *dir = sharded(rows[i].index);
        struct checkpoint *c = NULL;
        struct ink_err err = { 0 };
        enum ink_status st = checkpoint_open(dir, &c, &err);

        if (st != rows[i].st || !strstr(err.text, rows[i].part))
            fail_msg("wanted \"%s\", got %s", rows[i].part, err.text);
        folder_remove(dir);
    }
}

static void a_tensor_in_two_shards_is_refused(void **state)
{
    struct tensors t;
    struct checkpoint *c = NULL;
    struct ink_err err = { 0 };
    char *dir = sharded("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
    (void)state;

    tensors_begin(&t);
    tensors_add(&t, "a", 0, 3, 1.0F);
    tensors_end(&t, dir, "two.safetensors");
    assert_int_equal(checkpoint_open(dir, &c, &err), INK_CORRUPT);
    assert_non_null(strstr(err.text, "tensor a: also in"));
    folder_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_listed_with_type_shape_and_place),
        cmocka_unit_test(reading_gives_the_bytes_in_order),
        cmocka_unit_test(broken_files_are_refused_by_name),
        cmocka_unit_test(files_that_are_no_safetensors_are_refused),
        cmocka_unit_test(shards_are_read_as_one),
        cmocka_unit_test(an_index_that_does_not_fit_is_refused),
        cmocka_unit_test(a_tensor_in_two_shards_is_refused),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
