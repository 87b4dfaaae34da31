/*
 * A stack machine without calls.
 *
 * Values live in an arena until the end; strings stay in the input. Nothing recurses, so a value that contains itself
 * does no harm. The dictionary that is left on the stack at the end is the state dictionary.
 */
#include "convert/pickle.h"

#include "base/alloc.h"
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STACK = 1 << 16,
    MAX_MEMO = 1 << 20,
    MAX_VALUES = 1 << 20,
    MAX_PROTOCOL = 5,
    MAX_LINE = 256
};

enum kind {
    KIND_MARK,
    KIND_NONE,
    KIND_BOOL,
    KIND_INT,
    KIND_OTHER, /* floats and bytes: accepted where nobody looks */
    KIND_STRING,
    KIND_TUPLE,
    KIND_DICT,
    KIND_LIST,
    KIND_GLOBAL,
    KIND_STORAGE,
    KIND_TENSOR,
};

struct value;

struct entry {
    struct value *key, *value;
    struct entry *next;
};

struct storage {
    const struct global *type;
    struct ink_slice key;
    int64_t n;
};

struct value {
    enum kind kind;
    union {
        int64_t i;
        struct ink_slice s;
        struct {
            struct value **items;
            size_t n;
        } tuple;
        struct {
            struct entry *first, *last;
        } dict; /* and lists, whose entries have no key */
        const struct global *global;
        struct storage storage;
        struct pickle_tensor *tensor;
    } as;
};

/* What a pickle may name. */
enum role { ROLE_DICT, ROLE_TENSOR, ROLE_PARAMETER, ROLE_SIZE, ROLE_STORAGE };

static const struct global {
    const char *module, *name;
    enum role role;
    enum source_type type; /* storages */
    size_t size;
} globals[] = {
    { "collections", "OrderedDict", ROLE_DICT, SOURCE_OTHER, 0 },
    { "torch._utils", "_rebuild_tensor_v2", ROLE_TENSOR, SOURCE_OTHER, 0 },
    { "torch._utils", "_rebuild_tensor", ROLE_TENSOR, SOURCE_OTHER, 0 },
    { "torch._utils", "_rebuild_parameter", ROLE_PARAMETER, SOURCE_OTHER, 0 },
    { "torch._utils", "_rebuild_parameter_with_state", ROLE_PARAMETER, SOURCE_OTHER, 0 },
    { "torch", "Size", ROLE_SIZE, SOURCE_OTHER, 0 },
    { "torch", "FloatStorage", ROLE_STORAGE, SOURCE_F32, 4 },
    { "torch", "HalfStorage", ROLE_STORAGE, SOURCE_F16, 2 },
    { "torch", "BFloat16Storage", ROLE_STORAGE, SOURCE_BF16, 2 },
    { "torch", "DoubleStorage", ROLE_STORAGE, SOURCE_F64, 8 },
    { "torch", "LongStorage", ROLE_STORAGE, SOURCE_OTHER, 8 },
    { "torch", "IntStorage", ROLE_STORAGE, SOURCE_OTHER, 4 },
    { "torch", "ShortStorage", ROLE_STORAGE, SOURCE_OTHER, 2 },
    { "torch", "CharStorage", ROLE_STORAGE, SOURCE_OTHER, 1 },
    { "torch", "ByteStorage", ROLE_STORAGE, SOURCE_OTHER, 1 },
    { "torch", "BoolStorage", ROLE_STORAGE, SOURCE_OTHER, 1 },
};

struct machine {
    const uint8_t *start, *at, *end;
    struct ink_arena *arena;
    struct value **stack;
    size_t n_stack;
    struct value **memo;
    size_t n_memo, cap_memo; /* n_memo: the next number of MEMOIZE */
    size_t n_values;
    struct ink_err *err;
};

/* --- failing ----------------------------------------------------------------------------------------- */

static enum ink_status damaged(const struct machine *m, const char *what)
{
    return ink_err_set(m->err, INK_CORRUPT, "damaged pickle: %s at byte %zu", what,
                       (size_t)(m->at - m->start));
}

