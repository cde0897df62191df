/* A file that appears whole or not at all. */
#include "proto/base/outfile.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/buf.h"
#include "proto/base/mem.h"

static void clear(struct brig_outfile *o)
{
    brig_free(o->path);
    brig_free(o->temp);
    memset(o, 0, sizeof *o);
}

static char *temp_name(const char *path)
{
    static atomic_uint counter;
    struct brig_buf b = {0};
    char *s = NULL;
    if (brig_buf_printf(&b, "%s.tmp-%ld-%u", path, (long)getpid(), atomic_fetch_add(&counter, 1)) == 0)
        s = brig_strndup(b.data, b.len);
    brig_buf_release(&b);
    return s;
}

int brig_outfile_open(struct brig_outfile *o, const char *path, struct brig_fail *fail)
{
    struct stat st;
    memset(o, 0, sizeof *o);
    o->path = brig_strndup(path, strlen(path));
    if (o->path == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", path);
    int fd;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        o->temp = temp_name(path);
        fd = o->temp == NULL ? -1 : open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    o->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (o->stream == NULL) {
        int r = brig_fail_errno(fail, BRIG_EIO, "%s: cannot be written", path);
        if (fd >= 0)
            close(fd);
        clear(o);
        return r;
    }
    return 0;
}

int brig_outfile_commit(struct brig_outfile *o, struct brig_fail *fail)
{
    int bad = ferror(o->stream);
    bad |= fclose(o->stream);
    o->stream = NULL;
    if (!bad && o->temp != NULL)
        bad = rename(o->temp, o->path);
    int r = bad ? brig_fail_errno(fail, BRIG_EIO, "%s: could not be written whole", o->path) : 0;
    if (bad && o->temp != NULL)
        unlink(o->temp);
    clear(o);
    return r;
}

void brig_outfile_abandon(struct brig_outfile *o)
{
    if (o->stream != NULL)
        fclose(o->stream);
    if (o->temp != NULL)
        unlink(o->temp);
    clear(o);
}
