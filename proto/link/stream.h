/*
 * What both ends of a byte stream (the link `stream`) know: shared by stream.c, which sends, and
 * stream_taker.c, which receives.
 *
 * A connection begins with the sender's greeting and the receiver's answer; then frames follow, one way, each
 * behind its length.
 */
#ifndef BRIG_PROTO_LINK_STREAM_H
#define BRIG_PROTO_LINK_STREAM_H

#include "proto/link/parts.h"

#define BRIG_STREAM_HEAD_BYTES  8u /* the length of a frame, little endian */
#define BRIG_STREAM_GREET_BYTES 16u

/* They differ, for a sender at a port of this machine where nobody listens can come to be connected to
 * itself. */
#define BRIG_STREAM_GREETING "brigade sender1"
#define BRIG_STREAM_ANSWER   "brigade taker 1"
_Static_assert(sizeof BRIG_STREAM_GREETING == BRIG_STREAM_GREET_BYTES, "with its zero");
_Static_assert(sizeof BRIG_STREAM_ANSWER == BRIG_STREAM_GREET_BYTES, "with its zero");

/* False for a peer at a local address that belongs to another user. */
bool brig_stream_user_ok(nng_stream *s, bool local);
/* Until then, for NNG's time-outs: at least 1, for 0 would be no try at all. */
nng_duration brig_stream_ms(uint64_t until_ns);

/* stream_taker.c: as the contracts of brig_link. */
int brig_stream_listen(struct brig_rx **ret, const char *url, uint64_t max_bytes, char real_url[BRIG_URL_MAX],
                       struct brig_fail *fail);
int brig_stream_recv(struct brig_rx *rx, struct brig_msg **ret, uint32_t timeout_ms, struct brig_fail *fail);
void brig_stream_rx_close(struct brig_rx *rx);

#endif