static enum ink_status refused(const struct machine *m, const char *what)
{
    return ink_err_set(m->err, INK_UNSUPPORTED,
                       "the pickle holds more than a dictionary of tensors: %s at byte %zu", what,
                       (size_t)(m->at - m->start));
}

/* --- input ------------------------------------------------------------------------------------------- */

static enum ink_status take(struct machine *m, size_t n, const uint8_t **out)
{
    if (n > (size_t)(m->end - m->at))
        return damaged(m, "it ends too early");
    *out = m->at;
    m->at += n;
    return INK_OK;
}

static enum ink_status take_number(struct machine *m, size_t n, uint64_t *out)
{
    const uint8_t *p = NULL;
    enum ink_status st = take(m, n, &p);

    *out = 0;
    for (size_t i = 0; i < n && st == INK_OK; i++)
        *out |= (uint64_t)p[i] << (8 * i);
    return st;
}

static enum ink_status take_sized(struct machine *m, size_t n_len, struct ink_slice *out)
{
    const uint8_t *p = NULL;
    uint64_t len;
    enum ink_status st = take_number(m, n_len, &len);

    if (st != INK_OK)
        return st;
    if (len > (uint64_t)(m->end - m->at))
        return damaged(m, "it ends inside a string");
    st = take(m, (size_t)len, &p);
    *out = (struct ink_slice){ (const char *)p, (size_t)len };
    return st;
}

static enum ink_status take_line(struct machine *m, struct ink_slice *out)
{
    const uint8_t *nl = memchr(m->at, '\n', (size_t)(m->end - m->at));

    if (!nl || nl - m->at > MAX_LINE)
        return damaged(m, "an unended line");
    *out = (struct ink_slice){ (const char *)m->at, (size_t)(nl - m->at) };
    m->at = nl + 1;
    return INK_OK;
}

/* --- values and the stack ---------------------------------------------------------------------------- */

/* Counts what the arena has to hold; without it a small pickle could ask for gigabytes. */
static enum ink_status count(struct machine *m, size_t n)
{
    if (n > MAX_VALUES - m->n_values)
        return refused(m, "over a million values");
    m->n_values += n;
    return INK_OK;
}

static enum ink_status new_value(struct machine *m, enum kind kind, struct value **out)
{
    enum ink_status st = count(m, 1);

    if (st != INK_OK)
        return st;
    *out = ink_arena_alloc(m->arena, sizeof(**out));
    (*out)->kind = kind;
    return INK_OK;
}

static enum ink_status push(struct machine *m, struct value *v)
{
    if (m->n_stack == MAX_STACK)
        return refused(m, "a stack deeper than 65536");
    m->stack[m->n_stack++] = v;
    return INK_OK;
}

static enum ink_status push_new(struct machine *m, enum kind kind, struct value **out)
{
    enum ink_status st = new_value(m, kind, out);

    return st == INK_OK ? push(m, *out) : st;
}

static enum ink_status push_int(struct machine *m, int64_t i)
{
    struct value *v = NULL;
    enum ink_status st = push_new(m, KIND_INT, &v);

    if (st == INK_OK)
        v->as.i = i;
    return st;
}

static enum ink_status push_bool(struct machine *m, bool b)
{
    struct value *v = NULL;
    enum ink_status st = push_new(m, KIND_BOOL, &v);

    if (st == INK_OK)
        v->as.i = b;
    return st;
}

static enum ink_status push_string(struct machine *m, size_t n_len, enum kind kind)
{
    struct value *v = NULL;
    struct ink_slice s = { NULL, 0 };
    enum ink_status st = take_sized(m, n_len, &s);

    if (st == INK_OK && (st = push_new(m, kind, &v)) == INK_OK)
        v->as.s = s;
    return st;
}

/* The top of the stack, taken off; never a mark. */
static enum ink_status pop(struct machine *m, struct value **out)
{
    if (m->n_stack == 0 || m->stack[m->n_stack - 1]->kind == KIND_MARK)
        return damaged(m, "too little on the stack");
    *out = m->stack[--m->n_stack];
    return INK_OK;
}

