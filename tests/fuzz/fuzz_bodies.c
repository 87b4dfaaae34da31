/* JSON bodies of the routes that have a table of fields. The first byte says which. (No route takes multipart yet.) */
#include "base/alloc.h"
#include "base/json.h"
#include "base/utf8.h"
#include "server/fields.h"
#include "server/router.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const struct field *f, const void *at)
{
    unsigned place;

    if (f->type == FIELD_INT && !(f->flags & FIELD_MODEL_MAX))
        assert(*(const int *)at >= f->min && *(const int *)at <= f->max);
    else if (f->type == FIELD_NUMBER)
        assert(*(const double *)at >= f->min && *(const double *)at <= f->max);
    else if (f->type == FIELD_WORD) {
        memcpy(&place, at, sizeof(place));
        for (unsigned i = 0; i <= place; i++)
            assert(f->words[i]);
    } else if (f->type == FIELD_IDS) {
        const struct field_ids *ids = at;

        assert(!ids->ids || (ids->n >= f->min && ids->n <= f->max));
        for (int i = 0; ids->ids && i < ids->n; i++)
            assert(ids->ids[i] >= 0);
    }
}

static void release(const struct body *body, char *made)
{
    for (int t = 0; t < BODY_TABLES && body->tables[t]; t++) {
        for (size_t i = 0; i < body->tables[t]->n; i++) {
            const struct field *f = &body->tables[t]->rows[i];

            if (f->type == FIELD_IDS)
                free(((struct field_ids *)(void *)(made + f->at))->ids);
        }
    }
    free(made);
}

/* Whatever the bytes: a body that is taken keeps every bound of its table, one that is refused says why. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct body *bodies[ROUTES_MAX];
    struct ink_err err = { 0 };
    json_t *doc = NULL;
    size_t n = 0;

    for (size_t i = 0; i < routes_n; i++) {
        if (routes[i].takes)
            bodies[n++] = routes[i].takes;
    }
    if (size == 0 || ink_json_parse((const char *)data + 1, size - 1, &doc, &err) != INK_OK)
        return 0;

    const struct body *body = bodies[data[0] % n];
    char *made = ink_zalloc(body->size);
    body->init(made);
    if (body_read(body, doc, made, &err) == INK_OK) {
        for (int t = 0; t < BODY_TABLES && body->tables[t]; t++) {
            for (size_t i = 0; i < body->tables[t]->n; i++) {
                const struct field *f = &body->tables[t]->rows[i];

                if (ink_json_has(doc, f->name))
                    check_value(f, made + f->at);
            }
        }
    } else {
        assert(err.text[0] && err.param[0] && err.reason[0]);
        assert(ink_utf8_is_valid(err.text, strlen(err.text)));
    }
    release(body, made);
    json_decref(doc);
    return 0;
}
