#include "convert/torch_bin.h"
enum ink_status torch_bin_list(struct checkpoint *c, int file, struct ink_err *err)
{
    return ink_err_set(err, INK_UNSUPPORTED, "%s: pytorch_model.bin is not read yet", c->files[file].path);
}
void torch_bin_close(void *zip) { (void)zip; }
enum ink_status torch_bin_start(const struct checkpoint_file *f, const struct source_tensor *t, void **zip_file, struct ink_err *err)
{ (void)t; (void)zip_file; return ink_err_set(err, INK_UNSUPPORTED, "%s: pytorch_model.bin is not read yet", f->path); }
enum ink_status torch_bin_read(const struct checkpoint_file *f, const struct source_tensor *t, void *zip_file, void *out, size_t len, struct ink_err *err)
{ (void)t; (void)zip_file; (void)out; (void)len; return ink_err_set(err, INK_UNSUPPORTED, "%s: not read yet", f->path); }
void torch_bin_stop(void *zip_file) { (void)zip_file; }
