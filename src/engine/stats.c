/* Classes of the rows histogram: powers of two. */
#include "engine/stats.h"

int ink_stats_rows_class(int n_rows)
{
    int i = 0;

    while (i < INK_ROWS_CLASSES - 1 && n_rows > 1 << i)
        i++;
    return i;
}

int ink_stats_rows_bound(int i)
{
    return i < INK_ROWS_CLASSES - 1 ? 1 << i : -1;
}
