/* OpenAI's routes; for now the list of models. */
#include "server/router.h"

#include "server/answer.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/state.h"
#include "task/catalog.h"

enum ink_status route_models(struct request *rq, struct ink_err *err)
{
    struct ink_catalog *catalog = atomic_load(&rq->server->catalog);
    json_t *list = json_object(), *data = json_array();
    (void)err;

    for (int i = 0; i < ink_catalog_n_models(catalog); i++)
        (void)json_array_append_new(data, ink_answer_model(ink_catalog_model(catalog, i)));
    (void)json_object_set_new(list, "object", json_string("list"));
    (void)json_object_set_new(list, "data", data);
    reply_json(rq, 200, list);
    return INK_OK;
}
