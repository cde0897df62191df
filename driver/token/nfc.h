/* Unicode's canonical composition (NFC), in time linear in the text whatever the text is. */
#ifndef BRIG_DRIVER_TOKEN_NFC_H
#define BRIG_DRIVER_TOKEN_NFC_H

#include <stddef.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"

/* Well-formed UTF-8 in. *ret_text is text itself when that is certainly in NFC, else the contents of *out,
 * which is cleared first. */
int brig_nfc(const char *text, size_t n, struct brig_buf *out, const char **ret_text, size_t *ret_n,
             struct brig_fail *fail);

#endif
