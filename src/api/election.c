/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/election.h: a lock of its own kind, that no owner enters twice, and whose holder can be
 * observed. Checks and passes on. Any thread.
 */

#include "api/internal.h"
#include "base/error.h"

struct snib_election {
        struct snib__object object;
};

static int check(snib_election *election, struct snib_error *err)
{
        return snib__object_check(SNIB__OBJECT(election), "election", err);
}

int snib_election_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                      snib_election **ret_election, struct snib_error *err)
{
        struct snib_lock_options o;
        struct snib__object *object;
        int r = ret_election ? snib__object_options(&o, options, false, err) : snib__null("ret_election", err);

        if (r == 0)
                r = snib__object_new(&object, client, name, SNIB_KIND_ELECTION, &o, err);
        if (r < 0)
                return r;
        object->reentrant = false;
        *ret_election = snib__container(object, struct snib_election, object);
        return 0;
}

void snib_election_free(snib_election *election)
{
        snib__object_free(SNIB__OBJECT(election));
}

int snib_election_campaign(snib_election *election, int64_t wait_ms, snib_grant **ret_grant, struct snib_error *err)
{
        int r = check(election, err);

        return r < 0 ? r : snib__take(&election->object, wait_ms, ret_grant, err);
}

int snib_election_campaign_async(snib_election *election, int64_t wait_ms, snib_acquired_callback *elected, void *arg,
                                 struct snib_error *err)
{
        int r = check(election, err);

        if (r == 0 && !elected)
                r = snib__null("elected", err);
        return r < 0 ? r : snib__take_async(&election->object, wait_ms, elected, arg, err);
}

int snib_election_resign(snib_election *election, struct snib_error *err)
{
        int r = check(election, err);

        return r < 0 ? r : snib__release_mine(&election->object, err);
}

int snib_election_cancel(snib_election *election)
{
        return snib__object_cancel(SNIB__OBJECT(election));
}

int snib_election_leader(snib_election *election, struct snib_lock_info *ret_leader, struct snib_error *err)
{
        int r = check(election, err);

        return r < 0 ? r : snib__describe(&election->object, ret_leader, "ret_leader", err);
}

int snib_election_leader_async(snib_election *election, snib_info_callback *done, void *arg, struct snib_error *err)
{
        int r = check(election, err);

        return r < 0 ? r : snib__describe_async(&election->object, done, arg, err);
}

static int prepare_observe(snib_election *election, int64_t last_term, int64_t wait_ms, struct snib__want *ret,
                           struct snib_error *err)
{
        int r = check(election, err);

        if (r == 0)
                r = snib__number_check(last_term, 0, INT64_MAX, "last_term", err);
        *ret = (struct snib__want){.observe = true, .seen = last_term};
        return r < 0 ? r : snib__patience_check(wait_ms, &ret->patience, err);
}

int snib_election_observe(snib_election *election, int64_t last_term, int64_t wait_ms,
                          struct snib_lock_info *ret_leader, struct snib_error *err)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib__want want;
        int r = prepare_observe(election, last_term, wait_ms, &want, err);

        if (r == 0)
                r = snib__result_check(ret_leader, "ret_leader", err);
        if (r < 0)
                return r;
        r = snib__acquire(&election->object, &want, NULL, &info, err);
        if (r == 1)
                (void)snib__result_copy(ret_leader, &info, sizeof(info), SNIB__FIRST_LOCK_INFO, "ret_leader", err);
        return r;
}

int snib_election_observe_async(snib_election *election, int64_t last_term, int64_t wait_ms,
                                snib_info_callback *changed, void *arg, struct snib_error *err)
{
        struct snib__then then = {.info = changed, .arg = arg};
        struct snib__want want;
        int r = prepare_observe(election, last_term, wait_ms, &want, err);

        if (r == 0 && !changed)
                r = snib__null("changed", err);
        return r < 0 ? r : snib__acquire_async(&election->object, &want, &then, err);
}

int snib_election_depose(snib_election *election, struct snib_error *err)
{
        int r = check(election, err);

        return r < 0 ? r
                     : snib__count(&election->object, &(struct snib__op){.verb = SNIB__FORCE}, snib__here(NULL), err);
}
