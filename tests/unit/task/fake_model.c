/* The engine room's model without weights serves here as well. */
#include "engine/fake_model.c"
