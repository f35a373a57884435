/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a fuzz target over its corpus as an ordinary test, with any compiler: every file of the
 * directory named in argv[1] as it is, cut at every byte, and with each byte changed a little. What
 * libFuzzer would see at first, without its search. Prints TAP, one line a file; a finding is a
 * crash, so the name of the file is printed before it is tried.
 */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 65536
/* Longer inputs are tried as they are: the neighbours would take quadratic time. */
#define NEIGHBOURS_MAX 4096

/* Tries a copy on the heap of just this size, so that a sanitizer sees a read past its end. */
static void try(const unsigned char *data, size_t size)
{
        unsigned char *copy = malloc(size ? size : 1);

        if (!copy)
                abort();
        memcpy(copy, data, size);
        (void)LLVMFuzzerTestOneInput(copy, size);
        free(copy);
}

static void try_neighbours(unsigned char *data, size_t size)
{
        static const unsigned char changes[] = {0x01, 0x20, 0x80, 0xff};

        for (size_t i = 0; i < size; i++) {
                try(data, i);
                for (size_t c = 0; c < sizeof(changes); c++) {
                        data[i] ^= changes[c];
                        try(data, size);
                        data[i] ^= changes[c];
                }
        }
}

/* False if the file cannot be read. */
static int try_file(const char *path)
{
        static unsigned char data[INPUT_MAX];
        FILE *file = fopen(path, "rb");
        size_t size;
        int good;

        if (!file)
                return 0;
        size = fread(data, 1, sizeof(data), file);
        good = !ferror(file);
        (void)fclose(file);
        if (!good)
                return 0;
        try(data, size);
        if (size <= NEIGHBOURS_MAX)
                try_neighbours(data, size);
        return 1;
}

static int is_input(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
        struct dirent **entries = NULL;
        int failed = 0, count = argc == 2 ? scandir(argv[1], &entries, is_input, alphasort) : -1;

        if (count < 1) {
                printf("Bail out! usage: %s DIRECTORY, with at least one input in it\n", argv[0]);
                return 1;
        }
        printf("1..%d\n", count);
        for (int i = 0; i < count; i++) {
                char path[4096];
                int good;

                (void)snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
                printf("# %s\n", entries[i]->d_name);
                (void)fflush(stdout);
                good = try_file(path);
                failed += !good;
                printf("%s %d - %s\n", good ? "ok" : "not ok", i + 1, entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
        return failed != 0;
}
