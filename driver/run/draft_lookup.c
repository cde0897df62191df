/*
 * Prompt lookup (Saxena 2023): where the newest tokens have stood before, what followed them then may follow
 * again. It holds where an answer repeats its prompt or itself: quotations, code that is edited, summaries,
 * lists. No weights, and a walk back through the ids for each frame, which takes microseconds.
 */
#include "driver/run/draft.h"
#include "proto/base/mem.h"

/* Tokens that are compared: a longer match says no more. Its length is the class. */
#define LONGEST (BRIG_DRAFT_CLASSES - 1)

struct lookup {
    size_t from; /* where the tokens stand that followed, as look found it */
};

static int open_lookup(void **ret_state, const struct brig_draft_opts *o, struct brig_fail *fail)
{
    struct lookup *l = brig_alloc(1, sizeof *l);
    (void)o;
    if (l == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for prompt lookup");
    *ret_state = l;
    return 0;
}

static void close_lookup(void *state)
{
    brig_free(state);
}

/* How many tokens before `end` are those at the end of the sequence, LONGEST at most. */
static unsigned matches(const struct brig_draft_seq *seq, size_t end)
{
    unsigned len = 0;
    while (len < LONGEST && len < end && seq->ids[end - 1 - len] == seq->ids[seq->n - 1 - len])
        len++;
    return len;
}

/* The longest match, of those the newest. */
static unsigned look(void *state, const struct brig_draft_seq *seq, uint32_t *most)
{
    struct lookup *l = state;
    unsigned best = 0;
    for (size_t end = seq->n - 1; end > 0 && best < LONGEST; end--) {
        if (seq->ids[end - 1] != seq->ids[seq->n - 1])
            continue;
        unsigned len = matches(seq, end);
        if (len > best) {
            best = len;
            l->from = end;
        }
    }
    *most = best > 0 ? UINT32_MAX : 0;
    return best;
}

/* Where the match overlaps the end, what follows is the draft itself: a text that goes round in circles. */
static int propose(void *state, const struct brig_draft_seq *seq, uint32_t most, uint32_t *ids, uint32_t *n,
                   struct brig_fail *fail)
{
    const struct lookup *l = state;
    (void)fail;
    for (uint32_t i = 0; i < most; i++)
        ids[i] = l->from + i < seq->n ? seq->ids[l->from + i] : ids[l->from + i - seq->n];
    *n = most;
    return 0;
}

const struct brig_draft brig_draft_lookup = {
    .name = "lookup",
    .help = "what followed the newest tokens when they stood in the text before (--lookup)",
    .open = open_lookup,
    .close = close_lookup,
    .look = look,
    .propose = propose,
};
