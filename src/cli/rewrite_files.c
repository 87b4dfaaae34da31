/*
 * From file to file, resumably.
 *
 * A run is at most three passes. The first one compares an output that is there with the input and finds where it ends;
 * it computes nothing. With --retry-failed, the second copies that output beside itself, computing failed rows again,
 * and takes its place when complete. The last one appends the rows that are missing.
 */
#define _DEFAULT_SOURCE /* getentropy */
#include "cli/rewrite_files.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/rewrite_stream.h"
#include "cli/row_cells.h"
#include "cli/row_sink.h"
#include "cli/row_source.h"
#include "task/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OLD_ROW_MAX = 128 * 1024 * 1024, /* a row of ours, when it is read back */
    COPY_BYTES = 256 * 1024,
};
static const uint64_t SEED_MAX = ((uint64_t)1 << 53) - 1;

struct rewrite_files {
    const struct rewrite_files_options *options;
    struct ink_rewrite_call *call;
    struct row_format format; /* of the output */
    struct row_source *source;
    struct row_sink sink;
    struct ink_buf row;       /* under construction */
    struct rewrite_item held; /* read while the end of the output was looked for */
    bool is_held;

    /* What was in the output before. */
    int64_t end; /* bytes up to the end of the last whole row; 0: not even the column names */
    int64_t n_before, n_failed_before;
    bool was_there, was_cut; /* there was one; its last row was cut off */
    uint64_t seed_before;    /* of the first row, and so of the whole; with n_before > 0 */

    /* While failed rows are tried again. */
    struct line_reader old;
    int64_t old_done; /* bytes of the old output whose rows are in the new one */
    struct ink_err failed;

    struct progress progress;
};

/* A row on its way, behind item.keep. */
struct kept {
    bool crlf;
    bool as_it_is;   /* `bytes` is the whole row, line end included; else its head */
    int64_t old_end; /* where its row ends in the old output, or 0 */
    size_t len;
    char bytes[];
};

static struct kept *keep(struct ink_slice bytes, bool crlf)
{
    struct kept *k = ink_alloc(sizeof(*k) + bytes.len);

    *k = (struct kept){ .crlf = crlf, .len = bytes.len };
    if (bytes.len > 0)
        memcpy(k->bytes, bytes.ptr, bytes.len);
    return k;
}

static void fill_item(struct rewrite_item *item, const struct row *row)
{
    item->index = row->index;
    item->object = row->object;
    item->err = row->err;
    item->keep = keep(row->head, row->crlf);
}

/* --- an output that is there -------------------------------------------------------------------- */

static enum ink_status is_other(const struct rewrite_files *job, int64_t index, struct ink_err *err)
{
    return ink_err_set(
        err, INK_INVALID,
        "%s: row %lld is not what row %lld of %s gives with -n %d: another input, or other "
        "options; take another --output, or --force to begin anew",
        job->options->output, (long long)index + 1, (long long)index + 1, job->options->input,
        job->call->rq.n);
}

/* Whether a row of the output, without its '\n', is that of `row`. */
static bool belongs(struct rewrite_files *job, struct ink_slice old, const struct row *row,
                    bool *failed)
{
    struct ink_slice head = row->head;
    uint64_t seed;

    if (row->crlf) {
        if (old.len == 0 || old.ptr[old.len - 1] != '\r')
            return false;
        old.len--;
    }
    if (old.len < head.len || (head.len > 0 && memcmp(old.ptr, head.ptr, head.len) != 0) ||
        !row_cells_read((struct ink_slice){ old.ptr + head.len, old.len - head.len }, &job->format,
                        job->call->rq.n, &seed, failed))
        return false;
    if (row->index == 0)
        job->seed_before = seed;
    return seed == ink_batch_seed(job->seed_before, (uint64_t)row->index);
}

