/* Text to numbers. */
#include "proto/base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

bool brig_parse_u64(const char *s, uint64_t *ret)
{
    if (*s < '0' || *s > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *ret = v;
    return true;
}

bool brig_parse_f64(const char *s, double *ret)
{
    if (*s == '\0' || *s == ' ')
        return false;
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (errno == ERANGE || *end != '\0' || !isfinite(v))
        return false;
    *ret = v;
    return true;
}