static enum ink_status top(struct machine *m, struct value **out)
{
    enum ink_status st = pop(m, out);

    if (st == INK_OK)
        m->n_stack++;
    return st;
}

/* Everything above the last mark; the mark goes too. `*items` stays valid until the next push. */
static enum ink_status pop_to_mark(struct machine *m, struct value ***items, size_t *n)
{
    size_t i = m->n_stack;

    while (i > 0 && m->stack[i - 1]->kind != KIND_MARK)
        i--;
    if (i == 0)
        return damaged(m, "no mark on the stack");
    *items = m->stack + i;
    *n = m->n_stack - i;
    m->n_stack = i - 1;
    return INK_OK;
}

static enum ink_status push_tuple(struct machine *m, struct value **items, size_t n)
{
    struct value *v = NULL;
    enum ink_status st = count(m, n);

    if (st != INK_OK || (st = new_value(m, KIND_TUPLE, &v)) != INK_OK)
        return st;
    v->as.tuple.items = ink_arena_alloc(m->arena, (n + 1) * sizeof(*items));
    v->as.tuple.n = n;
    if (n > 0)
        memcpy(v->as.tuple.items, items, n * sizeof(*items));
    return push(m, v);
}

static enum ink_status push_short_tuple(struct machine *m, size_t n)
{
    struct value *items[3] = { NULL };
    enum ink_status st;

    for (size_t i = n; i-- > 0;) {
        if ((st = pop(m, &items[i])) != INK_OK)
            return st;
    }
    return push_tuple(m, items, n);
}

static enum ink_status put_memo(struct machine *m, uint64_t i)
{
    struct value *v = NULL;
    enum ink_status st = top(m, &v);

    if (st != INK_OK)
        return st;
    if (i >= MAX_MEMO)
        return refused(m, "a memo of over a million values");
    if (i >= m->cap_memo) {
        size_t cap = m->cap_memo ? m->cap_memo : 1024;

        while (cap <= i)
            cap *= 2;
        m->memo = ink_realloc(m->memo, cap * sizeof(*m->memo));
        memset(m->memo + m->cap_memo, 0, (cap - m->cap_memo) * sizeof(*m->memo));
        m->cap_memo = cap;
    }
    m->memo[i] = v;
    if (i >= m->n_memo)
        m->n_memo = (size_t)i + 1;
    return INK_OK;
}

static enum ink_status get_memo(struct machine *m, uint64_t i)
{
    if (i >= m->cap_memo || !m->memo[i])
        return damaged(m, "a memo entry that was never put");
    return push(m, m->memo[i]);
}

/* --- dictionaries ------------------------------------------------------------------------------------ */

static enum ink_status dict_add(struct machine *m, struct value *dict, struct value *key,
                                struct value *value)
{
    enum ink_status st = count(m, 1);

    if (st != INK_OK)
        return st;
    struct entry *e = ink_arena_alloc(m->arena, sizeof(*e));

    *e = (struct entry){ key, value, NULL };
    if (dict->as.dict.last)
        dict->as.dict.last->next = e;
    else
        dict->as.dict.first = e;
    dict->as.dict.last = e;
    return INK_OK;
}

static enum ink_status set_items(struct machine *m)
{
    struct value **items = NULL, *dict = NULL;
    size_t n = 0;
    enum ink_status st = pop_to_mark(m, &items, &n);

    if (st != INK_OK || (st = top(m, &dict)) != INK_OK)
        return st;
    if (dict->kind != KIND_DICT || n % 2 != 0)
        return damaged(m, "items for what is no dictionary");
    for (size_t i = 0; i < n && st == INK_OK; i += 2)
        st = dict_add(m, dict, items[i], items[i + 1]);
    return st;
}

static enum ink_status set_item(struct machine *m)
{
    struct value *value = NULL, *key = NULL, *dict = NULL;
    enum ink_status st;

