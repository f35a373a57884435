/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One of many: every copy of a program campaigns, one works, and stops by itself when it cannot be
 * sure any more. The work waits on the descriptor of the loss, so it hears of it at once and
 * without looking. Ends after three rounds, or at a loss.
 *
 *     leader [URL]
 */

#include <poll.h>
#include <snib/snib.h>
#include <stdio.h>

#define ROUNDS 3
#define ROUND_MS 20

/* One round of work. 0: the lead is lost; whatever this round was about to write must not be
 * written. */
static int work(snib_grant *grant, int round)
{
        struct pollfd lost = {.fd = snib_grant_loss_fd(grant), .events = POLLIN};

        if (poll(&lost, 1, ROUND_MS) > 0 || !snib_grant_valid(grant)) {
                printf("lost: %s\n", snib_loss_text(snib_grant_loss(grant)));
                return 0;
        }
        printf("round %d, term %lld\n", round, (long long)snib_grant_token(grant));
        return 1;
}

static int lead(snib_election *election, struct snib_error *err)
{
        snib_grant *grant;
        int rounds = 0;
        int result = snib_election_campaign(election, SNIB_FOREVER, &grant, err);

        if (result != 1)
                return result;
        printf("leading as %s\n", snib_grant_owner(grant));
        while (rounds < ROUNDS && work(grant, rounds + 1))
                rounds++;
        result = snib_grant_release(grant, err); /* resigns */
        return result < 0 ? result : rounds;
}

int main(int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_options options = {.size = sizeof(struct snib_lock_options), .lease_ms = 5000};
        snib_client *client;
        snib_election *election;
        int result;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        result = snib_election_new(client, "example:leader", &options, &election, &err);
        if (result == 0) {
                result = lead(election, &err);
                snib_election_free(election);
        }
        if (result < 0)
                fprintf(stderr, "%s\n", err.text);
        snib_close(client);
        return result == ROUNDS ? 0 : 1;
}
