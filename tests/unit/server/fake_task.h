#ifndef FAKE_TASK_H
#define FAKE_TASK_H

/*
 * Stands in for the task room: a model whose rewrites follow a script instead of
 * weights, so that the server's promises can be tested without any. What the text
 * says decides what happens:
 *
 *     "busy"   the queue is full                 "fail"   all candidates fail
 *     "slow"   50 ms a token instead of 1         "hang"   nothing after "queued" until cancelled
 *     "late"   the deadline passes                "same"   the second candidate is reset once
 *     "long"   the input is over the limit        "mute"   one second of silence before the first token
 */
struct ink_catalog;

extern struct ink_catalog *const fake_catalog;

int fake_tasks_alive(void);     /* started and not yet freed */
int fake_tasks_cancelled(void); /* freed or cancelled before their end */

#endif