    if ((st = pop(m, &value)) != INK_OK || (st = pop(m, &key)) != INK_OK ||
        (st = top(m, &dict)) != INK_OK)
        return st;
    if (dict->kind != KIND_DICT)
        return damaged(m, "an item for what is no dictionary");
    return dict_add(m, dict, key, value);
}

/* --- names and what they build ----------------------------------------------------------------------- */

static enum ink_status push_global(struct machine *m, struct ink_slice module,
                                   struct ink_slice name)
{
    char text[2 * MAX_LINE + 32];
    struct value *v = NULL;

    for (size_t i = 0; i < sizeof(globals) / sizeof(globals[0]); i++) {
        if (!ink_slice_eq(module, ink_slice_of(globals[i].module)) ||
            !ink_slice_eq(name, ink_slice_of(globals[i].name)))
            continue;
        enum ink_status st = push_new(m, KIND_GLOBAL, &v);

        if (st == INK_OK)
            v->as.global = &globals[i];
        return st;
    }
    snprintf(text, sizeof(text), "it names %.*s.%.*s",
             (int)(module.len < MAX_LINE ? module.len : MAX_LINE), module.ptr,
             (int)(name.len < MAX_LINE ? name.len : MAX_LINE), name.ptr);
    return refused(m, text);
}

static enum ink_status op_global(struct machine *m)
{
    struct ink_slice module = { NULL, 0 }, name = { NULL, 0 };
    enum ink_status st;

    if ((st = take_line(m, &module)) != INK_OK || (st = take_line(m, &name)) != INK_OK)
        return st;
    return push_global(m, module, name);
}

static enum ink_status op_stack_global(struct machine *m)
{
    struct value *module = NULL, *name = NULL;
    enum ink_status st;

    if ((st = pop(m, &name)) != INK_OK || (st = pop(m, &module)) != INK_OK)
        return st;
    if (module->kind != KIND_STRING || name->kind != KIND_STRING)
        return damaged(m, "a name that is no text");
    return push_global(m, module->as.s, name->as.s);
}

/* ("storage", torch.FloatStorage, "17", "cpu", 589824) */
static enum ink_status op_persistent(struct machine *m)
{
    struct value *id = NULL, *v = NULL;
    enum ink_status st = pop(m, &id);

    if (st != INK_OK)
        return st;
    struct value **a = id->as.tuple.items;

    if (id->kind != KIND_TUPLE || id->as.tuple.n < 5 || a[0]->kind != KIND_STRING ||
        !ink_slice_eq(a[0]->as.s, ink_slice_of("storage")) || a[1]->kind != KIND_GLOBAL ||
        a[1]->as.global->role != ROLE_STORAGE || a[2]->kind != KIND_STRING ||
        a[4]->kind != KIND_INT || a[4]->as.i < 0)
        return refused(m, "a persistent id that is no storage");
    if (id->as.tuple.n > 5 && a[5]->kind != KIND_NONE)
        return refused(m, "a storage that is a view of another");
    if ((st = push_new(m, KIND_STORAGE, &v)) == INK_OK)
        v->as.storage = (struct storage){ a[1]->as.global, a[2]->as.s, a[4]->as.i };
    return st;
}

static bool read_ints(const struct value *tuple, int64_t *out, size_t *n)
{
    if (tuple->kind != KIND_TUPLE || tuple->as.tuple.n > SOURCE_MAX_DIMS)
        return false;
    *n = tuple->as.tuple.n;
    for (size_t i = 0; i < *n; i++) {
        const struct value *v = tuple->as.tuple.items[i];

        if (v->kind != KIND_INT || v->as.i < 0)
            return false;
        out[i] = v->as.i;
    }
    return true;
}

/* (storage, offset, size, stride, requires_grad, hooks) */
static enum ink_status rebuild_tensor(struct machine *m, const struct value *args)
{
    struct value **a = args->as.tuple.items, *v = NULL;
    struct pickle_tensor *t = ink_arena_alloc(m->arena, sizeof(*t));
    size_t n_shape, n_stride;

