/* Architecture names and who computes them. */
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

static const struct arch_ops *const archs[] = {
    &t5_ops,
};

const struct arch_ops *arch_find(const char *name, char *known, size_t known_size)
{
    size_t used = 0;

    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
        if (strcmp(archs[i]->name, name) == 0)
            return archs[i];
    for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]) && used < known_size; i++)
        used += (size_t)snprintf(known + used, known_size - used, "%s%s", i ? ", " : "",
                                 archs[i]->name);
    return NULL;
}
