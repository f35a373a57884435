/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Datagrams between clients of one directory. Not reliable, and no more trusted than the file.
 * Sockets lie in the directory and are reached through its descriptor (/proc/self/fd/N/NAME), so
 * that the 108 bytes of a socket address are always enough and no path can be swapped. Stateless;
 * any thread.
 */

#include "engine/local/mail.h"
#include "base/cleanup.h"
#include "engine/local/store.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAIL_VERSION '2'

static socklen_t address(struct sockaddr_un *ret, int dir_fd, const char *uuid)
{
        memset(ret, 0, sizeof(*ret));
        ret->sun_family = AF_UNIX;
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/w-%s", dir_fd, uuid);
        return (socklen_t)sizeof(*ret);
}

int snib__mail_open(int dir_fd, const char *uuid, unsigned mode, int *ret_fd)
{
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un to;
        socklen_t size = address(&to, dir_fd, uuid);

        if (fd < 0)
                return -errno;
        snib__mail_unlink(dir_fd,
                          uuid); /* of a process that died with this uuid, if it is not as fresh as it should be */
        /* Who may see the socket is the directory's matter; who may write to it, its mode's. */
        if (bind(fd, (struct sockaddr *)&to, size) < 0 || chmod(to.sun_path, mode) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

void snib__mail_unlink(int dir_fd, const char *uuid)
{
        char name[SNIB__UUID_LENGTH + 3];

        if (!snib__uuid_valid(uuid))
                return;
        snprintf(name, sizeof(name), "w-%.36s", uuid);
        (void)unlinkat(dir_fd, name, 0);
}

void snib__mail_send(int send_fd, int dir_fd, const struct snib__mail *mail, struct snib__name name)
{
        char uuid[SNIB__UUID_LENGTH + 1], buffer[SNIB__MAIL_SIZE_MAX];
        struct sockaddr_un to;

        if (!snib__id_client(&mail->id, uuid))
                return;
        /* Refused: the receiver is gone, and whoever stands behind it hears of that from the
         * kernel. Full: it has mail enough to look at all it waits for. */
        (void)sendto(send_fd, buffer, snib__mail_encode(buffer, mail, name), MSG_DONTWAIT | MSG_NOSIGNAL,
                     (struct sockaddr *)&to, address(&to, dir_fd, uuid));
}

size_t snib__mail_encode(char *buffer, const struct snib__mail *mail, struct snib__name name)
{
        size_t id = strlen(mail->id.text) + 1;

        buffer[0] = MAIL_VERSION;
        buffer[1] = (char)mail->kind;
        memcpy(buffer + 2, &mail->number, sizeof(mail->number));
        memcpy(buffer + 6, &mail->token, sizeof(mail->token));
        memcpy(buffer + SNIB__MAIL_HEAD, mail->id.text, id);
        memcpy(buffer + SNIB__MAIL_HEAD + id, name.bytes, name.length);
        return SNIB__MAIL_HEAD + id + name.length;
}

/* The part before the id. */
static bool parse_head(const char *buffer, size_t size, struct snib__mail *ret)
{
        memset(ret, 0, sizeof(*ret));
        if (size <= SNIB__MAIL_HEAD || size > SNIB__MAIL_SIZE_MAX || buffer[0] != MAIL_VERSION)
                return false;
        ret->kind = (enum snib__mail_kind)buffer[1];
        memcpy(&ret->number, buffer + 2, sizeof(ret->number));
        memcpy(&ret->token, buffer + 6, sizeof(ret->token));
        if (ret->kind == SNIB__MAIL_GRANTED)
                return ret->number ? ret->token > 0 : ret->token >= 0;
        return (ret->kind == SNIB__MAIL_ENDED || ret->kind == SNIB__MAIL_LOOK) && !ret->number && !ret->token;
}

bool snib__mail_parse(const char *buffer, size_t size, const char *uuid, struct snib__mail *ret,
                      struct snib__name *ret_name)
{
        const char *id = buffer + SNIB__MAIL_HEAD;
        size_t room = size - SNIB__MAIL_HEAD, length;

        if (!parse_head(buffer, size, ret))
                return false;
        length = strnlen(id, room);
        if (length >= SNIB__ID_MAX || length == room)
                return false;
        memcpy(ret->id.text, id, length); /* the rest is zero */
        if (!snib__id_of_client(&ret->id, uuid))
                return false;
        ret_name->bytes = id + length + 1;
        ret_name->length = room - length - 1;
        if (ret_name->length < 1 || ret_name->length > SNIB_NAME_MAX || memchr(ret_name->bytes, 0, ret_name->length))
                return false;
        return true;
}