    if (args->as.tuple.n < 4 || a[0]->kind != KIND_STORAGE || a[1]->kind != KIND_INT ||
        a[1]->as.i < 0 || !read_ints(a[2], t->shape, &n_shape) ||
        !read_ints(a[3], t->stride, &n_stride) || n_shape != n_stride)
        return damaged(m, "a tensor that is not described by storage, offset, size and stride");
    const struct storage *s = &a[0]->as.storage;

    t->storage = s->key;
    t->storage_type = s->type->name;
    t->type = s->type->type;
    t->element_size = s->type->size;
    t->storage_elements = s->n;
    t->offset = a[1]->as.i;
    t->n_dims = (int)n_shape;

    enum ink_status st = push_new(m, KIND_TENSOR, &v);

    if (st == INK_OK)
        v->as.tensor = t;
    return st;
}

static enum ink_status op_reduce(struct machine *m)
{
    struct value *args = NULL, *callee = NULL, *v = NULL;
    enum ink_status st;

    if ((st = pop(m, &args)) != INK_OK || (st = pop(m, &callee)) != INK_OK)
        return st;
    if (callee->kind != KIND_GLOBAL || args->kind != KIND_TUPLE)
        return damaged(m, "a call of what is no name");
    struct value **a = args->as.tuple.items;
    size_t n = args->as.tuple.n;

    switch (callee->as.global->role) {
    case ROLE_DICT:
        return n == 0 ? push_new(m, KIND_DICT, &v)
                      : refused(m, "an OrderedDict made from something");
    case ROLE_TENSOR:
        return rebuild_tensor(m, args);
    case ROLE_PARAMETER:
        return n >= 1 && a[0]->kind == KIND_TENSOR ? push(m, a[0])
                                                   : damaged(m, "a parameter without a tensor");
    case ROLE_SIZE:
        return n == 1 && a[0]->kind == KIND_TUPLE ? push(m, a[0])
                                                  : damaged(m, "a size that is no tuple");
    case ROLE_STORAGE:
        break;
    }
    return refused(m, "a storage that is made in place");
}

/* --- the loop ---------------------------------------------------------------------------------------- */

static enum ink_status pop_only(struct machine *m)
{
    struct value *v = NULL;

    return pop(m, &v);
}

static enum ink_status append_many(struct machine *m)
{
    struct value **items = NULL, *list = NULL;
    size_t n = 0;
    enum ink_status st = pop_to_mark(m, &items, &n);

    if (st != INK_OK || (st = top(m, &list)) != INK_OK)
        return st;
    if (list->kind != KIND_LIST)
        return damaged(m, "items for what is no list");
    for (size_t i = 0; i < n && st == INK_OK; i++)
        st = dict_add(m, list, NULL, items[i]);
    return st;
}

static enum ink_status append_one(struct machine *m)
{
    struct value *item = NULL, *list = NULL;
    enum ink_status st;

    if ((st = pop(m, &item)) != INK_OK || (st = top(m, &list)) != INK_OK)
        return st;
    if (list->kind != KIND_LIST)
        return damaged(m, "an item for what is no list");
    return dict_add(m, list, NULL, item);
}

static enum ink_status op_tuple(struct machine *m)
{
    struct value **items = NULL;
    size_t n = 0;
    enum ink_status st = pop_to_mark(m, &items, &n);

    return st == INK_OK ? push_tuple(m, items, n) : st;
}

static enum ink_status op_pop_mark(struct machine *m)
{
    struct value **items = NULL;
    size_t n = 0;

    return pop_to_mark(m, &items, &n);
}

/* A Python integer in 0 to 8 bytes, two's complement. */
static enum ink_status op_long1(struct machine *m)
{
    uint64_t n, bits;
    enum ink_status st = take_number(m, 1, &n);

