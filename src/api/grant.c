/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/grant.h: what a hold knows about itself, its loss, its release and renewal. Checks the
 * arguments; the hold is the runtime's. Any thread, but one at a time for a release.
 */

#include "api/internal.h"
#include "base/error.h"

static int grant_check(const snib_grant *grant, struct snib_error *err)
{
        return grant ? snib__alive(grant->client, err) : snib__null("grant", err);
}

int snib_grant_valid(const snib_grant *grant)
{
        /* Acquire: who sees the hold valid sees what the acquire wrote. A forked child finds 0
         * here. */
        return grant && snib__os_now() < atomic_load_explicit(&grant->hold.valid_until, memory_order_acquire);
}

int64_t snib_grant_token(const snib_grant *grant)
{
        return grant ? grant->hold.token : 0;
}

int64_t snib_grant_left_ms(const snib_grant *grant)
{
        snib__ns left;

        if (!grant)
                return 0;
        left = atomic_load_explicit(&grant->hold.valid_until, memory_order_acquire) - snib__os_now();
        return left > 0 ? left / SNIB__MS : 0;
}

int64_t snib_grant_permits(const snib_grant *grant)
{
        if (!grant)
                return 0;
        return snib__family_of(grant->hold.kind) == SNIB__FAMILY_PERMITS ? grant->hold.n : 1;
}

int snib_grant_permit_id(const snib_grant *grant, int64_t index, char ret_id[SNIB_PERMIT_ID_MAX])
{
        if (!grant || !ret_id || snib__family_of(grant->hold.kind) != SNIB__FAMILY_PERMITS || index < 0 ||
            index >= grant->hold.n)
                return SNIB_EINVAL;
        return snib__permit_id(&grant->hold.known.id, index, ret_id) ? 0 : SNIB_EINVAL;
}

int snib_grant_depth(const snib_grant *grant)
{
        return grant_check(grant, NULL) < 0 ? 0 : snib__grant_depth((snib_grant *)grant);
}

const char *snib_grant_owner(const snib_grant *grant)
{
        return grant ? grant->hold.known.id.text : "";
}

int snib_grant_loss(const snib_grant *grant)
{
        return grant_check(grant, NULL) < 0 ? SNIB_LOSS_NONE : snib__grant_loss((snib_grant *)grant);
}

int snib_grant_trouble(snib_grant *grant, struct snib_error *err)
{
        int r = grant_check(grant, err);

        return r < 0 ? r : snib__grant_trouble(grant, err);
}

int snib_grant_loss_fd(snib_grant *grant)
{
        int r = grant_check(grant, NULL);

        return r < 0 ? r : snib__grant_loss_fd(grant);
}

int snib_grant_on_loss(snib_grant *grant, snib_loss_callback *lost, void *arg, struct snib_error *err)
{
        int r = grant_check(grant, err);

        return r < 0 ? r : snib__grant_on_loss(grant, lost, arg, err);
}

int snib_grant_release(snib_grant *grant, struct snib_error *err)
{
        int r = grant_check(grant, err);

        return r < 0 ? r : snib__release(grant, err);
}

int snib_grant_leave(snib_grant *grant, int64_t lease_ms, struct snib_error *err)
{
        int r = grant_check(grant, err);

        if (r == 0 && (lease_ms < 1 || lease_ms > SNIB_LEASE_MAX_MS))
                r = snib__error(err, SNIB_ELEASE, "lease_ms is %lld; use 1 to %lld", (long long)lease_ms,
                                (long long)SNIB_LEASE_MAX_MS);
        return r < 0 ? r : snib__leave(grant, lease_ms * SNIB__MS, err);
}

int snib_grant_release_async(snib_grant *grant, snib_done_callback *done, void *arg, struct snib_error *err)
{
        struct snib__then then = {.done = done, .arg = arg};
        int r = grant_check(grant, err);

        if (r == 0 && !done)
                r = snib__null("done", err);
        return r < 0 ? r : snib__release_async(grant, &then, err);
}

int snib_grant_renew(snib_grant *grant, struct snib_error *err)
{
        int r = grant_check(grant, err);

        return r < 0 ? r : snib__renew(grant, err);
}