/* Whether the beginning of a row that was cut off can be one of `row`. A lost page may have left zeros at its end. */
static bool may_belong(struct ink_slice cut, const struct row *row)
{
    size_t len;

    while (cut.len > 0 && cut.ptr[cut.len - 1] == '\0')
        cut.len--;
    len = cut.len < row->head.len ? cut.len : row->head.len;
    return len == 0 || memcmp(cut.ptr, row->head.ptr, len) == 0;
}

static enum line_state old_next(struct rewrite_files *job, struct ink_slice *line)
{
    return lines_wait(&job->old, line);
}

static enum ink_status scan_names(struct rewrite_files *job, bool *cut, struct ink_err *err)
{
    struct ink_slice want = row_source_names(job->source), line;
    enum line_state state;

    if (want.len == 0)
        return INK_OK;
    state = old_next(job, &line);
    if (state == LINE_READY && !job->old.whole && line.len < want.len &&
        memcmp(line.ptr, want.ptr, line.len) == 0) {
        *cut = true;
        return INK_OK;
    }
    if (state == LINE_READY && line.len + 1 == want.len &&
        memcmp(line.ptr, want.ptr, line.len) == 0) {
        job->end = job->old.consumed;
        return INK_OK;
    }
    return ink_err_set(
        err, INK_INVALID,
        "%s: its column names are not those of %s followed by rewrite_1 to rewrite_%d, "
        "rewrite_seed and rewrite_error; take another --output, or --force to begin anew",
        job->options->output, job->options->input, job->call->rq.n);
}

/* One row of the output against its row of the input; *more tells whether there may be another. */
static enum ink_status scan_row(struct rewrite_files *job, bool *cut, bool *more,
                                struct ink_err *err)
{
    struct ink_slice line = { 0 };
    struct row row = { 0 };
    bool failed = false, whole, good;
    enum line_state state = old_next(job, &line);

    *more = false;
    if (state == LINE_END)
        return INK_OK;
    if (state == LINE_TOO_LONG)
        return ink_err_set(err, INK_INVALID, "%s: row %lld is longer than any of ours",
                           job->options->output, (long long)job->n_before + 1);
    if (row_source_wait(job->source, &row) == LINE_END) {
        if (row_source_error(job->source, err) != INK_OK)
            return err->code;
        return ink_err_set(err, INK_INVALID,
                           "%s: has more rows than %s, which ends after %lld; is it the output of "
                           "another input?",
                           job->options->output, job->options->input, (long long)job->n_before);
    }
    whole = job->old.whole;
    good = whole ? belongs(job, line, &row, &failed) : may_belong(line, &row);
    if (good && !whole) {
        fill_item(&job->held, &row);
        job->is_held = true;
        *cut = true;
        return INK_OK;
    }
    json_decref(row.object);
    if (!good)
        return is_other(job, row.index, err);
    job->n_before++;
    job->n_failed_before += failed;
    job->end = job->old.consumed;
    *more = true;
    return INK_OK;
}

static void drop_held(struct rewrite_files *job)
{
    if (job->is_held) {
        json_decref(job->held.object);
        free(job->held.keep);
    }
    job->is_held = false;
}

/* Begins with the input anew, to go through it beside the output once more. */
static enum ink_status reopen_source(struct rewrite_files *job, struct ink_err *err)
{
    const struct rewrite_files_options *o = job->options;

    if (!S_ISREG(row_source_stat(job->source)->st_mode))
        return ink_err_set(err, INK_INVALID,
                           "%s: --retry-failed reads the input twice, which only a file allows",
                           o->input);
    drop_held(job);
    row_source_close(job->source);
    job->source = NULL;
    return row_source_open(o->input, o->column, &job->format, job->call->rq.n, &job->source, err);
}

static enum ink_status rewind_old(struct rewrite_files *job, struct ink_err *err)
{
    if (lseek(job->sink.fd, 0, SEEK_SET) < 0)
        return ink_err_set(err, INK_IO, "%s: %s", job->options->output, strerror(errno));
    lines_release(&job->old);
    lines_init_records(&job->old, job->sink.fd, OLD_ROW_MAX, job->format.delimiter);
    return INK_OK;
}

