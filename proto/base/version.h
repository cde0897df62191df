/* The version that all programs of one build state. */
#ifndef BRIG_PROTO_BASE_VERSION_H
#define BRIG_PROTO_BASE_VERSION_H

#define BRIG_VERSION "0.1.0"

/* Of docs/arithmetic.md; a part of the numeric class. */
#define BRIG_ARITHMETIC_VERSION 2u

#endif
