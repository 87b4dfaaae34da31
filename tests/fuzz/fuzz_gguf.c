/* Whatever the bytes: the file is refused with a message, or everything it offers can be read. */
#define _GNU_SOURCE /* memfd_create */
#include "model/model_file.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned sum; /* what was read goes somewhere */

static void read_keys(const struct ink_model_file *f)
{
    static const char *const keys[] = { "general.architecture",
                                        "general.name",
                                        "general.alignment",
                                        "tokenizer.ggml.tokens",
                                        "tokenizer.ggml.scores",
                                        "tokenizer.ggml.token_type",
                                        "k" };
    int64_t i;
    double d;
    bool b;
    const char *s;

    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        int64_t n = ink_model_file_array(f, keys[k]);

        sum += ink_model_file_int(f, keys[k], &i) + ink_model_file_float(f, keys[k], &d) +
               ink_model_file_bool(f, keys[k], &b);
        if (ink_model_file_string(f, keys[k], &s))
            sum += (unsigned)strlen(s);
        for (int64_t e = 0; e < n; e++) {
            struct ink_slice text = ink_model_file_array_string(f, keys[k], e);
            const float *f32 = ink_model_file_array_data(f, keys[k], "f32");
            const int32_t *i32 = ink_model_file_array_data(f, keys[k], "i32");
            const uint8_t *u8 = ink_model_file_array_data(f, keys[k], "u8");

            sum += text.len > 0 ? (unsigned char)text.ptr[text.len - 1] : 0;
            sum += (f32 && f32[e] > 0.0F) + (i32 ? (unsigned)i32[e] : 0) + (u8 ? u8[e] : 0U);
        }
    }
}

static void read_tensors(const struct ink_model_file *f)
{
    struct ink_tensor_info t, again;
    uint8_t digest[32];

    for (int64_t i = 0; i < ink_model_file_n_tensors(f); i++) {
        ink_model_file_tensor(f, i, &t);
        assert(ink_model_file_find(f, t.name, &again) && again.data == t.data);
        assert(t.size > 0 && t.n_dims >= 1 && t.n_dims <= 4);
        sum += ((const uint8_t *)t.data)[0] + ((const uint8_t *)t.data)[t.size - 1];
    }
    ink_model_file_digest(f, digest);
    sum += digest[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct ink_model_file *f = NULL;
    struct ink_err err = { 0 };
    int fd = memfd_create("gguf", MFD_CLOEXEC);

    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (ink_model_file_open(path, &f, &err) == INK_OK) {
        read_keys(f);
        read_tensors(f);
        ink_model_file_close(f);
    } else {
        assert(err.text[0] != '\0' && !f);
    }
    close(fd);
    return 0;
}
