/* brigade bench --report: a study (driver/study/study.h) from settings. */
#ifndef BRIG_DRIVER_FRONT_BENCH_REPORT_H
#define BRIG_DRIVER_FRONT_BENCH_REPORT_H

#include "driver/front/settings.h"
#include "proto/base/err.h"

/* Runs it, prints the table, writes the folder. */
int brig_bench_report(const struct brig_settings *s, struct brig_fail *fail);

#endif
