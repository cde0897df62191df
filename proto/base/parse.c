/* Text to numbers. */
#include "proto/base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

#define SIZE_MOST ((uint64_t)1 << 50) /* far below 2^53: the product is exact, or cut to a whole number */

bool brig_parse_size(const char *s, uint64_t *ret)
{
    static const char units[] = "KMGT";
    char number[32];
    double v, unit = 1;
    size_t n = strlen(s);
    const char *u = n > 0 ? strchr(units, s[n - 1] >= 'a' ? s[n - 1] - 'a' + 'A' : s[n - 1]) : NULL;
    if (u != NULL) {
        unit = (double)((uint64_t)1 << (10 * (u - units + 1)));
        n--;
    }
    if (n == 0 || n >= sizeof number || strspn(s, "0123456789.") < n)
        return false;
    memcpy(number, s, n);
    number[n] = '\0';
    if (!brig_parse_f64(number, &v) || v * unit > (double)SIZE_MOST)
        return false;
    *ret = (uint64_t)(v * unit);
    return true;
}
