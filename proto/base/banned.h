/* Calls that this code base does without; included by the compiler's command line in every file. */
#ifndef BRIG_PROTO_BASE_BANNED_H
#define BRIG_PROTO_BASE_BANNED_H

/* The headers that declare them come first: poisoning hits every later mention. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat sprintf vsprintf gets strtok atoi atol atof

#endif