    if (st != INK_OK)
        return st;
    if (n > 8)
        return refused(m, "an integer of over 64 bits");
    if ((st = take_number(m, (size_t)n, &bits)) != INK_OK)
        return st;
    if (n > 0 && n < 8 && bits >> (8 * n - 1))
        bits |= ~(uint64_t)0 << (8 * n);
    return push_int(m, (int64_t)bits);
}

static enum ink_status op_number(struct machine *m, size_t n)
{
    uint64_t bits;
    enum ink_status st = take_number(m, n, &bits);

    return st == INK_OK ? push_int(m, n == 4 ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits)
                        : st;
}

static enum ink_status op_memo(struct machine *m, bool put, size_t n)
{
    uint64_t i;
    enum ink_status st = take_number(m, n, &i);

    if (st != INK_OK)
        return st;
    return put ? put_memo(m, i) : get_memo(m, i);
}

static enum ink_status op_protocol(struct machine *m)
{
    uint64_t version;
    enum ink_status st = take_number(m, 1, &version);

    if (st == INK_OK && version > MAX_PROTOCOL)
        st = refused(m, "an unknown protocol");
    return st;
}

static enum ink_status op_skip(struct machine *m, size_t n)
{
    const uint8_t *p;

    return take(m, n, &p);
}

static enum ink_status unknown_opcode(struct machine *m, uint8_t op)
{
    char text[40];

    snprintf(text, sizeof(text), "opcode 0x%02x", op);
    return refused(m, text);
}

static enum ink_status step(struct machine *m, uint8_t op)
{
    struct value *v = NULL;
    enum ink_status st;

    switch (op) {
    case 0x80: /* PROTO */
        return op_protocol(m);
    case 0x95: /* FRAME: a length that needs no attention */
        return op_skip(m, 8);
    case '(': /* MARK */
        return push_new(m, KIND_MARK, &v);
    case 'N': /* NONE */
        return push_new(m, KIND_NONE, &v);
    case 0x88: /* NEWTRUE */
        return push_bool(m, true);
    case 0x89: /* NEWFALSE */
        return push_bool(m, false);
    case 'K': /* BININT1 */
        return op_number(m, 1);
    case 'M': /* BININT2 */
        return op_number(m, 2);
    case 'J': /* BININT */
        return op_number(m, 4);
    case 0x8a: /* LONG1 */
        return op_long1(m);
    case 'G': /* BINFLOAT */
        st = op_skip(m, 8);
        return st == INK_OK ? push_new(m, KIND_OTHER, &v) : st;
    case 'X': /* BINUNICODE */
    case 'T': /* BINSTRING */
        return push_string(m, 4, KIND_STRING);
    case 0x8c: /* SHORT_BINUNICODE */
    case 'U':  /* SHORT_BINSTRING */
        return push_string(m, 1, KIND_STRING);
    case 0x8d: /* BINUNICODE8 */
        return push_string(m, 8, KIND_STRING);
    case 'C': /* SHORT_BINBYTES */
        return push_string(m, 1, KIND_OTHER);
    case 'B': /* BINBYTES */
        return push_string(m, 4, KIND_OTHER);
    case ']': /* EMPTY_LIST */
        return push_new(m, KIND_LIST, &v);
    case 'a': /* APPEND */
        return append_one(m);
    case 'e': /* APPENDS */
        return append_many(m);
    case ')': /* EMPTY_TUPLE */
        return push_tuple(m, NULL, 0);
    case 0x85: /* TUPLE1..TUPLE3 */
    case 0x86:
    case 0x87:
        return push_short_tuple(m, (size_t)op - 0x84);
    case 't': /* TUPLE */
        return op_tuple(m);
    case '}': /* EMPTY_DICT */
        return push_new(m, KIND_DICT, &v);
    case 's': /* SETITEM */
        return set_item(m);
    case 'u': /* SETITEMS */
        return set_items(m);
    case 'c': /* GLOBAL */
        return op_global(m);
    case 0x93: /* STACK_GLOBAL */
        return op_stack_global(m);
    case 'Q': /* BINPERSID */
        return op_persistent(m);
    case 'R': /* REDUCE */
        return op_reduce(m);
    case 'b': /* BUILD: attributes of a dictionary, such as _metadata */
        st = pop_only(m);
        return st == INK_OK ? top(m, &v) : st;
    case 'q': /* BINPUT */
        return op_memo(m, true, 1);
    case 'r': /* LONG_BINPUT */
        return op_memo(m, true, 4);
    case 0x94: /* MEMOIZE */
        return put_memo(m, m->n_memo);
    case 'h': /* BINGET */
        return op_memo(m, false, 1);
    case 'j': /* LONG_BINGET */
        return op_memo(m, false, 4);
    case '0': /* POP */
        return pop_only(m);
    case '1': /* POP_MARK */
        return op_pop_mark(m);
    case '2': /* DUP */
        st = top(m, &v);
        return st == INK_OK ? push(m, v) : st;
    default:
        return unknown_opcode(m, op);
    }
}

