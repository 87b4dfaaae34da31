#include "unit.h"
#include "base/hash.h"

#include <string.h>

static void check_sha256(const char *text, size_t len, const char *want)
{
    uint8_t digest[INK_SHA256_LEN];
    char hex[INK_SHA256_HEX];

    ink_sha256(text, len, digest);
    ink_sha256_hex(digest, hex);
    assert_string_equal(hex, want);
}

/* Examples of FIPS 180-2. */
static void sha256_follows_the_standard(void **state)
{
    (void)state;

    check_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* The vectors that the authors of FNV publish. */
static void hash64_is_fnv_1a(void **state)
{
    (void)state;

    assert_true(ink_hash64("", 0) == 0xcbf29ce484222325U);
    assert_true(ink_hash64("a", 1) == 0xaf63dc4c8601ec8cU);
    assert_true(ink_hash64("foobar", 6) == 0x85944171f73967e8U);
}

static void digest_of(const char *a, const char *b, uint8_t out[INK_SHA256_LEN])
{
    struct ink_digest *d = ink_digest_new();

    ink_digest_field(d, a, strlen(a));
    ink_digest_field(d, b, strlen(b));
    ink_digest_finish(d, out);
}

static void fields_do_not_run_into_each_other(void **state)
{
    uint8_t x[INK_SHA256_LEN], y[INK_SHA256_LEN], z[INK_SHA256_LEN];
    (void)state;

    digest_of("ab", "c", x);
    digest_of("a", "bc", y);
    digest_of("ab", "c", z);
    assert_memory_not_equal(x, y, INK_SHA256_LEN);
    assert_memory_equal(x, z, INK_SHA256_LEN);
    digest_of("", "abc", y);
    digest_of("abc", "", z);
    assert_memory_not_equal(y, z, INK_SHA256_LEN);
}

/* 8 bytes of length, least significant first, then the field: stored keys depend on it. */
static void a_field_is_its_length_and_its_bytes(void **state)
{
    uint8_t x[INK_SHA256_LEN], y[INK_SHA256_LEN];
    struct ink_digest *d = ink_digest_new();
    (void)state;

    ink_digest_field(d, "abc", 3);
    ink_digest_finish(d, x);
    ink_sha256("\3\0\0\0\0\0\0\0abc", 11, y);
    assert_memory_equal(x, y, INK_SHA256_LEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_follows_the_standard),
        cmocka_unit_test(hash64_is_fnv_1a),
        cmocka_unit_test(fields_do_not_run_into_each_other),
        cmocka_unit_test(a_field_is_its_length_and_its_bytes),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
