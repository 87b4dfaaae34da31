#define _DEFAULT_SOURCE /* mkdtemp */
#include "unit.h"
#include "base/file.h"

#include "base/alloc.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/inkstone-test-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int n_entries(void)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int teardown(void **state)
{
    DIR *d = opendir(folder);
    (void)state;

    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = ink_path_join(folder, e->d_name);

        if (e->d_name[0] != '.' && unlink(path) != 0)
            rmdir(path);
        free(path);
    }
    if (d)
        closedir(d);
    return rmdir(folder);
}

static void write_file(const char *path, const char *text)
{
    struct ink_atomic_file f;
    struct ink_err err;

    assert_int_equal(ink_atomic_open(path, &f, &err), INK_OK);
    assert_true(fputs(text, f.fp) >= 0);
    assert_int_equal(ink_atomic_commit(&f, &err), INK_OK);
    ink_atomic_close(&f);
}

static void a_file_appears_whole_or_not_at_all(void **state)
{
    char *path = ink_path_join(folder, "a");
    struct ink_atomic_file f;
    char *text;
    size_t len;
    (void)state;

    assert_int_equal(ink_atomic_open(path, &f, NULL), INK_OK);
    fputs("first", f.fp);
    assert_false(ink_file_exists(path));
    assert_int_equal(ink_atomic_commit(&f, NULL), INK_OK);
    assert_true(ink_file_exists(path));
    ink_atomic_close(&f);
    assert_int_equal(n_entries(), 1);

    /* Given up half-way: the old content stays and nothing is left behind. */
    assert_int_equal(ink_atomic_open(path, &f, NULL), INK_OK);
    fputs("second", f.fp);
    ink_atomic_close(&f);
    assert_int_equal(n_entries(), 1);
    assert_int_equal(ink_file_read(path, 100, &text, &len, NULL), INK_OK);
    assert_string_equal(text, "first");
    free(text);

    write_file(path, "third");
    assert_int_equal(ink_file_read(path, 100, &text, &len, NULL), INK_OK);
    assert_string_equal(text, "third");
    free(text);

    struct stat sb;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0666 & ~mask);
    free(path);
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
    struct ink_atomic_file f;
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_atomic_open("/no-such-folder/file", &f, &err), INK_IO);
    assert_non_null(strstr(err.text, "/no-such-folder/file: cannot write"));
}

/* A full disk shows at the latest when the bytes are flushed. */
static void a_write_that_fails_is_not_committed(void **state)
{
    char *path = ink_path_join(folder, "full");
    struct ink_atomic_file f;
    struct ink_err err;
    (void)state;

    if (!ink_file_exists("/dev/full"))
        skip();
    assert_int_equal(ink_atomic_open(path, &f, &err), INK_OK);
    assert_non_null(freopen("/dev/full", "wb", f.fp));
    fputs("x", f.fp);
    assert_int_equal(ink_atomic_commit(&f, &err), INK_IO);
    assert_non_null(strstr(err.text, "write failed"));
    ink_atomic_close(&f);
    assert_false(ink_file_exists(path));
    free(path);
}

static void reading_is_bounded(void **state)
{
    char *path = ink_path_join(folder, "b");
    char *text;
    size_t len;
    struct ink_err err;
    (void)state;

    write_file(path, "12345");
    assert_int_equal(ink_file_read(path, 4, &text, &len, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "5 bytes; at most 4"));
    assert_int_equal(ink_file_read(path, 5, &text, &len, &err), INK_OK);
    assert_int_equal(len, 5);
    assert_int_equal(text[5], 0);
    free(text);
    assert_int_equal(ink_file_read("/no-such-file", 5, &text, &len, &err), INK_NOT_FOUND);
    assert_int_equal(ink_file_read(folder, 5, &text, &len, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "not a regular file"));
    free(path);
}

static void a_pipe_is_refused_and_does_not_hang(void **state)
{
    char *path = ink_path_join(folder, "pipe");
    char *text;
    size_t len;
    struct ink_map map;
    (void)state;

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(ink_file_read(path, 5, &text, &len, NULL), INK_INVALID);
    assert_int_equal(ink_map_open(path, &map, NULL), INK_INVALID);
    unlink(path);
    free(path);
}

static void maps_show_the_bytes(void **state)
{
    char *path = ink_path_join(folder, "c");
    struct ink_map map;
    struct ink_err err;
    (void)state;

    write_file(path, "");
    assert_int_equal(ink_map_open(path, &map, &err), INK_OK);
    assert_int_equal(map.len, 0);
    assert_non_null(map.ptr);
    ink_map_close(&map);

    write_file(path, "abc");
    assert_int_equal(ink_map_open(path, &map, &err), INK_OK);
    assert_int_equal(map.len, 3);
    assert_memory_equal(map.ptr, "abc", 3);
    ink_map_drop(&map, 0, 3);
    assert_memory_equal(map.ptr, "abc", 3);
    ink_map_close(&map);
    ink_map_close(&map);
    assert_int_equal(ink_map_open("/no-such-file", &map, &err), INK_NOT_FOUND);
    free(path);
}

static void dropping_pages_keeps_the_neighbours(void **state)
{
    enum { LEN = 1 << 16 };
    char *path = ink_path_join(folder, "d");
    char *text = ink_alloc(LEN + 1);
    struct ink_map map;
    (void)state;

    for (size_t i = 0; i < LEN; i++)
        text[i] = (char)('a' + i % 26);
    text[LEN] = '\0';
    write_file(path, text);
    assert_int_equal(ink_map_open(path, &map, NULL), INK_OK);
    ink_map_drop(&map, 100, 30000);
    ink_map_drop(&map, LEN - 10, 10);
    assert_memory_equal(map.ptr, text, LEN);
    ink_map_close(&map);
    free(text);
    free(path);
}

static void folders_are_made_with_their_parents(void **state)
{
    char *outer = ink_path_join(folder, "x"), *inner = ink_path_join(folder, "x/y/z");
    char *middle = ink_path_join(folder, "x/y"), *file = ink_path_join(folder, "f");
    char *below = ink_path_join(file, "g");
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_dir_make(inner, &err), INK_OK);
    assert_int_equal(ink_dir_make(inner, &err), INK_OK);
    assert_true(ink_file_is_dir(inner));
    write_file(file, "");
    assert_false(ink_file_is_dir(file));
    assert_int_equal(ink_dir_make(file, &err), INK_IO);
    assert_int_equal(ink_dir_make(below, &err), INK_IO);
    rmdir(inner);
    rmdir(middle);
    rmdir(outer);
    free(outer);
    free(inner);
    free(middle);
    free(file);
    free(below);
}

static void paths_are_joined_with_one_slash(void **state)
{
    static const char *const rows[][3] = { { "a", "b", "a/b" },
                                           { "a/", "b", "a/b" },
                                           { "/", "b", "/b" } };
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        char *path = ink_path_join(rows[i][0], rows[i][1]);

        assert_string_equal(path, rows[i][2]);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_whole_or_not_at_all),
        cmocka_unit_test(a_file_that_cannot_be_written_is_named),
        cmocka_unit_test(a_write_that_fails_is_not_committed),
        cmocka_unit_test(reading_is_bounded),
        cmocka_unit_test(a_pipe_is_refused_and_does_not_hang),
        cmocka_unit_test(maps_show_the_bytes),
        cmocka_unit_test(dropping_pages_keeps_the_neighbours),
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(paths_are_joined_with_one_slash),
    };
    return cmocka_run_group_tests_name("file", tests, setup, teardown);
}