static enum ink_status report_tensors(struct machine *m, pickle_tensor_fn *each, void *arg)
{
    struct value *root = NULL;
    enum ink_status st = pop(m, &root);

    if (st != INK_OK)
        return st;
    if (root->kind != KIND_DICT)
        return refused(m, "its value is no dictionary");
    for (const struct entry *e = root->as.dict.first; e; e = e->next) {
        if (e->value->kind != KIND_TENSOR)
            continue;
        if (e->key->kind != KIND_STRING)
            return damaged(m, "a tensor without a name");
        struct pickle_tensor t = *e->value->as.tensor;

        t.name = e->key->as.s;
        if ((st = each(arg, &t, m->err)) != INK_OK)
            return st;
    }
    return INK_OK;
}

static enum ink_status report_strings(struct machine *m, pickle_string_fn *each, void *arg)
{
    struct value *root = NULL;
    enum ink_status st = pop(m, &root);

    if (st == INK_OK && root->kind != KIND_LIST)
        st = refused(m, "its value is no list");
    for (const struct entry *e = st == INK_OK ? root->as.dict.first : NULL; e; e = e->next) {
        if (e->value->kind != KIND_STRING)
            return refused(m, "an entry of the list is no text");
        if ((st = each(arg, e->value->as.s, m->err)) != INK_OK)
            return st;
    }
    return st;
}

static void machine_init(struct machine *m, struct ink_slice bytes, struct ink_err *err)
{
    const uint8_t *start = (const uint8_t *)bytes.ptr;

    *m = (struct machine){ .start = start, .at = start, .end = start + bytes.len, .err = err };
    m->arena = ink_arena_new();
    m->stack = ink_alloc(MAX_STACK * sizeof(struct value *));
}

static void machine_release(struct machine *m)
{
    free(m->stack);
    free(m->memo);
    ink_arena_free(m->arena);
}

/* Until STOP; the value is then on top of the stack. */
static enum ink_status run(struct machine *m, size_t *used)
{
    for (;;) {
        const uint8_t *p = NULL;
        enum ink_status st = take(m, 1, &p);

        if (st == INK_OK && *p == '.') {
            if (used)
                *used = (size_t)(m->at - m->start);
            return INK_OK;
        }
        if (st == INK_OK)
            st = step(m, *p);
        if (st != INK_OK)
            return st;
    }
}

enum ink_status pickle_read(struct ink_slice bytes, pickle_tensor_fn *each, void *arg, size_t *used,
                            struct ink_err *err)
{
    struct machine m;

    machine_init(&m, bytes, err);
    enum ink_status st = run(&m, used);

    if (st == INK_OK)
        st = report_tensors(&m, each, arg);
    machine_release(&m);
    return st;
}

enum ink_status pickle_read_strings(struct ink_slice bytes, pickle_string_fn *each, void *arg,
                                    size_t *used, struct ink_err *err)
{
    struct machine m;

    machine_init(&m, bytes, err);
    enum ink_status st = run(&m, used);

    if (st == INK_OK)
        st = report_strings(&m, each, arg);
    machine_release(&m);
    return st;
}
