/*
 * Ctrl-C: the first asks the command to stop, the second stops the process.
 *
 * Before interrupt_catch() a Ctrl-C ends the process at once, with the same status.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static atomic_bool pending;
static atomic_int last_signal;
static atomic_bool graceful;
static int wake[2] = { -1, -1 };

static int exit_status(int sig)
{
    return sig == SIGTERM ? 128 + SIGTERM : CLI_INTERRUPTED;
}

static void on_signal(int sig)
{
    atomic_store(&last_signal, sig);
    if (!atomic_load(&graceful) || atomic_exchange(&pending, true))
        _exit(exit_status(sig));
    /* The pipe is empty before the first signal, so this cannot block. */
    if (write(wake[1], "", 1) < 0)
        _exit(CLI_INTERRUPTED);
}

static void handle(int sig)
{
    struct sigaction sa = { .sa_handler = on_signal };

    sigfillset(&sa.sa_mask);
    sigaction(sig, &sa, NULL);
}

void interrupt_init(void)
{
    struct sigaction sa;

    /* Started with `nohup` or in the background of a script, SIGINT is ignored, and stays so. */
    if (sigaction(SIGINT, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
        return;
    handle(SIGINT);
}

bool interrupt_catch(void)
{
    if (atomic_load(&graceful))
        return true;
    if (wake[0] < 0 && pipe(wake) != 0)
        return false; /* without descriptors a Ctrl-C keeps ending the process at once */
    fcntl(wake[0], F_SETFD, FD_CLOEXEC);
    fcntl(wake[1], F_SETFD, FD_CLOEXEC);
    atomic_store(&graceful, true);
    handle(SIGTERM);
    return false;
}

void interrupt_release(void)
{
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    atomic_store(&graceful, false);
    if (atomic_load(&pending))
        _exit(exit_status(atomic_load(&last_signal)));
}

bool interrupt_pending(void)
{
    return atomic_load(&pending);
}

const atomic_bool *interrupt_flag(void)
{
    return &pending;
}

int interrupt_fd(void)
{
    return wake[0];
}

int interrupt_signal(void)
{
    return atomic_load(&last_signal);
}