/* Finds what of the output is done. */
static enum ink_status scan(struct rewrite_files *job, struct ink_err *err)
{
    bool cut = false, more = true;
    enum ink_status st = rewind_old(job, err);

    if (st == INK_OK)
        st = scan_names(job, &cut, err);
    while (st == INK_OK && more && !cut)
        st = scan_row(job, &cut, &more, err);
    if (st == INK_OK && job->old.failed)
        st = ink_err_set(err, INK_IO, "%s: %s", job->options->output, strerror(job->old.failed));
    if (st != INK_OK)
        return st;

    job->was_there = true;
    job->was_cut = cut;
    return job->options->retry_failed && job->n_failed_before > 0 ? reopen_source(job, err)
                                                                  : INK_OK;
}

/* --- opening ------------------------------------------------------------------------------------ */

static enum ink_status open_output(struct rewrite_files *job, struct ink_err *err)
{
    const struct rewrite_files_options *o = job->options;
    const struct stat *in = row_source_stat(job->source);
    struct stat sb;
    bool special = stat(o->output, &sb) == 0 && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode);
    int fd = open(o->output, (special ? O_WRONLY : O_RDWR | O_CREAT) | O_CLOEXEC, 0666);

    if (fd < 0 || fstat(fd, &sb) != 0)
        return ink_err_set(err, INK_IO, "%s: cannot write: %s", o->output, strerror(errno));
    row_sink_init(&job->sink, o->output, fd, 0);
    if (sb.st_dev == in->st_dev && sb.st_ino == in->st_ino)
        return ink_err_set(err, INK_INVALID, "%s: is the input; take another --output", o->output);
    if (special)
        return INK_OK;
    if (row_sink_lock(o->output, fd, err) != INK_OK)
        return err->code;
    if (sb.st_size == 0 || o->force)
        return INK_OK;
    if (!o->resume)
        return ink_err_set(err, INK_INVALID,
                           "%s: exists already; --resume goes on with it, --force begins anew",
                           o->output);
    return scan(job, err);
}

static enum ink_status choose_seed(struct rewrite_files *job, struct ink_err *err)
{
    struct ink_rewrite_request *rq = &job->call->rq;

    if (job->n_before > 0) {
        if (rq->has_seed && rq->seed != job->seed_before)
            return ink_err_set(
                err, INK_INVALID,
                "%s: was begun with --seed %llu, not %llu; leave --seed out to go on "
                "with it",
                job->options->output, (unsigned long long)job->seed_before,
                (unsigned long long)rq->seed);
        rq->seed = job->seed_before;
    } else if (!rq->has_seed) {
        if (getentropy(&rq->seed, sizeof(rq->seed)) != 0)
            rq->seed = (uint64_t)ink_clock_ns() * 0x9e3779b97f4a7c15u;
        rq->seed &= SEED_MAX;
    }
    rq->has_seed = true;
    return INK_OK;
}

enum ink_status rewrite_files_open(const struct rewrite_files_options *options,
                                   struct ink_rewrite_call *call, struct rewrite_files **out,
                                   struct ink_err *err)
{
    struct rewrite_files *job = ink_zalloc(sizeof(*job));
    enum ink_status st = INK_OK;

