/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIMNET_H
#define SNIB_TEST_SIMNET_H

/*
 * The world of messages: an engine (simnet.c) that talks in whole messages, and the server it talks
 * to (server.c), which runs the model. A client has one connection at a time; messages of one
 * connection and direction arrive in order unless the seed is hostile. A new connection's messages
 * may overtake those that the old one left behind.
 */

#include "sim.h"

enum sim_message_kind {
        /* to the server */
        SIM_HELLO = 1,
        SIM_OP,
        SIM_SUBSCRIBE,
        SIM_UNSUBSCRIBE,
        /* to the client */
        SIM_WELCOME,
        SIM_RESET,
        SIM_PART_RESET,
        SIM_REPLY,
        SIM_WATCHING,
        SIM_CHANGED,
        SIM_CHANGED_ALL,
        SIM_GRANTED,
        SIM_ENDED
};

struct sim_message {
        struct sim_event event; /* while it flies */
        struct snib__list link; /* in a flight (to the server), an inbox, or the spare ones */
        struct sim *world;
        enum sim_message_kind kind;
        int client;
        uint32_t incarnation;
        uint64_t connection;
        int name;
        struct snib__tag tag;
        struct snib__op op;
        struct snib__reply reply;
        struct snib__id id;
};

/* The server's end of a client's connection. */
struct sim_peer {
        bool open;
        uint32_t incarnation;
        uint64_t connection;
        bool subscribed[SIM_NAMES];
};

/* The way between one client and the server. */
struct sim_way {
        struct snib__list flight;                                  /* messages to the server, in order */
        struct snib__list inbox;                                   /* messages that have arrived at the client */
        snib__ns last_up[SIM_NAMES + 1], last_down[SIM_NAMES + 1]; /* what is ordered: all, or each name */
        uint64_t connection;                                       /* the client's present one */
        uint64_t mute_up, mute_down;                               /* connection on which this direction is silent */
};

struct sim_messages {
        uint64_t connections;
        struct sim_way way[SIM_CLIENTS];
        struct sim_peer peer[SIM_CLIENTS];
        struct snib__record record[SIM_NAMES];
        struct sim_truth truth[SIM_NAMES];
        struct sim_log *writer[SIM_NAMES];
        char value[SIM_NAMES][32];
        int executed[SIM_NAMES]; /* requests that are remembered, ever */
        struct sim_event expiry[SIM_NAMES];
        snib__ns down_until;
        snib__ns wall_offset;
        int64_t lives; /* how often it lost its data */
};

static inline struct sim_messages *sim_messages_of(struct sim *w)
{
        return w->store_data;
}

/* simnet.c */
struct sim_message *sim_message_new(struct sim *w, enum sim_message_kind kind, int client, uint32_t incarnation,
                                    uint64_t connection);
void sim_message_free(struct sim *w, struct sim_message *m);
void sim_message_up(struct sim *w, struct sim_message *m);
/* A hint may be lost or come twice. */
void sim_message_down(struct sim *w, struct sim_message *m, bool hint);
void sim_simnet_open(struct sim *w, struct sim_client *c);

/* server.c */
void sim_server_take(struct sim *w, struct sim_message *m);

#endif
