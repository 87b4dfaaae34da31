#include "convert/hf_tokenizer_json.h"
enum ink_status hf_tokenizer_json_read(const json_t *root, struct vocab *v, struct ink_err *err)
{ (void)root; (void)v; return ink_err_set(err, INK_UNSUPPORTED, "tokenizer.json is not read yet"); }
