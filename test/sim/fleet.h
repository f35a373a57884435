/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIM_FLEET_H
#define SNIB_TEST_SIM_FLEET_H

/*
 * Multilocks: what fleet.c (several servers), team.c (threads that take multilocks) and
 * teamchecks.c (the invariants) share.
 */

#include "core/multi.h"
#include "sim.h"

#define SIM_MEMBERS (SIM_SERVERS * SIM_NAMES)

struct sim_team;

/* A member, as its client sees it. */
struct sim_member {
        struct sim_team *team;
        struct sim *server;
        int number;
        int name, side;
        uint32_t incarnation; /* of the client */
        struct sim_owner *owner;
        struct sim_log *log; /* of the latest acquire */
        int passed;          /* how often that was handed on before it got it */
        /* the answer that the machine has not heard of */
        bool ended;
        int result;
};

/* A thread that takes multilocks. */
struct sim_team {
        struct sim_event act;  /* of the thread */
        struct sim_event wake; /* of the machine */
        struct sim_fleet *fleet;
        int process, index;
        bool busy;    /* an acquire, or a grant, is not over */
        bool foreign; /* in an order of its own */
        snib__ns lease;
        bool keep;
        snib__ns limit; /* local time by which the call under way must be answered */
        struct snib__multi machine;
        struct snib__multi_member members[SIM_MEMBERS];
        struct sim_member member[SIM_MEMBERS];
        /* what the checks know */
        enum snib__multi_phase phase;
        int told;    /* losses */
        size_t over; /* members that counted when it was first found not valid, and 1 */
        bool released;
};

struct sim_fleet {
        struct sim_options options;
        struct sim servers[SIM_SERVERS];
        snib__ns offset[SIM_CLIENTS];
        int64_t ppm[SIM_CLIENTS];
        struct sim_team team[SIM_CLIENTS][SIM_TEAMS];
        int64_t last_token; /* red */
        snib__ns last_at;
};

/* The world whose chance and time the threads use. */
static inline struct sim *sim_ground(struct sim_fleet *f)
{
        return &f->servers[0];
}

/* team.c */
void sim_team_start(struct sim_fleet *f, int process, int index);
/* The process is gone. */
void sim_team_stop(struct sim_team *t);
void sim_team_closed(struct sim_team *t, const struct sim *server, const struct sim_client *c);
struct sim_client *sim_member_client(const struct sim_member *p);
snib__ns sim_team_now(struct sim_team *t);
/* Its process can do something now. */
bool sim_team_running(struct sim_team *t);

/* teamchecks.c */
/* Names and choice of the segments. */
void sim_check_stripes(struct sim_fleet *f);
/* After an event. */
void sim_check_teams(struct sim_fleet *f);
/* After the machine of one was stepped. */
void sim_check_team(struct sim_team *t);

#endif
