#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C file with the scripts of the Redis engine as texts, each with the SHA-1 under which a
Redis server knows it.

usage: embed.py OUTPUT DEPFILE SCRIPT.h

The enum in SCRIPT.h is the list: SNIB__SCRIPT_FAIR stands for scripts/fair.lua beside it, and the
table is in its order. DEPFILE is told, in make's language, which files were read. A line "-- include FILE" stands for the lines of that file beside the script: what several scripts
share. Other comment lines, empty lines and indentation stay behind: the text travels to every
server once per connection. The output is the same for the same input. """
import hashlib
import os
import re
import sys

read = []  # every file


def body(path):
    text = ""
    read.append(path)
    with open(path, encoding="ascii") as source:
        for line in map(str.strip, source):
            if line.startswith("-- include "):
                text += body(os.path.join(os.path.dirname(path), line.split()[2]))
            elif line and not line.startswith("--"):
                text += line + "\n"
    return text


def literal(text):
    quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines())
    return "\n".join('         "%s\\n"' % line for line in quoted)


def listed(header):
    """The paths of the scripts that the enum names."""
    read.append(header)
    with open(header, encoding="ascii") as source:
        names = re.findall(r"^ *SNIB__SCRIPT_(\w+)", source.read(), re.M)
    return [os.path.join(os.path.dirname(header), "scripts", name.lower() + ".lua") for name in names]


def main():
    output, depfile, header = sys.argv[1:]
    with open(output, "w", encoding="ascii") as c:
        c.write("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tools/embed.py; the sources are the .lua files. */\n\n")
        c.write('#include "engine/redis/script.h"\n\n')
        # C99 asks for 4,095 characters of a literal; the compilers that this is built with take
        # more.
        c.write('#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n')
        c.write("const struct snib__redis_script snib__redis_scripts_built_in[] = {\n")
        for path in listed(header):
            text = body(path)
            name = os.path.splitext(os.path.basename(path))[0]
            sha1 = hashlib.sha1(text.encode("ascii")).hexdigest()
            c.write('        {"%s", "%s", %d,\n%s},\n' % (name, sha1, len(text), literal(text)))
        c.write("};\n")
    with open(depfile, "w", encoding="ascii") as d:
        d.write("%s: %s\n" % (output, " ".join(dict.fromkeys(read))))


if __name__ == "__main__":
    main()