    job->options = options;
    job->call = call;
    job->sink.fd = -1;
    ink_buf_init(&job->sink.pending, 1);
    ink_buf_init(&job->old.buf, 1);
    ink_buf_init(&job->row, OLD_ROW_MAX);
    if (!row_format_of(options->output, &job->format) || job->format.form == ROW_TEXT)
        st = ink_err_set(
            err, INK_INVALID,
            "%s: the name says no format; --output takes .csv, .tsv, .jsonl and .ndjson",
            options->output);
    else if (call->rq.details && job->format.form == ROW_TABLE)
        st = ink_err_set(err, INK_INVALID,
                         "%s: a table has no place for --details; name the output .jsonl",
                         options->output);
    if (st == INK_OK)
        st = row_source_open(options->input, options->column, &job->format, call->rq.n,
                             &job->source, err);
    if (st == INK_OK)
        st = open_output(job, err);
    if (st == INK_OK)
        st = choose_seed(job, err);
    if (st != INK_OK) {
        rewrite_files_close(job);
        return st;
    }
    *out = job;
    return INK_OK;
}

void rewrite_files_close(struct rewrite_files *job)
{
    if (!job)
        return;
    drop_held(job);
    row_source_close(job->source);
    row_sink_release(&job->sink);
    lines_release(&job->old);
    ink_buf_release(&job->row);
    free(job);
}

/* --- the stream's ends -------------------------------------------------------------------------- */

static enum line_state next(void *arg, struct rewrite_item *item)
{
    struct rewrite_files *job = arg;
    struct row row;
    enum line_state state;

    if (job->is_held) {
        *item = job->held;
        job->is_held = false;
        return LINE_READY;
    }
    state = row_source_next(job->source, &row);
    if (state == LINE_READY)
        fill_item(item, &row);
    return state;
}

/* Rows of the old output in their order: those that failed are computed, the others pass through. */
static enum line_state next_old(void *arg, struct rewrite_item *item)
{
    struct rewrite_files *job = arg;
    struct ink_slice line;
    struct row row;
    struct kept *kept;
    bool failed = false;

    if (job->old.consumed >= job->end)
        return LINE_END;
    if (old_next(job, &line) != LINE_READY || row_source_wait(job->source, &row) != LINE_READY) {
        (void)ink_err_set(&job->failed, INK_IO, "%s: changed while it was read",
                          job->options->input);
        return LINE_END;
    }
    if (!belongs(job, line, &row, &failed)) {
        json_decref(row.object);
        (void)is_other(job, row.index, &job->failed);
        return LINE_END;
    }
    if (failed) {
        fill_item(item, &row);
    } else {
        json_decref(row.object);
        item->index = row.index;
        item->keep = keep((struct ink_slice){ line.ptr, line.len + 1 }, row.crlf);
        ((struct kept *)item->keep)->as_it_is = true;
    }
    kept = item->keep;
    kept->old_end = job->old.consumed;
    return LINE_READY;
}

static void fill(void *arg)
{
    struct rewrite_files *job = arg;

    row_source_fill(job->source);
}

static bool put(void *arg, const struct rewrite_item *item, json_t *answer)
{
    struct rewrite_files *job = arg;
    const struct kept *kept = item->keep;
    uint64_t seed = ink_batch_seed(job->call->rq.seed, (uint64_t)item->index);
    enum ink_status st;

    ink_buf_clear(&job->row);
    st = ink_buf_add(&job->row, kept->bytes, kept->len);
    if (st == INK_OK && !kept->as_it_is)
        st = row_cells_add(&job->row, &job->format, job->call->rq.n, seed, answer);
    if (st == INK_OK && !kept->as_it_is)
        st = ink_buf_adds(&job->row, kept->crlf ? "\r\n" : "\n");
    json_decref(answer);
    if (st != INK_OK) {
        job->sink.failed = ENOMEM;
        return false;
    }
    if (!row_sink_add(&job->sink, job->row.ptr, job->row.len) || !row_sink_end(&job->sink))
        return false;
    if (kept->old_end > 0)
        job->old_done = kept->old_end;
    return true;
}

static bool flush(void *arg)
{
    struct rewrite_files *job = arg;

    return row_sink_flush(&job->sink, false);
}

