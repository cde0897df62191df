/* What a token takes, from what is held. */
#include "launcher/plan_parts.h"

/* Measured (docs/benchmarks.md): a frame from one process to the next, and the start and end of a process. */
#define HOP_S   60e-6
#define START_S 2.5e-3

const char *brig_plan_regime_name(enum brig_plan_regime regime)
{
    static const char *const names[] = {"memory-bound", "compute-bound", "disk-bound"};
    return names[regime];
}

uint64_t brig_plan_read_bytes(const struct brig_plan *p)
{
    return p->token_bytes - p->held_bytes;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Computing at so many bytes of weights a second while the disk is read: each as fast as it is beside the
 * other until the shorter one is done, then the other alone. */
static double side_by_side(const struct brig_plan_speed *v, double weights, double weights_s, double read)
{
    double alone = weights > 0 ? weights / weights_s : 0, disk = v->disk_bytes_s;
    if (v->beside_memory_bytes_s <= 0 || v->beside_disk_bytes_s <= 0 || alone <= 0)
        return disk > 0 && read / disk > weights_s ? read / disk : weights_s;
    double with = smaller(v->beside_memory_bytes_s, alone), disk_with = smaller(v->beside_disk_bytes_s, disk);
    double t = smaller(weights / with, read / disk_with);
    return t + (weights - with * t) / alone + (read - disk_with * t) / disk;
}

void brig_plan_predict(struct brig_plan *p, const struct brig_plan_line *l, unsigned hops, unsigned starts)
{
    const struct brig_plan_speed *v = &p->speed;
    double threads = v->threads > 0 ? v->threads : 1;
    double memory = v->memory_bytes_s > 0 ? (double)p->token_bytes / v->memory_bytes_s : 0;
    double disk = v->disk_bytes_s > 0 ? (double)brig_plan_read_bytes(p) / v->disk_bytes_s : 0;
    double cores = l->core_s / threads;
    bool unknown = v->memory_bytes_s <= 0 || (v->disk_bytes_s <= 0 && brig_plan_read_bytes(p) > 0);
    double most = memory;
    p->regime = BRIG_PLAN_MEMORY_BOUND;
    if (cores > most) {
        most = cores;
        p->regime = BRIG_PLAN_COMPUTE_BOUND;
    }
    if (disk > most || (v->disk_bytes_s <= 0 && brig_plan_read_bytes(p) > 0)) {
        most = disk;
        p->regime = BRIG_PLAN_DISK_BOUND;
    }
    if (!unknown && brig_plan_read_bytes(p) > 0)
        most = side_by_side(v, (double)p->token_bytes, memory > cores ? memory : cores,
                            (double)brig_plan_read_bytes(p));
    /* Where one process is at work and none beside it, what it maps or locks is read first and computed then.
     */
    if (starts > 0 && p->n_ahead == 0 && p->hold != BRIG_HOLD_STREAM)
        most = disk + (memory > cores ? memory : cores);
    p->seconds_a_token = unknown ? 0 : most + hops * HOP_S + starts * START_S;
}
