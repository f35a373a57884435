/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The URL parser of base/url.h: splits first, decodes each part afterwards, so that an escaped
 * delimiter never delimits. Not a general one (RFC 3986): no fragments, no relative references, and
 * what is doubtful is refused instead of guessed.
 *
 * Secrets: no text that comes from user, password, path or an option's value ever gets into an
 * error. Scheme and option keys do. So that a password with an unescaped delimiter cannot end up as
 * the key of an option, a bare '@' after the authority is refused before anything there is looked
 * at.
 *
 * Pure, any thread.
 */

#include "base/url.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

#define URL_MAX 4096

/* A part of the text, not NUL-terminated. */
struct span {
        const char *at;
        size_t length;
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
        return c >= 'a' && c <= 'z';
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int hex(char c)
{
        c = lower(c);
        return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_control(char c)
{
        return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Cuts `s` at the first `c`: what is before is the result, what is after stays in `s`. Without one:
 * everything, and ret_found is false. */
static struct span cut(struct span *s, char c, bool *ret_found)
{
        const char *at = s->length ? memchr(s->at, c, s->length) : NULL;
        struct span before = *s;

        *ret_found = at != NULL;
        if (at)
                before.length = (size_t)(at - s->at);
        s->at += before.length + (at ? 1 : 0);
        s->length -= before.length + (at ? 1 : 0);
        return before;
}

static bool contains(struct span s, char c)
{
        return s.length && memchr(s.at, c, s.length);
}

/* Decodes %XX into a fixed array. `part` is named in the error. Control characters only come
 * escaped; they are let through in a password. */
static int decode(struct span s, char *ret, size_t size, const char *part, bool controls, struct snib_error *err)
{
        size_t out = 0;

        for (size_t i = 0; i < s.length; i++) {
                char c = s.at[i];

                if (c == '%') {
                        int high = i + 2 < s.length ? hex(s.at[i + 1]) : -1,
                            low = i + 2 < s.length ? hex(s.at[i + 2]) : -1;

                        if (high < 0 || low < 0)
                                return snib__error(
                                    err, SNIB_EURL,
                                    "a '%%' in the %s of the URL is not followed by two hexadecimal digits; write a "
                                    "percent sign as %%25",
                                    part);
                        c = (char)(high << 4 | low);
                        i += 2;
                }
                if (c == 0 || (is_control(c) && !controls))
                        return snib__error(err, SNIB_EURL, "the %s of the URL contains a control character; remove it",
                                           part);
                if (out + 1 >= size)
                        return snib__error(err, SNIB_EURL,
                                           "the %s of the URL is too long; at most %zu bytes are possible", part,
                                           size - 1);
                ret[out++] = c;
        }
        ret[out] = 0;
        return 0;
}

/* What no URL may contain as it is, in any part. */
static int check_bytes(struct span s, struct snib_error *err)
{
        if (s.length == 0)
                return snib__error(err, SNIB_EURL, "the URL is empty; write one such as local: or redis://localhost");
        if (s.length > URL_MAX)
                return snib__error(err, SNIB_EURL, "the URL is too long; at most %d bytes are possible", URL_MAX);
        for (size_t i = 0; i < s.length; i++) {
                if (s.at[i] == ' ')
                        return snib__error(err, SNIB_EURL, "byte %zu of the URL is a space; write it as %%20", i + 1);
                if (is_control(s.at[i]))
                        return snib__error(err, SNIB_EURL, "byte %zu of the URL is a control character; remove it",
                                           i + 1);
                if (s.at[i] == '#')
                        return snib__error(err, SNIB_EURL,
                                           "byte %zu of the URL is a '#', which means nothing here; write it as %%23",
                                           i + 1);
        }
        return 0;
}

static int parse_scheme(struct span *s, struct snib__url *url, struct snib_error *err)
{
        bool found;
        struct span scheme = cut(s, ':', &found);
        bool good = found && scheme.length && is_lower(lower(scheme.at[0]));

        for (size_t i = 0; good && i < scheme.length; i++) {
                char c = lower(scheme.at[i]);

                good = is_lower(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
        }
        if (!good)
                return snib__error(
                    err, SNIB_EURL,
                    "the URL does not begin with a scheme and ':'; write it as local: or redis://localhost");
        if (scheme.length >= sizeof(url->scheme))
                return snib__error(err, SNIB_EURL, "the scheme of the URL is too long; at most %zu bytes are possible",
                                   sizeof(url->scheme) - 1);
        for (size_t i = 0; i < scheme.length; i++)
                url->scheme[i] = lower(scheme.at[i]);
        return 0;
}

static int parse_user(struct span userinfo, struct snib__url *url, struct snib_error *err)
{
        struct span user = cut(&userinfo, ':', &url->has_password);
        int r = decode(user, url->user, sizeof(url->user), "user", false, err);

        return r < 0 ? r : decode(userinfo, url->password, sizeof(url->password), "password", true, err);
}

/* `s` is what follows the ':' after the host. */
static int parse_port(struct span s, struct snib__url *url, struct snib_error *err)
{
        int port = 0;
        bool good = s.length >= 1 && s.length <= 5;

        for (size_t i = 0; good && i < s.length; i++) {
                good = is_digit(s.at[i]);
                port = port * 10 + (s.at[i] - '0');
        }
        if (!good || port < 1 || port > 65535)
                return snib__error(err, SNIB_EURL,
                                   "the port in the URL is not a number from 1 to 65535; write host:port, and any of / "
                                   "? @ : in a password as "
                                   "%%2F %%3F %%40 %%3A");
        url->port = port;
        return 0;
}

/* A name, an IPv4 address, or several with commas between them. */
static int check_host(const char *host, struct snib_error *err)
{
        for (const char *c = host; *c; c++)
                if (!is_lower(lower(*c)) && !is_digit(*c) && !strchr("-._~,", *c))
                        return snib__error(
                            err, SNIB_EURL,
                            "the host in the URL contains something else than letters, digits, '-', '.' and '_'; "
                            "correct it");
        return 0;
}

/* What was in brackets: hexadecimal digits, ':' and '.', then perhaps '%' and the name of an
 * interface. */
static int check_address(const char *host, struct snib_error *err)
{
        const char *c = host;
        int colons = 0;

        for (; *c && *c != '%'; c++) {
                colons += *c == ':';
                if (hex(*c) < 0 && *c != ':' && *c != '.')
                        break;
        }
        bool good = colons >= 2 && (*c == 0 || *c == '%');

        if (good && *c == '%')
                good = c[1] && check_host(c + 1, NULL) == 0;
        return good ? 0
                    : snib__error(err, SNIB_EURL,
                                  "the text in brackets in the URL is not an IPv6 address; write it as [::1]");
}

static int parse_bracketed(struct span s, struct snib__url *url, struct snib_error *err)
{
        bool closed;
        struct span host;

        s.at++;
        s.length--;
        host = cut(&s, ']', &closed);
        if (!closed)
                return snib__error(err, SNIB_EURL,
                                   "the host in the URL has a '[' without a ']'; write an IPv6 address as [::1]");

        int r = decode(host, url->host, sizeof(url->host), "host", false, err);

        if (r == 0)
                r = check_address(url->host, err);
        if (r < 0 || s.length == 0)
                return r;
        if (s.at[0] != ':')
                return snib__error(
                    err, SNIB_EURL,
                    "the ']' in the URL is followed by something else than ':' and a port; write [::1]:6379");
        return parse_port((struct span){s.at + 1, s.length - 1}, url, err);
}

static int parse_host(struct span s, struct snib__url *url, struct snib_error *err)
{
        bool has_port;

        if (s.length && s.at[0] == '[')
                return parse_bracketed(s, url, err);

        struct span host = cut(&s, ':', &has_port);

        if (has_port && contains(s, ':'))
                return snib__error(
                    err, SNIB_EURL,
                    "the host in the URL contains several ':'; write an IPv6 address in brackets, as in [::1]:6379");
        if (has_port && host.length == 0)
                return snib__error(err, SNIB_EURL, "the URL has a port but no host; write host:port");

        int r = decode(host, url->host, sizeof(url->host), "host", false, err);

        if (r == 0)
                r = check_host(url->host, err);
        return r == 0 && has_port ? parse_port(s, url, err) : r;
}

/* `s` is what is between the "//" and the path or the options. */
static int parse_authority(struct span s, struct snib__url *url, struct snib_error *err)
{
        bool has_user;
        struct span rest = s, userinfo = cut(&rest, '@', &has_user);

        url->has_authority = true;
        if (!has_user)
                return parse_host(s, url, err);
        if (contains(rest, '@'))
                return snib__error(err, SNIB_EURL,
                                   "the user or the password in the URL contains a bare '@'; write it as %%40");

        int r = parse_user(userinfo, url, err);

        return r < 0 ? r : parse_host(rest, url, err);
}

static int parse_option(struct span item, struct snib__url *url, struct snib_error *err)
{
        struct snib__url_option *o = &url->option[url->options];
        char part[sizeof(o->key) + 16];
        bool has_value;
        struct span key = cut(&item, '=', &has_value);

        if (key.length == 0)
                return snib__error(err, SNIB_EURL,
                                   "option %d of the URL has no name; write options as ?key=value&key=value",
                                   url->options + 1);
        for (size_t i = 0; i < key.length; i++)
                if (!is_lower(key.at[i]) && !is_digit(key.at[i]) && key.at[i] != '_' && key.at[i] != '-')
                        return snib__error(err, SNIB_EURL,
                                           "the name of option %d of the URL contains something else than small "
                                           "letters, digits, '_' and "
                                           "'-'; correct it",
                                           url->options + 1);
        if (key.length >= sizeof(o->key))
                return snib__error(err, SNIB_EURL,
                                   "the name of option %d of the URL is too long; at most %zu bytes are possible",
                                   url->options + 1, sizeof(o->key) - 1);
        memcpy(o->key, key.at, key.length);
        o->key[key.length] = 0;
        if (!has_value)
                return snib__error(err, SNIB_EURL, "the option \"%s\" of the URL has no value; write %s=value", o->key,
                                   o->key);
        for (int i = 0; i < url->options; i++)
                if (!strcmp(url->option[i].key, o->key))
                        return snib__error(err, SNIB_EURL, "the option \"%s\" is in the URL twice; write it once",
                                           o->key);
        url->options++;
        (void)snprintf(part, sizeof(part), "option \"%s\"", o->key);
        return decode(item, o->value, sizeof(o->value), part, false, err);
}

static int parse_options(struct span s, struct snib__url *url, struct snib_error *err)
{
        bool more = true;

        while (more) {
                struct span item = cut(&s, '&', &more);

                if (url->options == SNIB__URL_OPTIONS_MAX)
                        return snib__error(err, SNIB_EURL, "the URL has too many options; at most %d are possible",
                                           SNIB__URL_OPTIONS_MAX);

                int r = parse_option(item, url, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The part after "scheme:". */
static int parse_rest(struct span s, struct snib__url *url, struct snib_error *err)
{
        bool has_options, authority = s.length >= 2 && s.at[0] == '/' && s.at[1] == '/';

        if (authority) {
                struct span a = {s.at + 2, 0};

                while (a.length < s.length - 2 && a.at[a.length] != '/' && a.at[a.length] != '?')
                        a.length++;
                s.at += 2 + a.length;
                s.length -= 2 + a.length;
                if (contains(s, '@'))
                        return snib__error(
                            err, SNIB_EURL,
                            "the URL has a bare '@' after the host; write it as %%40, and any of / ? : in a password "
                            "as %%2F %%3F %%3A");

                int r = parse_authority(a, url, err);

                if (r < 0)
                        return r;
        }

        struct span path = cut(&s, '?', &has_options);
        int r = decode(path, url->path, sizeof(url->path), "path", false, err);

        return r == 0 && has_options ? parse_options(s, url, err) : r;
}

int snib__url_parse(const char *text, struct snib__url *ret, struct snib_error *err)
{
        struct span s = {text, text ? strnlen(text, URL_MAX + 1) : 0};
        int r = check_bytes(s, err);

        memset(ret, 0, sizeof(*ret));
        if (r == 0)
                r = parse_scheme(&s, ret, err);
        if (r == 0)
                r = parse_rest(s, ret, err);
        if (r < 0)
                snib__url_wipe(ret);
        return r;
}

void snib__url_wipe(struct snib__url *url)
{
        explicit_bzero(url, sizeof(*url));
}

/* A text that grows in memory of the caller's, and is counted beyond. */
struct writer {
        char *at;
        size_t size, length;
};

static void write_byte(struct writer *w, char c)
{
        if (w->length + 1 < w->size)
                w->at[w->length] = c;
        w->length++;
}

static void write_text(struct writer *w, const char *text)
{
        while (*text)
                write_byte(w, *text++);
}

/* Escapes what is neither a letter, a digit, beyond ASCII, nor one of `plain`. */
static void write_part(struct writer *w, const char *text, const char *plain)
{
        static const char digits[] = "0123456789ABCDEF";

        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;

                if (is_lower(lower(*text)) || is_digit(*text) || c >= 0x80 || strchr(plain, *text)) {
                        write_byte(w, *text);
                        continue;
                }
                write_byte(w, '%');
                write_byte(w, digits[c >> 4]);
                write_byte(w, digits[c & 15]);
        }
}

static void write_authority(struct writer *w, const struct snib__url *url)
{
        bool bracketed = strchr(url->host, ':') != NULL;
        char port[16];

        write_text(w, "//");
        if (url->user[0]) {
                write_part(w, url->user, "-._~");
                write_byte(w, '@');
        }
        write_text(w, bracketed ? "[" : "");
        write_part(w, url->host, "-._~,:");
        write_text(w, bracketed ? "]" : "");
        if (url->port > 0) {
                (void)snprintf(port, sizeof(port), ":%d", url->port);
                write_text(w, port);
        }
}

size_t snib__url_format(const struct snib__url *url, char *ret, size_t size)
{
        struct writer w = {ret, size, 0};
        char before = '?';

        write_text(&w, url->scheme);
        write_byte(&w, ':');
        if (url->has_authority)
                write_authority(&w, url);
        write_part(&w, url->path, "-._~/,:=+");
        for (int i = 0; i < url->options; i++) {
                if (!strcmp(url->option[i].key, "password"))
                        continue;
                write_byte(&w, before);
                write_text(&w, url->option[i].key);
                write_byte(&w, '=');
                write_part(&w, url->option[i].value, "-._~/,:");
                before = '&';
        }
        if (size > 0)
                ret[w.length < size ? w.length : size - 1] = 0;
        return w.length;
}

const char *snib__url_option(struct snib__url *url, const char *key)
{
        for (int i = 0; i < url->options; i++)
                if (!strcmp(url->option[i].key, key)) {
                        url->option[i].used = true;
                        return url->option[i].value;
                }
        return NULL;
}

int snib__url_unused(const struct snib__url *url, const char *known, struct snib_error *err)
{
        for (int i = 0; i < url->options; i++)
                if (!url->option[i].used)
                        return snib__error(err, SNIB_EURL, "the option \"%s\" of the URL is not known to %s:; %s%s",
                                           url->option[i].key, url->scheme,
                                           *known ? "those that are: " : "it has none, remove it", known);
        return 0;
}

/* Where a secret may stand in a text that need not be a URL. What is before the last '@' may be
 * user and password, however broken; without an '@', so may what stands where a port should be and
 * is no number. Empty: nowhere. */
static struct span secret(const char *text)
{
        const char *colon = strchr(text, ':'), *at = strrchr(text, '@');
        const char *from = colon && (!at || colon < at) ? colon + 1 : text;
        size_t slashes = strspn(from, "/");

        from += slashes;
        if (at) {
                const char *password = memchr(from, ':', (size_t)(at - from));

                if (password)
                        return (struct span){password + 1, (size_t)(at - password - 1)};
                return slashes ? (struct span){at, 0} : (struct span){from, (size_t)(at - from)};
        }
        if (slashes < 2)
                return (struct span){from, 0};
        if (*from == '[' && strchr(from, ']'))
                from = strchr(from, ']');
        from += strcspn(from, ":/?");
        if (*from != ':')
                return (struct span){from, 0};

        from++;

        size_t digits = strspn(from, "0123456789");
        bool port = digits <= 5 && strchr("/?", from[digits]);

        return (struct span){from, port ? 0 : strlen(from)};
}

/* Appends to a text of `size` bytes, of which `used` are in use; answers how many are then. */
static size_t append(char *ret, size_t size, size_t used, const char *text, size_t length)
{
        if (used + 1 >= size)
                return used;
        snib__text_clean(ret + used, size - used, text, length);
        return used + strlen(ret + used);
}

void snib__url_mask(const char *text, char *ret, size_t size)
{
        struct span hidden = secret(text);
        size_t used = 0;

        if (size == 0)
                return;
        ret[0] = 0;
        used = append(ret, size, used, text, (size_t)(hidden.at - text));
        if (hidden.length)
                used = append(ret, size, used, "***", 3);
        text = hidden.at + hidden.length;
        (void)append(ret, size, used, text, strlen(text));
}
