/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Datagrams between clients of one directory. Not reliable and not trusted. Sockets lie in the directory and are
 * reached through its descriptor (/proc/self/fd/N/NAME), so that the 108 bytes of a socket address are always enough
 * and no path can be swapped. Stateless; any thread.
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

#define MAIL_VERSION '1'

bool snib__uuid_valid(const char *text)
{
        for (int i = 0; i < SNIB__UUID_LENGTH; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;
                bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');

                if (dash ? text[i] != '-' : !hex)
                        return false;
        }
        return true;
}

bool snib__uuid_of(const struct snib__id *id, char ret[SNIB__UUID_LENGTH + 1])
{
        if (!snib__uuid_valid(id->text) || id->text[SNIB__UUID_LENGTH] != ':')
                return false;
        memcpy(ret, id->text, SNIB__UUID_LENGTH);
        ret[SNIB__UUID_LENGTH] = 0;
        return true;
}

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

        if (!snib__uuid_of(&mail->id, uuid))
                return;
        /* Refused: the receiver is gone, and whoever stands behind it hears of that from the kernel. Full: it has mail
         * enough to look at all it waits for. */
        (void)sendto(send_fd, buffer, snib__mail_encode(buffer, mail, name), MSG_DONTWAIT | MSG_NOSIGNAL,
                     (struct sockaddr *)&to, address(&to, dir_fd, uuid));
}

size_t snib__mail_encode(char *buffer, const struct snib__mail *mail, struct snib__name name)
{
        size_t id = strlen(mail->id.text) + 1;

        buffer[0] = MAIL_VERSION;
        buffer[1] = (char)mail->kind;
        memcpy(buffer + 2, mail->id.text, id);
        memcpy(buffer + 2 + id, name.bytes, name.length);
        return 2 + id + name.length;
}

bool snib__mail_parse(const char *buffer, size_t size, const char *uuid, struct snib__mail *ret,
                      struct snib__name *ret_name)
{
        const char *id = buffer + 2;
        size_t length;

        if (size < 3 || size > SNIB__MAIL_SIZE_MAX || buffer[0] != MAIL_VERSION ||
            (buffer[1] != 'G' && buffer[1] != 'E' && buffer[1] != 'L'))
                return false;
        length = strnlen(id, size - 2);
        if (length >= SNIB__ID_MAX || length == size - 2 || length <= SNIB__UUID_LENGTH ||
            strncmp(id, uuid, SNIB__UUID_LENGTH) != 0 || id[SNIB__UUID_LENGTH] != ':')
                return false;
        ret_name->bytes = id + length + 1;
        ret_name->length = size - 2 - length - 1;
        if (ret_name->length < 1 || ret_name->length > SNIB_NAME_MAX || memchr(ret_name->bytes, 0, ret_name->length))
                return false;
        memset(ret, 0, sizeof(*ret));
        ret->kind = (enum snib__mail_kind)buffer[1];
        memcpy(ret->id.text, id, length);
        return true;
}
