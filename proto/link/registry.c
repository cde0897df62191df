/* The table of links. */
#include "proto/link/parts.h"

#include <stdio.h>
#include <string.h>

#define BRIG_LINK(object) extern const struct brig_link object;
#include "proto/link/link.def"
#undef BRIG_LINK

static const struct brig_link *const rows[] = {
#define BRIG_LINK(object) &object,
#include "proto/link/link.def"
#undef BRIG_LINK
};

const struct brig_link *brig_link_at(unsigned i)
{
    return i < sizeof rows / sizeof rows[0] ? rows[i] : NULL;
}

const struct brig_link *brig_link_for(const char *url, struct brig_fail *fail)
{
    struct brig_url u;
    if (brig_url_parse(&u, url, fail) < 0)
        return NULL;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i]->speaks(url))
            return rows[i];
    brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s: no link carries frames to such an address", url);
    return NULL;
}

const struct brig_link *brig_link_by_name(const char *name)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

const struct brig_link *brig_link_default(void)
{
    return &brig_link_shm;
}

const struct brig_link *brig_link_plain(void)
{
    return &brig_link_nng;
}

void brig_link_adopt(const struct brig_link *link, char url[BRIG_URL_MAX])
{
    char own[BRIG_URL_MAX];
    int n = snprintf(own, sizeof own, "%s%s", link->prefix, url);
    if (n > 0 && (size_t)n < sizeof own && link->speaks(own))
        memcpy(url, own, sizeof own);
}

void brig_link_fini(void)
{
    brig_link_forget();
    nng_fini();
}
