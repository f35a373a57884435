/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_MAIL_H
#define SNIB_LOCAL_MAIL_H

/*
 * The wake-up between clients: one datagram to the socket of the one client that is meant. Losing
 * one costs time. All are hints but for a GRANTED with a number, which is believed: whoever may
 * write to the socket may write to the database too.
 */

#include "model/op.h"

enum snib__mail_kind {
        SNIB__MAIL_GRANTED = 'G', /* this id of yours was made holder */
        SNIB__MAIL_ENDED = 'E',   /* this hold of yours was ended by somebody else */
        SNIB__MAIL_LOOK = 'L'     /* who stood before this id of yours left the queue: see who does now */
};

struct snib__mail {
        enum snib__mail_kind kind;
        uint32_t number; /* GRANTED: see struct snib__tell */
        int64_t token;
        struct snib__id id;
};

/* version, kind, number, token, id, NUL, name */
#define SNIB__MAIL_HEAD (2 + 4 + 8)
#define SNIB__MAIL_SIZE_MAX (SNIB__MAIL_HEAD + SNIB__ID_MAX + 1000)

/* A client's socket in the directory. 0 and a descriptor, or -errno. */
int snib__mail_open(int dir_fd, const char *uuid, unsigned mode, int *ret_fd);
void snib__mail_unlink(int dir_fd, const char *uuid);

/* The first client that is free gets it; whether it arrives is not asked. */
void snib__mail_send(int send_fd, int dir_fd, const struct snib__mail *mail, struct snib__name name);

size_t snib__mail_encode(char *buffer, const struct snib__mail *mail, struct snib__name name);
/* Strict: false for anything that snib__mail_encode() would not have written for this client.
 * *ret_name points into `buffer`. */
bool snib__mail_parse(const char *buffer, size_t size, const char *uuid, struct snib__mail *ret,
                      struct snib__name *ret_name);

#endif
