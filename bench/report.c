/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes what was measured as JSON while it is measured: an object with facts about the run, and
 * rows of figures with the value of every round. It computes nothing; medians, ratios and pictures
 * are made of it by report.py. One file at a time, by the main thread.
 */

#include "bench.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static FILE *file;
static enum { FACTS, ROWS } part;
static int entries; /* of the part */

static void write_text(const char *text)
{
        fputc('"', file);
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        fputc('\\', file);
                fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
        fputc('"', file);
}

void bench_report_open(const char *path)
{
        file = fopen(path, "we");
        if (!file)
                bench_die("%s: %s", path, strerror(errno));
        part = FACTS;
        entries = 0;
        fprintf(file, "{\n\"about\": {");
}

void bench_report_fact(const char *name, const char *text)
{
        if (!file)
                return;
        fprintf(file, "%s\n  ", entries++ ? "," : "");
        write_text(name);
        fprintf(file, ": ");
        write_text(text);
}

static void begin_rows(void)
{
        if (part == ROWS)
                return;
        fprintf(file, "\n},\n\"rows\": [");
        part = ROWS;
        entries = 0;
}

void bench_report_row(const char *scenario, int size, const char *system)
{
        if (!file)
                return;
        begin_rows();
        fprintf(file, "%s\n  {\"scenario\": ", entries++ ? "}," : "");
        write_text(scenario);
        fprintf(file, ", \"size\": %d, \"system\": ", size);
        write_text(system);
}

static void write_number(double value)
{
        if (isfinite(value))
                fprintf(file, "%.6g", value);
        else
                fprintf(file, "null");
}

void bench_report_figure(const char *name, const double *rounds, int count)
{
        if (!file)
                return;
        fprintf(file, ", ");
        write_text(name);
        for (int i = 0; i < count; i++) {
                fprintf(file, "%s", i ? ", " : ": [");
                write_number(rounds[i]);
        }
        fprintf(file, "]");
}

void bench_report_close(void)
{
        if (!file)
                return;
        begin_rows();
        fprintf(file, "%s\n]\n}\n", entries ? "}" : "");
        if (fclose(file))
                bench_die("the results cannot be written: %s", strerror(errno));
        file = NULL;
}
