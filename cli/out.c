/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output: plain lines, safe text, colours, JSON. The mode is a global of the command; it is set
 * when the options are read. The other global is whether something for stdout was lost: a command
 * whose answer could not be written has failed (snib__out_written()). Not a layout engine: tables
 * are printed by the commands that have them. Main thread only.
 */

#include "out.h"
#include "exit.h"
#include <ctype.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_ 8192

static struct out_mode mode_now;
static bool unwritten;    /* something for stdout was lost */
static int unwritten_why; /* its errno */
static bool unwritten_told;

void snib__out_mode(struct out_mode mode)
{
        mode_now = mode;
}

struct out_mode snib__out_mode_now(void)
{
        return mode_now;
}

static bool dumb(void)
{
        const char *term = getenv("TERM");

        return !term || !*term || !strcmp(term, "dumb");
}

bool snib__out_can_repaint(void)
{
        return isatty(STDERR_FILENO) && !dumb();
}

static const char *locale_name(void)
{
        static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                const char *value = getenv(names[i]);
                if (value && *value)
                        return value;
        }
        return "";
}

static bool says_utf8(const char *text)
{
        return strcasestr(text, "utf-8") || strcasestr(text, "utf8");
}

/* A locale that names the encoding is believed, whether it is installed here or not. The process
 * itself stays in the locale C. */
bool snib__out_utf8(void)
{
        static int known = -1;
        locale_t here;

        if (known >= 0)
                return known;
        known = says_utf8(locale_name());
        here = known ? NULL : newlocale(LC_CTYPE_MASK, "", NULL);
        if (here) {
                known = says_utf8(nl_langinfo_l(CODESET, here));
                freelocale(here);
        }
        return known;
}

/* Names are shown as they are unless the locale names another encoding: an unset one (cron,
 * containers) says nothing about the reader. */
static bool names_utf8(void)
{
        return snib__out_utf8() || !strchr(locale_name(), '.');
}

static const char *sequence(FILE *f, const char *text)
{
        const char *no_color = getenv("NO_COLOR");

        return isatty(fileno(f)) && !dumb() && !(no_color && *no_color) ? text : "";
}

const char *snib__out_bold(FILE *f)
{
        return sequence(f, "\033[1m");
}

const char *snib__out_plain(FILE *f)
{
        return sequence(f, "\033[0m");
}

/* How many bytes the UTF-8 character at `p` has; 0 if it is none. Over-long forms and surrogates
 * are none. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
        size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;

        if (n == 0 || n > left)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] > 0x8f))
                return 0;
        return n;
}

/* A character that a terminal prints and does nothing else with: no C0, DEL or C1 control, no
 * change of direction. */
static bool harmless(const unsigned char *p, size_t n)
{
        if (n == 1)
                return *p >= 0x20 && *p != 0x7f && *p != '\\';
        if (n == 2)
                return !(p[0] == 0xc2 && p[1] < 0xa0);
        if (n == 3 && p[0] == 0xe2 && p[1] == 0x80)
                return p[2] < 0x8b || (p[2] > 0x8f && p[2] < 0xa8) || p[2] > 0xae;
        if (n == 3 && p[0] == 0xe2 && p[1] == 0x81)
                return p[2] < 0xa0;
        return true;
}

const char *snib__out_safe(const char *bytes, size_t length, char *ret, size_t size)
{
        const unsigned char *p = (const unsigned char *)bytes;
        size_t used = 0;

        for (size_t i = 0; i < length;) {
                size_t n = utf8_length(p + i, length - i);
                bool plain = n > 0 && harmless(p + i, n) && (n == 1 || names_utf8());

                if (used + 8 > size) {
                        memcpy(ret + used, "...", 3);
                        used += 3;
                        break;
                }
                if (plain) {
                        memcpy(ret + used, p + i, n);
                        used += n;
                        i += n;
                } else {
                        used += (size_t)snprintf(ret + used, size - used, p[i] == '\\' ? "\\\\" : "\\x%02x", p[i]);
                        i++;
                }
        }
        ret[used] = 0;
        return ret;
}

const char *snib__out_duration(int64_t ms, char *ret)
{
        long long s = ms / 1000;

        if (ms < 0)
                snprintf(ret, SNIB__DURATION_MAX, "-");
        else if (ms < 1000)
                snprintf(ret, SNIB__DURATION_MAX, "%lldms", (long long)ms);
        else if (s < 60)
                snprintf(ret, SNIB__DURATION_MAX, "%lld.%llds", s, (long long)ms / 100 % 10);
        else if (s < 3600)
                snprintf(ret, SNIB__DURATION_MAX, "%lldm%02llds", s / 60, s % 60);
        else if (s < 86400)
                snprintf(ret, SNIB__DURATION_MAX, "%lldh%02lldm", s / 3600, s / 60 % 60);
        else
                snprintf(ret, SNIB__DURATION_MAX, "%lldd%02lldh", s / 86400, s / 3600 % 24);
        return ret;
}

/* One write a line: lines of several processes on one terminal stay whole. */
static bool put_line(int fd, const char *line, size_t length)
{
        while (length > 0) {
                ssize_t n = write(fd, line, length);
                if (n <= 0)
                        return false;
                line += n;
                length -= (size_t)n;
        }
        return true;
}

static void note_unwritten(void)
{
        if (!unwritten)
                unwritten_why = errno;
        unwritten = true;
}

