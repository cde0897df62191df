/* Unicode's normal forms, in time linear in the text whatever the text is. */
#ifndef BRIG_DRIVER_TOKEN_NFC_H
#define BRIG_DRIVER_TOKEN_NFC_H

#include <stddef.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"

enum brig_form {
    BRIG_FORM_NFC,
    BRIG_FORM_NFD,
    BRIG_FORM_NFKC,
    BRIG_FORM_NFKD,
};

/* Well-formed UTF-8 in. *ret_text is text itself when that is certainly in this form, else the contents of
 * *out, which is cleared first. */
int brig_normal_form(enum brig_form form, const char *text, size_t n, struct brig_buf *out,
                     const char **ret_text, size_t *ret_n, struct brig_fail *fail);
/* The same for NFC. */
int brig_nfc(const char *text, size_t n, struct brig_buf *out, const char **ret_text, size_t *ret_n,
             struct brig_fail *fail);

#endif
