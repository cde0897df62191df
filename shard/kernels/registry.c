/* The table of kernels (kernel.def) and the choice among them, made once by each shard at its start. */
#include "shard/kernels/kernel.h"

#include <stdlib.h>

#define BRIG_KERNEL(object) extern const struct brig_kernel object;
#include "shard/kernels/kernel.def"
#undef BRIG_KERNEL

static const struct brig_kernel *const rows[] = {
#define BRIG_KERNEL(object) &object,
#include "shard/kernels/kernel.def"
#undef BRIG_KERNEL
};

const struct brig_kernel *brig_kernel_at(unsigned i)
{
    return i < sizeof rows / sizeof rows[0] ? rows[i] : NULL;
}

const struct brig_kernel *brig_kernel_by_name(const char *name)
{
    for (unsigned i = 0; brig_kernel_at(i) != NULL; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

const struct brig_kernel *brig_kernel_choose(void)
{
    const char *name = getenv("BRIGADE_KERNEL");
    if (name != NULL && name[0] != '\0') {
        const struct brig_kernel *k = brig_kernel_by_name(name);
        return k != NULL && k->usable() ? k : NULL;
    }
    for (unsigned i = 0; brig_kernel_at(i) != NULL; i++)
        if (rows[i]->usable())
            return rows[i];
    return NULL;
}