int snib__out_written(void)
{
        int copy;

        errno = 0;
        if (fflush(stdout) != 0 || ferror(stdout))
                note_unwritten();
        copy = dup(STDOUT_FILENO); /* some file systems tell of a full disk when a descriptor is closed */
        if (copy >= 0 && close(copy) < 0)
                note_unwritten();
        if (!unwritten)
                return 0;
        if (!unwritten_told)
                snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "the answer could not be written to stdout%s%s",
                               unwritten_why ? ": " : "", unwritten_why ? strerror(unwritten_why) : "");
        unwritten_told = true;
        return EXIT_FAILURE_OWN;
}

static void put_plain(const char *text)
{
        char line[LINE_MAX_ + 16];
        int n = snprintf(line, sizeof(line), "snib: %s\n", text);

        fflush(stdout);
        (void)put_line(STDERR_FILENO, line, (size_t)n); /* nobody reads it; there is nothing better to do */
}

int snib__out_fail(int exit, const char *code, const char *format, ...)
{
        char text[LINE_MAX_];
        va_list list;
        struct json j;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        if (!mode_now.json) {
                put_plain(text);
                return exit;
        }
        snib__json_begin(&j);
        snib__json_text(&j, "event", "error");
        if (code)
                snib__json_text(&j, "error", code);
        snib__json_int(&j, "exit", exit);
        snib__json_text(&j, "message", text);
        snib__json_end(&j, stderr);
        return exit;
}

static void put_event(const char *event, const char *text)
{
        struct json j;

        if (!mode_now.json) {
                put_plain(text);
                return;
        }
        snib__json_begin(&j);
        snib__json_text(&j, "event", event);
        snib__json_text(&j, "message", text);
        snib__json_end(&j, stderr);
}

void snib__out_note(const char *event, const char *format, ...)
{
        char text[LINE_MAX_];
        va_list list;

        if (mode_now.quiet)
                return;
        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        put_event(event, text);
}

void snib__out_warn(const char *event, const char *format, ...)
{
        char text[LINE_MAX_];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        put_event(event, text);
}

int snib__out_no(const struct out_no *no, const char *format, ...)
{
        char text[LINE_MAX_];
        va_list list;
        struct json j;

        if (mode_now.quiet)
                return no->exit;
        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        if (!mode_now.json) {
                snib__out_note(no->event, "%s (exit %d)", text, no->exit);
                return no->exit;
        }
        snib__json_begin(&j);
        snib__json_text(&j, "event", no->event);
        snib__json_name(&j, no->name, strlen(no->name));
        snib__json_int(&j, "exit", no->exit);
        snib__json_text(&j, "message", text);
        if (no->facts)
                no->facts(&j, no->arg);
        snib__json_end(&j, stderr);
        return no->exit;
}

void snib__json_begin(struct json *j)
{
        memset(j, 0, sizeof(*j));
        j->f = open_memstream(&j->text, &j->length);
        if (!j->f)
                abort(); /* out of memory at start-up size: nothing can be said any more */
        fputs("{", j->f);
        snib__json_int(j, "schema", 1);
}

static void put_string(FILE *f, const char *bytes, size_t length)
{
        const unsigned char *p = (const unsigned char *)bytes;

        fputc('"', f);
        for (size_t i = 0; i < length;) {
                size_t n = utf8_length(p + i, length - i);

                if (n == 0) {
                        fputs("\\ufffd", f);
                        n = 1;
                } else if (n == 1 && (p[i] == '"' || p[i] == '\\')) {
                        fprintf(f, "\\%c", p[i]);
                } else if (n == 1 && (p[i] < 0x20 || p[i] == 0x7f)) {
                        fprintf(f, "\\u%04x", p[i]);
                } else {
                        fwrite(p + i, 1, n, f);
                }
                i += n;
        }
        fputc('"', f);
}

static void put_key(struct json *j, const char *key)
{
        if (j->more)
                fputc(',', j->f);
        j->more = true;
        put_string(j->f, key, strlen(key));
        fputc(':', j->f);
}

void snib__json_bytes(struct json *j, const char *key, const char *bytes, size_t length)
{
        put_key(j, key);
        put_string(j->f, bytes, length);
}

void snib__json_text(struct json *j, const char *key, const char *text)
{
        snib__json_bytes(j, key, text, strlen(text));
}

void snib__json_int(struct json *j, const char *key, int64_t value)
{
        put_key(j, key);
        fprintf(j->f, "%lld", (long long)value);
}

void snib__json_bool(struct json *j, const char *key, bool value)
{
        put_key(j, key);
        fputs(value ? "true" : "false", j->f);
}

void snib__json_name(struct json *j, const char *bytes, size_t length)
{
        bool valid = true;

        snib__json_bytes(j, "name", bytes, length);
        for (size_t i = 0, n; valid && i < length; i += n) {
                n = utf8_length((const unsigned char *)bytes + i, length - i);
                valid = n > 0;
        }
        if (valid)
                return;
        put_key(j, "name_hex");
        fputc('"', j->f);
        for (size_t i = 0; i < length; i++)
                fprintf(j->f, "%02x", (unsigned char)bytes[i]);
        fputc('"', j->f);
}

void snib__json_end(struct json *j, FILE *to)
{
        fputs("}\n", j->f);
        fclose(j->f);
        if ((fflush(to) != 0 || !put_line(fileno(to), j->text, j->length)) && to == stdout)
                note_unwritten();
        free(j->text);
        j->text = NULL;
}
