#include "base/json.h"
#include "base/utf8.h"
#include "server/rewrite_json.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes: a request that is taken keeps every bound, and one that is refused says why in valid UTF-8. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ink_rewrite_call call;
    struct ink_err err = { 0 };
    json_t *doc = NULL;

    if (ink_json_parse((const char *)data, size, &doc, &err) != INK_OK) {
        assert(err.text[0] && ink_utf8_is_valid(err.text, strlen(err.text)));
        return 0;
    }
    ink_rewrite_call_init(&call);
    if (ink_rewrite_call_read(&call, doc, true, &err) == INK_OK) {
        const struct ink_rewrite_request *rq = &call.rq;

        assert((rq->text.len > 0) != (rq->n_source_ids > 0));
        assert(ink_utf8_is_valid(rq->text.ptr ? rq->text.ptr : "", rq->text.len));
        assert(rq->n >= 1 && rq->n <= INK_REWRITE_N_MAX);
        assert(rq->temperature >= 0 && rq->temperature <= 5);
        assert(rq->top_p > 0 && rq->top_p <= 1 && rq->min_p >= 0 && rq->min_p <= 1);
        assert(rq->repetition_penalty >= 0.1 && rq->repetition_penalty <= 10);
        assert(rq->top_k >= 0 && rq->n_stop >= 0 && rq->n_stop <= INK_STOP_MAX);
        assert(!rq->has_seed || rq->seed < (uint64_t)1 << 53);
        assert(rq->n_top >= 0 && rq->n_top <= INK_TOP_MAX);
        assert(rq->timeout_ms >= 1 && call.linger_ms >= 0 && call.linger_ms <= INK_LINGER_MS_MAX);
        for (int i = 0; i < rq->n_source_ids; i++)
            assert(rq->source_ids[i] >= 0);
        for (int i = 0; i < rq->n_stop; i++)
            assert(rq->stop[i].len > 0);
    } else {
        assert(err.text[0] && err.reason[0] && ink_utf8_is_valid(err.text, strlen(err.text)));
    }
    ink_rewrite_call_release(&call);
    json_decref(doc);
    return 0;
}
