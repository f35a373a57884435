/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_PLACE_H
#define SNIB_LOCAL_PLACE_H

/*
 * The directory of a local: engine, and how files in it are made and opened. One directory is one
 * namespace of locks. Everything is reached through the directory's descriptor, so that nobody can
 * swap the path between a check and a use.
 */

#include "base/url.h"
#include <stdbool.h>
#include <sys/types.h>

/* SQLite takes no path over 512 bytes; room for the longest file name in the directory is left. */
#define SNIB__PLACE_PATH_MAX 480

struct snib__place {
        int fd; /* of the directory, -1 if none */
        dev_t dev;
        ino_t ino;
        uid_t owner;
        char path[SNIB__PLACE_PATH_MAX + 1]; /* canonical */
        mode_t mode;                         /* of files; 0600 unless the URL says else */
        bool shared;                         /* the URL gave a mode or a group: other users are meant to come */
        gid_t group;                         /* (gid_t)-1: leave it */
        bool durable;
        int64_t timeout_ms; /* from the URL, 0: not given */
};

/* Reads the URL, finds, makes if need be, and checks the directory; url->path is its canonical path
 * then. 0, or a negative error; then nothing is left open. */
int snib__place_open(struct snib__place *ret_place, struct snib__url *url, struct snib_error *err);
void snib__place_done(struct snib__place *place);

/* Opens a regular file of the directory for reading and writing, makes it if need be with mode and
 * group of the place, follows no symbolic link. */
int snib__place_file(const struct snib__place *place, const char *name, int *ret_fd, struct snib_error *err);

/* The name of a file system whose byte locks or shared memory do not work between all that can
 * mount it; NULL for any other. The argument is statfs.f_type. */
const char *snib__place_refused(long type);

#endif
