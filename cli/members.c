/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who of --red answers during a wait. What is not heard of is told once, each time it goes away.
 * Not who holds (waiting.c), nor whether it is a majority (the library). Main thread only; answers
 * come inside snib_process().
 */

#include "members.h"
#include "out.h"
#include <stdio.h>
#include <string.h>

static void count(struct members *m)
{
        m->asking = false;
        for (int i = 0; i < m->session->client_count; i++)
                m->asking |= m->member[i].asking;
}

static void is_absent(struct member *one, const char *why)
{
        if (!one->absent)
                snprintf(one->why, sizeof(one->why), "%s", why);
        one->absent = true;
}

static void on_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        struct member *one = arg;

        one->asking = false;
        count(one->all);
        if (result < 0) {
                is_absent(one, err && err->text[0] ? err->text : snib_strerror(result));
                return;
        }
        one->absent = one->said = false;
        one->all->told(one->all->arg, result, info, NULL);
}

void snib__members_begin(struct members *m, struct session *s, snib_info_callback *told, void *arg)
{
        *m = (struct members){.told = told, .arg = arg};
        if (!s->options->red.count)
                return;
        m->session = s;
        for (int i = 0; i < s->client_count; i++)
                m->member[i] = (struct member){.all = m, .absent = s->absent[i], .said = s->absent[i]};
}

static void ask(struct members *m, int i, int64_t now)
{
        struct member *one = &m->member[i];

        one->asked_ns = now;
        one->asking = snib_lock_query_async(m->session->target.lock[i], on_info, one, NULL) >= 0;
}

void snib__members_ask(struct members *m, int64_t patience_ns)
{
        int64_t now = snib__clock_boot();

        for (int i = 0; m->session && i < m->session->client_count; i++)
                if (!m->member[i].asking)
                        ask(m, i, now);
                else if (now - m->member[i].asked_ns >= patience_ns)
                        is_absent(&m->member[i], "it does not answer");
        if (m->session)
                count(m);
}

bool snib__members_news(const struct members *m)
{
        for (int i = 0; m->session && i < m->session->client_count; i++)
                if (m->member[i].absent && !m->member[i].said)
                        return true;
        return false;
}

void snib__members_say(struct members *m)
{
        for (int i = 0; m->session && i < m->session->client_count; i++) {
                struct member *one = &m->member[i];

                if (one->absent && !one->said)
                        snib__session_say_absent(m->session->clients[i], one->why);
                one->said = one->absent;
        }
}

const char *snib__members_absent(struct members *m, int64_t until_ns, char *ret, size_t size)
{
        const char *before = "; no answer from ";
        char safe[SNIB__SAFE_MAX];
        size_t n = 0;

        ret[0] = 0;
        if (!m->session)
                return ret;
        snib__members_ask(m, INT64_MAX);
        snib__session_until(m->session, &m->asking, false, until_ns);
        for (int i = 0; i < m->session->client_count && n < size; i++) {
                const char *url = snib_client_url(m->session->clients[i]);

                if (!m->member[i].asking && !m->member[i].absent)
                        continue;
                n += (size_t)snprintf(ret + n, size - n, "%s%s", before,
                                      snib__out_safe(url, strlen(url), safe, sizeof(safe)));
                before = ", ";
        }
        return ret;
}