static void show(struct rewrite_files *job, int64_t done, int64_t total, int64_t n_failed)
{
    char what[96];
    int used = total > 0 ? snprintf(what, sizeof(what), "%lld of about %lld rows", (long long)done,
                                    (long long)total)
                         : snprintf(what, sizeof(what), "%lld rows", (long long)done);

    if (n_failed > 0)
        snprintf(what + used, sizeof(what) - (size_t)used, ", %lld failed", (long long)n_failed);
    progress_update(&job->progress, done, total, what);
}

static void show_progress(void *arg, const struct rewrite_counts *counts)
{
    struct rewrite_files *job = arg;

    show(job, job->n_before + counts->n_put, row_source_estimate(job->source),
         job->n_failed_before + counts->n_failed);
}

static void show_retries(void *arg, const struct rewrite_counts *counts)
{
    struct rewrite_files *job = arg;

    show(job, counts->n_put, job->n_before, counts->n_failed);
}

/* --- failed rows again -------------------------------------------------------------------------- */

/* The rows of the old output that did not come through, as they are. */
static bool copy_rest(struct rewrite_files *job, int old_fd)
{
    char *bytes = ink_alloc(COPY_BYTES);
    bool ok = true;

    while (ok && job->old_done < job->end) {
        int64_t left = job->end - job->old_done;
        ssize_t n =
            pread(old_fd, bytes, left < COPY_BYTES ? (size_t)left : COPY_BYTES, job->old_done);

        if (n <= 0) {
            job->sink.failed = n < 0 ? errno : EIO;
            ok = false;
        } else {
            ok = row_sink_add(&job->sink, bytes, (size_t)n) && row_sink_flush(&job->sink, true);
            job->old_done += n;
        }
    }
    free(bytes);
    return ok;
}

/* Makes the file under construction the output, and the sink's. */
static enum ink_status replace_output(struct rewrite_files *job, struct ink_atomic_file *file,
                                      struct ink_err *err)
{
    enum ink_status st = ink_atomic_commit(file, err);

    if (st == INK_OK)
        job->end = job->sink.size;
    return st;
}

static enum ink_status retry_failed(struct rewrite_files *job, struct ink_catalog *catalog,
                                    enum rewrite_stream_end *end, struct ink_err *err)
{
    struct rewrite_ends ends = { job, next_old, fill, -1, put, flush, show_retries };
    struct ink_slice names = row_source_names(job->source);
    struct row_sink old = job->sink;
    struct ink_atomic_file file;
    struct rewrite_counts counts = { 0 };
    enum ink_status st = rewind_old(job, err);
    struct ink_slice line;
    int fd;

    if (st == INK_OK)
        st = ink_atomic_open(job->options->output, &file, err);
    if (st != INK_OK)
        return st;
    fd = dup(fileno(file.fp));
    row_sink_init(&job->sink, job->options->output, fd, 0);
    st = fd < 0 ? ink_err_set(err, INK_IO, "%s: %s", job->options->output, strerror(errno))
                : row_sink_lock(job->options->output, fd, err);
    if (st == INK_OK && names.len > 0) {
        (void)old_next(job, &line);
        (void)row_sink_add(&job->sink, names.ptr, names.len); /* a failure shows below */
        job->old_done = job->old.consumed;
    }
    if (st == INK_OK)
        st = rewrite_stream(catalog, job->call, false, &ends, end, &counts, err);
    if (st == INK_OK && job->failed.code != INK_OK) {
        *err = job->failed;
        st = err->code;
    }
    if (st == INK_OK &&
        (*end == STREAM_STOPPED || !copy_rest(job, old.fd) || !row_sink_flush(&job->sink, true)))
        st = row_sink_error(&job->sink, err);
    if (st == INK_OK)
        st = replace_output(job, &file, err);
    ink_atomic_close(&file);
    row_sink_release(&old);
    job->n_failed_before = counts.n_failed;
    return st;
}

/* --- running ------------------------------------------------------------------------------------ */

static enum ink_status begin_appending(struct rewrite_files *job, struct ink_err *err)
{
    struct ink_slice names = row_source_names(job->source);
    struct row_sink *s = &job->sink;

