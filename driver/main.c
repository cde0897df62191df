/* brigade: the program that people type. Finds the verb, parses, runs, prints at most one line of failure. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "driver/front/interrupt.h"
#include "driver/front/option.h"
#include "driver/front/verb.h"
#include "proto/base/clock.h"
#include "proto/base/version.h"
#include "proto/link/link.h"
#include "proto/wire/frame.h"

static int complain(const char *verb, const struct brig_fail *fail)
{
    if (fail->text[0] != '\0')
        fprintf(stderr, "brigade%s%s: %s\n", verb != NULL ? " " : "", verb != NULL ? verb : "", fail->text);
    return brig_err_exit(fail->code);
}

static int unknown_verb(const char *name)
{
    struct brig_fail fail;
    const char *nearest = brig_verb_nearest(name);
    if (nearest != NULL)
        brig_fail_set(&fail, BRIG_EUSAGE, "unknown verb %s: did you mean %s? (`brigade help` has all)", name,
                      nearest);
    else
        brig_fail_set(&fail, BRIG_EUSAGE, "unknown verb %s (`brigade help` has all)", name);
    return complain(NULL, &fail);
}

/* argc and argv: the whole command line. */
static int run_verb(const struct brig_verb *v, unsigned id, int argc, char **argv)
{
    static struct brig_enclosure enclosure;
    struct brig_settings s;
    struct brig_fail fail = {.code = BRIG_EINTERNAL};
    brig_settings_init(&s);
    s.enclosure = &enclosure;
    s.argv = argv;
    if (brig_option_parse(&s, id, argc - 1, argv + 1, &fail) < 0)
        return complain(v->name, &fail);
    if (s.help) {
        brig_verb_print_one(stdout, id);
        return 0;
    }
    brig_interrupt_install();
    int r = v->run(&s, &fail);
    brig_enclosure_leave(&enclosure);
    int signal_number = *brig_interrupt_flag();
    if (r == -BRIG_ECANCELLED && signal_number != 0) {
        fputs("brigade: cancelled\n", stderr);
        return 128 + signal_number; /* what shells say of a program that a signal ended */
    }
    if (r < 0)
        return complain(v->name, &fail);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned id;
    brig_clock_process_start_ns();
    /* Characters for line editing; numbers stay as C has them. */
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    if (argc < 2) {
        brig_verb_print_all(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("brigade " BRIG_VERSION " (protocol %u, arithmetic %u)\n", BRIG_PROTO_VERSION,
               BRIG_ARITHMETIC_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        brig_verb_print_all(stdout);
        return 0;
    }
    const struct brig_verb *v = brig_verb_by_name(argv[1], &id);
    int code = v == NULL ? unknown_verb(argv[1]) : run_verb(v, id, argc, argv);
    if (fflush(stdout) != 0 && code == 0)
        code = 1;
    brig_link_fini();
    return code;
}
