#ifndef UNIT_H
#define UNIT_H

/* What a cmocka test includes, in the order that cmocka asks for. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#endif
