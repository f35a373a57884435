/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fuzz target: any bytes as a URL, as a duration, as text to be shown. Beyond not crashing: what is
 * accepted fits its promises, what is refused leaves nothing behind, and no way of writing a
 * password shows it in an error or in the masked URL.
 */

#include "base/assert.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/url.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void snib__assert_fail(const char *condition, const char *file, int line)
{
        (void)fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
        abort();
}

static bool is_zero(const void *memory, size_t size)
{
        const unsigned char *bytes = memory;

        for (size_t i = 0; i < size; i++)
                if (bytes[i])
                        return false;
        return true;
}

static bool is_clean(const char *text)
{
        char again[2048];

        snib__text_clean(again, sizeof(again), text, strlen(text));
        return strcmp(again, text) == 0;
}

static void check_url(const char *text)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__url url;
        int r = snib__url_parse(text, &url, &err);

        if (r < 0) {
                snib__assert(r == SNIB_EURL);
                snib__assert(err.code == SNIB_EURL);
                snib__assert(err.text[0] && is_clean(err.text));
                snib__assert(is_zero(&url, sizeof(url)));
                return;
        }
        snib__assert(err.code == 0);
        snib__assert(url.scheme[0] >= 'a' && url.scheme[0] <= 'z');
        snib__assert(url.port >= 0 && url.port <= 65535);
        snib__assert(url.host[0] || url.port == 0);
        snib__assert(url.options >= 0 && url.options <= SNIB__URL_OPTIONS_MAX);
        snib__assert(url.has_authority || !url.has_password);
        if (url.options)
                snib__assert(snib__url_unused(&url, "none", &err) == SNIB_EURL);
        for (int i = 0; i < url.options; i++)
                snib__assert(snib__url_option(&url, url.option[i].key) == url.option[i].value);
        snib__assert(snib__url_unused(&url, "none", &err) == 0);
        snib__url_wipe(&url);
        snib__assert(is_zero(&url, sizeof(url)));
}

/* No password is shown, neither masked nor in an error. */
static void check_mask(const char *text)
{
        static const char secret[] = "~SECRET~";
        char masked[2048], url[4096];
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__url parsed;

        snib__url_mask(text, masked, sizeof(masked));
        snib__assert(is_clean(masked));
        snib__url_mask(text, masked, 7);
        snib__assert(strlen(masked) < 7);

        /* Whatever stands around it, a password before the host is not shown. (The fuzzer learns
         * the word.) */
        if (strstr(text, "SECRET"))
                return;
        (void)snprintf(url, sizeof(url), "redis://u:%s%.1000s@h%.1000s", secret, text, text);
        snib__url_mask(url, masked, sizeof(masked));
        snib__assert(!strstr(masked, secret));
        (void)snib__url_parse(url, &parsed, &err);
        snib__assert(!strstr(err.text, secret));
        snib__url_wipe(&parsed);
        (void)snprintf(url, sizeof(url), "redis://u:%.1000s%s@h", text, secret);
        snib__url_mask(url, masked, sizeof(masked));
        snib__assert(!strstr(masked, secret));
        err = (struct snib_error)SNIB_ERROR_INIT;
        (void)snib__url_parse(url, &parsed, &err);
        snib__assert(!strstr(err.text, secret));
        snib__url_wipe(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1), shown[64];
        int64_t ms = -1;

        if (!text)
                abort();
        if (size)
                memcpy(text, data, size);
        text[size] = 0;
        check_url(text);
        check_mask(text);
        if (snib__duration_parse(text, &ms) == 0)
                snib__assert(ms >= 0);
        else
                snib__assert(ms == -1);
        snib__text_clean(shown, sizeof(shown), (const char *)data, size);
        snib__assert(strlen(shown) < sizeof(shown) && is_clean(shown));
        free(text);
        return 0;
}
