/* Text to numbers. */
#include "proto/base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/size.h"

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

bool brig_parse_size(const char *s, uint64_t *ret)
{
    static const char units[] = "KMGT";
    char digits[24];
    uint64_t v, unit = 1;
    size_t n = strlen(s);
    const char *u = n > 0 ? strchr(units, s[n - 1]) : NULL;
    if (u != NULL) {
        unit = (uint64_t)1 << (10 * (u - units + 1));
        n--;
    }
    if (n >= sizeof digits)
        return false;
    memcpy(digits, s, n);
    digits[n] = '\0';
    return brig_parse_u64(digits, &v) && brig_mul_u64(v, unit, ret);
}
