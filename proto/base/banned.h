/* Calls that this code base does without; included by the compiler's command line in every file. */
#ifndef BRIG_PROTO_BASE_BANNED_H
#define BRIG_PROTO_BASE_BANNED_H

#pragma GCC poison strcpy strcat sprintf vsprintf gets strtok atoi atol atof alloca

#endif
