/* A task turned into one plain answer, without holding a thread. */
#include "server/work.h"

#include "server/answer.h"
#include "server/reply.h"
#include "server/request.h"
#include "task/task.h"

json_t *work_answer(const struct work *w)
{
    if (w->answer)
        return w->answer(w);

    json_t *answer = ink_answer_rewrite(w->served, ink_task_result(w->task), w->details);

    if (w->cache_word)
        (void)json_object_set_new(answer, "cache", json_string(w->cache_word));
    return answer;
}

void work_add_cache_header(const struct work *w, struct request *rq)
{
    if (w->cache_word)
        reply_header(rq, "X-Cache", w->cache_word);
}

static bool has_event(struct request *rq)
{
    return ink_task_has_event(rq->work.task);
}

bool work_collect(struct request *rq)
{
    for (;;) {
        struct ink_task_event ev;
        struct ink_err err = { 0 };

        if (atomic_load(&rq->gone))
            return true;
        if (ink_task_next(rq->work.task, 0, &ev, &err) != INK_OK) {
            request_explain_end(rq->server, &err);
            reply_error(rq, &err);
            return true;
        }
        if (ev.kind == INK_TASK_DONE) {
            reply_json(rq, 200, work_answer(&rq->work));
            work_add_cache_header(&rq->work, rq);
            return true;
        }
        if (ev.kind == INK_TASK_IDLE) {
            request_park(rq, has_event);
            return false;
        }
    }
}
