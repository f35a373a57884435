#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the checking tools see what they are there to see? Plants one violation at a time in a small
tree of its own. Prints TAP.

    tools_see.py TOOLS_DIRECTORY COMPILER
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

OPENING = '''/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A planted file with an opening paragraph of more than twelve words, so that it is only wrong
 * where it should be.
 */

'''
GOOD = OPENING + 'int snib__good(int a)\n{\n        return a;\n}\n'
LONG = OPENING + 'int snib__long(int a)\n{\n' + '        a++;\n' * 100 + '        return a;\n}\n'

# (name, tool, file, text, the line that must come)
PLANTS = [
    ('a model that includes the engine', 'check-layers', 'src/model/x.c', OPENING + '#include "engine/engine.h"\n', 'must not include "engine/engine.h"'),
    ('a core that includes a system header', 'check-layers', 'src/core/x.c', OPENING + '#include <unistd.h>\n', 'in a pure folder'),
    ('a runtime that knows an engine', 'check-layers', 'src/runtime/x.c', OPENING + '#include "engine/redis/redis.h"\n', 'only "engine/engine.h"'),
    ('an engine that knows another', 'check-layers', 'src/engine/redis/x.c', OPENING + '#include "engine/local/local.h"\n', 'must not include another'),
    ('a command that knows internals', 'check-layers', 'cli/x.c', OPENING + '#include "base/list.h"\n', 'use the public headers'),
    ('a public header that includes too much', 'check-layers', 'include/snib/x.h', '#include <pthread.h>\n', 'a public header includes'),
    ('a function of 104 lines', 'check-style', 'src/base/x.c', LONG, 'snib__long has 104 lines'),
    ('a file without licence', 'check-style', 'src/base/x.c', '\n' + GOOD, 'the first line is'),
    ('a file without opening', 'check-style', 'src/base/x.c', GOOD.replace('A planted', '*/\n/*'), 'begin with a paragraph'),
    ('a banned function', 'check-style', 'cli/x.c', GOOD.replace('return a', 'return atoi ("1")'), 'atoi(): use'),
    ('a library that prints', 'check-style', 'src/api/x.c', GOOD.replace('return a', 'return printf("")'), 'the library never prints'),
    ('a header without guard', 'check-style', 'src/base/x.h', OPENING, 'needs #ifndef'),
    ('a path of one machine', 'check-style', 'doc/x.md', 'see /home/' + 'me/x\n', '/home/me'),
    ('a script that compares texts', 'check-style', 'src/engine/redis/x.lua', "return ARGV[1] > '0'\n", 'compare numbers'),
    ('a long line of prose', 'check-style', 'doc/x.md', 'word ' * 21 + '\n', '105 columns'),
    ('a long line of comment', 'check-style', 'src/base/x.c', GOOD + '/* ' + 'word ' * 20 + '*/\n', '105 columns'),
    ('a function without a contract of its own', 'contracts.py', 'include/snib/x.h', '/* Makes a handle of an x. Never blocks. */\nSNIB_API int snib_x(void);\n'
     'SNIB_API void snib_y(void);\n', 'snib_y(): needs a contract'),
    ('a first sentence that says nothing by itself', 'contracts.py', 'include/snib/x.h', '/* As snib_x(), but without any waiting. */\nSNIB_API int snib_y(void);\n',
     'begin with a verb'),
    ('the same first sentence twice', 'contracts.py', 'include/snib/x.h', '/* Makes a handle of it. */\nSNIB_API int snib_x(void);\n\n'
     '/* Makes a handle of it. */\nSNIB_API int snib_y(void);\n', 'is that of snib_x()'),
    ('something left for later', 'check-style', 'src/base/x.c', GOOD + '/* TO' + 'DO */\n', 'finish it'),
]


def run(tool, root, *arguments):
    return subprocess.run([sys.executable, str(root / 'tools' / tool), *arguments], stdout=subprocess.PIPE, text=True, check=False)


def new_tree(tools, directory):
    root = Path(directory)
    (root / 'tools').mkdir()
    for tool in ('check-layers', 'check-style', 'contracts.py'):
        shutil.copy(tools / tool, root / 'tools')
    for folder in ('src/base', 'src/model', 'src/core', 'src/engine/redis', 'src/engine/local', 'src/runtime', 'src/api', 'cli', 'examples',
                   'include/snib', 'test', 'doc'):
        (root / folder).mkdir(parents=True)
    for folder in ('src/base', 'test'):
        (root / folder / 'good.c').write_text(GOOD)
    return root


def sees_plant(tools, tool, file, text, expected):
    with tempfile.TemporaryDirectory() as directory:
        root = new_tree(tools, directory)
        before = run(tool, root)
        (root / file).write_text(text)
        after = run(tool, root)
    if before.returncode:
        return f'the empty tree is refused: {before.stdout}'
    return None if after.returncode and expected in after.stdout else f'not seen: {after.stdout}'


# (what the tool sees, {library: {source: (what it has, what it calls)}}, the line that must come)
OBJECTS = [
    ('a pure object that asks for the time', {'model': {'x.c': ('snib__x', 'time')}}, 'model/x.c.o calls time'),
    ('a runtime that calls the api', {'runtime': {'x.c': ('snib__x', 'snib_y')}, 'api': {'y.c': ('snib_y', 'snib__x')}},
     'src/runtime/x.c calls snib_y of src/api/y.c'),
    ('a base that calls an engine', {'base': {'x.c': ('snib__x', 'snib__y')}, 'engine': {'redis_y.c': ('snib__y', 'time')}},
     'src/base/x.c calls snib__y of src/engine/redis/y.c'),
    ('a circle through two folders', {'engine': {'x.c': ('snib__x', 'snib__y'), 'redis_y.c': ('snib__y', 'snib__x')}},
     'src/engine/redis/y, src/engine/x need each other'),
    ('a circle of includes and calls', {'engine': {'x.c': ('snib__x', 'snib__y'), 'redis_y.c': ('snib__y', 'time')},
                                        'include': {'redis/y.h': '#include "engine/x.h"\n', 'x.h': '\n'}}, 'src/engine/redis/y, src/engine/x need each other'),
]


def sees_objects(tools, compiler, libraries, expected):
    with tempfile.TemporaryDirectory() as directory:
        root, paths = new_tree(tools, directory), []
        for file, text in libraries.get('include', {}).items():
            (root / 'src/engine' / file).write_text(text)
        for library, sources in libraries.items():
            if library == 'include':
                continue
            objects = []
            for name, (has, calls) in sources.items():
                (root / 'plant.c').write_text(f'long {calls}(void);\nlong {has}(void);\nlong {has}(void)\n{{\n        return {calls}();\n}}\n')
                objects.append(str(root / f'{name}.o'))
                subprocess.run([*compiler, '-c', '-fno-builtin', '-o', objects[-1], str(root / 'plant.c')], check=True)
            paths.append(str(root / f'lib{library}.a'))
            subprocess.run(['ar', 'rc', paths[-1], *objects], check=True)
        result = run('check-layers', root, *paths)
    return None if result.returncode and expected in result.stdout else f'not seen: {result.stdout}'


def main():
    tools, compiler = Path(sys.argv[1]), sys.argv[2:]
    complaints = [(f'{tool} sees {name}', sees_plant(tools, tool, file, text, expected)) for name, tool, file, text, expected in PLANTS]
    complaints += [(f'check-layers sees {name}', sees_objects(tools, compiler, libraries, expected)) for name, libraries, expected in OBJECTS]
    return tap.report(complaints)


if __name__ == '__main__':
    sys.exit(main())
