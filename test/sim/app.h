/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIM_APP_H
#define SNIB_TEST_SIM_APP_H

/*
 * What app.c (holding) and change.c (numbers, values, questions) share.
 */

#include "sim.h"

struct sim_client *sim_client_of(struct sim *w, const struct sim_owner *o);
struct snib__name sim_name_of(struct sim *w, int name);
/* The thread acts again after a while. */
void sim_act_in(struct sim *w, struct sim_owner *o, snib__ns mean);
void sim_acquire(struct sim *w, struct sim_client *c, struct sim_owner *o, int side, bool observe);

/* change.c */
/* Perhaps a question or a forced release, beside what the thread does. */
void sim_ask_something(struct sim *w, struct sim_client *c, struct sim_owner *o);
/* Perhaps a change of the thread's name; it goes on when that is answered. */
bool sim_change_something(struct sim *w, struct sim_client *c, struct sim_owner *o);
/* What was taken of a semaphore. */
void sim_put_back(struct sim *w, struct sim_client *c, struct sim_owner *o);
/* The first n permits that it holds, by their ids, behind the back of their hold. */
bool sim_release_by_id(struct sim *w, struct sim_client *c, struct sim_owner *o, int n);
/* A scripted one; false: there is none of this name. */
bool sim_ask_for(struct sim *w, struct sim_client *c, struct sim_owner *o, const char *verb, int n);

#endif
