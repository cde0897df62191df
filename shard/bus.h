/*
 * SIGBUS: a page of mapped weights cannot be brought, since its file became shorter or its disk failed.
 * Nothing can be computed any more; what is left to do is one line that names the file, and an end.
 */
#ifndef BRIG_SHARD_BUS_H
#define BRIG_SHARD_BUS_H

/* Before anything is mapped and before other threads exist. */
void brig_bus_install(void);

/* Where the line goes: the launcher's pipe (borrowed; open until the next call), as "error TEXT"; the
 * launcher knows which shard this is. -1, or when that fails: standard error. */
void brig_bus_tell(int fd);

/* What this shard holds ("layers 0:5, head"; must stay valid), for the line on standard error. */
void brig_bus_name(const char *what);

#endif