    if (s->regular &&
        (ftruncate(s->fd, (off_t)job->end) != 0 || lseek(s->fd, (off_t)job->end, SEEK_SET) < 0))
        return ink_err_set(err, INK_IO, "%s: %s", s->path, strerror(errno));
    s->size = job->end;
    s->n_rows = 0;
    if (job->end == 0 && names.len > 0 &&
        (!row_sink_add(s, names.ptr, names.len) || !row_sink_flush(s, true)))
        return row_sink_error(s, err);
    return INK_OK;
}

static int interrupted(const struct rewrite_files *job)
{
    fprintf(
        stderr,
        "inkstone: interrupted; %lld rows are in %s, and the same command with --resume goes on\n",
        (long long)(job->n_before + job->sink.n_rows), job->options->output);
    return CLI_INTERRUPTED;
}

static int stopped(const struct rewrite_files *job, const struct ink_err *err)
{
    fprintf(stderr,
            "inkstone: %s; %lld rows are in %s, and the same command with --resume goes on\n",
            err->text, (long long)(job->n_before + job->sink.n_rows), job->options->output);
    return CLI_FAILED;
}

static int finished(const struct rewrite_files *job, int64_t n_failed)
{
    if (n_failed == 0)
        return CLI_OK;
    fprintf(stderr,
            "inkstone: %lld of %lld rows failed; their rewrite_error in %s says why, and --resume "
            "--retry-failed tries them again\n",
            (long long)n_failed, (long long)(job->n_before + job->sink.n_rows),
            job->options->output);
    return CLI_FAILED;
}

/* What a resumed run begins with. */
static void say_what_is_there(const struct rewrite_files *job)
{
    fprintf(stderr, "inkstone: %s: %lld rows are there%s%s\n", job->options->output,
            (long long)job->n_before,
            job->was_cut ? ", and one that was cut off, which is done again" : "",
            job->options->retry_failed && job->n_failed_before > 0
                ? "; those that failed are tried again"
                : "");
}

static int append(struct rewrite_files *job, struct ink_catalog *catalog)
{
    struct rewrite_ends ends = { job, next,  fill,         row_source_fd(job->source),
                                 put, flush, show_progress };
    enum rewrite_stream_end end;
    struct rewrite_counts counts;
    struct ink_err err = { 0 };

    if (begin_appending(job, &err) != INK_OK)
        return stopped(job, &err);
    if (rewrite_stream(catalog, job->call, false, &ends, &end, &counts, &err) != INK_OK)
        return cli_fail(&err);
    progress_end(&job->progress);
    if (!row_sink_flush(&job->sink, true)) {
        (void)row_sink_error(&job->sink, &err);
        return stopped(job, &err);
    }
    if (end == STREAM_INTERRUPTED)
        return interrupted(job);
    if (row_source_error(job->source, &err) != INK_OK)
        return stopped(job, &err);
    return finished(job, job->n_failed_before + counts.n_failed);
}

int rewrite_files_run(struct rewrite_files *job, struct ink_catalog *catalog)
{
    enum rewrite_stream_end end = STREAM_ENDED;
    struct ink_err err = { 0 };
    enum ink_status st = INK_OK;
    int status;

    /* A limit on file sizes is an error like a full disk. */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    if (job->was_there)
        say_what_is_there(job);
    progress_begin(&job->progress, "rewriting", "rows");
    if (job->options->retry_failed && job->n_failed_before > 0)
        st = retry_failed(job, catalog, &end, &err);
    if (st != INK_OK) {
        progress_end(&job->progress);
        return cli_fail(&err);
    }
    if (end == STREAM_INTERRUPTED) {
        progress_end(&job->progress);
        job->sink.n_rows = 0;
        return interrupted(job);
    }
    job->progress.from = job->n_before;
    status = append(job, catalog);
    progress_end(&job->progress);
    return status;
}
