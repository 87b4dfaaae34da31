/*
 * Runs a fuzz entry over stored inputs, without a fuzzer.
 *
 * Arguments are files and folders; of a folder, every regular file is an input,
 * in order of name. The name of an input is printed before it runs, so that the
 * last line of a crash names the culprit. No input at all is a failure: a test
 * that looked into an empty folder has tested nothing.
 */
#define _DEFAULT_SOURCE /* alphasort, scandir */

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_inputs;

static int complain(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    return 1;
}

static int run_file(const char *path, size_t size)
{
    /* An allocation of exactly `size` bytes: a sanitizer sees the first byte read past it. */
    uint8_t *data = malloc(size ? size : 1);
    FILE *fp = fopen(path, "rb");
    int failed = 0;

    if (!data || !fp || fread(data, 1, size, fp) != size) {
        failed = complain(path, strerror(errno));
    } else {
        printf("%s (%zu bytes)\n", path, size);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
        n_inputs++;
    }
    if (fp)
        fclose(fp);
    free(data);
    return failed;
}

static int run_path(const char *path, int depth)
{
    struct stat st;
    struct dirent **names;

    if (stat(path, &st) != 0)
        return complain(path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return run_file(path, (size_t)st.st_size);
    if (depth == 8)
        return complain(path, "folders nested too deeply");

    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0)
        return complain(path, strerror(errno));

    int failed = 0;
    for (int i = 0; i < n; i++) {
        char child[4096];

        if (names[i]->d_name[0] != '.') {
            int len = snprintf(child, sizeof(child), "%s/%s", path, names[i]->d_name);

            if (len < 0 || (size_t)len >= sizeof(child))
                failed |= complain(path, "a name in it is too long");
            else
                failed |= run_path(child, depth + 1);
        }
        free(names[i]);
    }
    free(names);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= run_path(argv[i], 0);
    if (n_inputs == 0)
        failed = complain(argc > 1 ? argv[1] : argv[0], "no input to replay");
    printf("%d inputs\n", n_inputs);
    return failed;
}
