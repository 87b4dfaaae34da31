#ifndef SERVER_JSON_FIELDS_H
#define SERVER_JSON_FIELDS_H

#include "base/slice.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Field readers that several requests share, in the manner of base/json.h: missing or null leaves *out as it is. */

/* A body that must be a JSON object. A new reference. */
INK_NODISCARD enum ink_status field_object(struct ink_slice body, json_t **out,
                                           struct ink_err *err);

/* An int that must fit; the bounds are part of the message. */
INK_NODISCARD enum ink_status field_int(const json_t *obj, const char *name, int min, int max,
                                        int *out, struct ink_err *err);

/* A non-empty array of 1..max token ids; the caller frees *ids, which stays NULL when the field is missing. */
INK_NODISCARD enum ink_status field_ids(const json_t *obj, const char *name, int max, int32_t **ids,
                                        int *n, struct ink_err *err);

#endif
