#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `meson install` leaves is enough for a program: found by pkg-config and by CMake, compiled, run. Prints TAP.

    install.py BUILD-DIRECTORY
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = r'''
#include <snib/snib.h>
#include <stdio.h>
int main(void)
{
        snib_client *client;
        snib_lock *lock;
        int runs = 0;
        if (snib_open(&client, "mem:", NULL, NULL) < 0 || snib_lock_new(client, "stock:42", NULL, &lock, NULL) < 0)
                return 1;
        SNIB_WITH_LOCK (held, lock, 2000)
                runs += snib_grant_token(held.grant) > 0;
        snib_lock_free(lock);
        snib_close(client);
        printf("%d %s\n", runs, snib_version());
        return 0;
}
'''
CMAKE = '''
cmake_minimum_required(VERSION 3.18)
project(shop C)
find_package(snib REQUIRED)
add_executable(shop shop.c)
target_link_libraries(shop snib::snib)
'''


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        print('\n'.join('# ' + line for line in done.stdout.splitlines()[-20:]))
    return done.stdout if done.returncode == 0 else None


def by_pkg_config(stage, work, libdir):
    env = {**os.environ, 'PKG_CONFIG_PATH': str(libdir / 'pkgconfig'), 'PKG_CONFIG_SYSROOT_DIR': str(stage)}
    flags = run(['pkg-config', '--cflags', '--libs', 'snib'], env=env)
    if flags is None or run(['cc', 'shop.c', '-o', 'shop', *flags.split()], cwd=work) is None:
        return False
    return (run(['./shop'], cwd=work, env={**os.environ, 'LD_LIBRARY_PATH': str(libdir)}) or '').startswith('1 ')


def by_cmake(work, libdir):
    (work / 'CMakeLists.txt').write_text(CMAKE)
    if run(['cmake', '-S', '.', '-B', 'b', f'-Dsnib_DIR={libdir / "cmake" / "snib"}'], cwd=work) is None:
        return False
    return run(['cmake', '--build', 'b'], cwd=work) is not None and (run(['b/shop'], cwd=work) or '').startswith('1 ')


def main():
    with tempfile.TemporaryDirectory() as name:
        stage, work = Path(name) / 'stage', Path(name) / 'work'
        work.mkdir()
        (work / 'shop.c').write_text(PROGRAM)
        installed = run(['meson', 'install', '-C', sys.argv[1], '--destdir', str(stage), '--no-rebuild']) is not None
        configs = list(stage.rglob('snib.pc'))
        results = [('installs', installed and len(configs) == 1, '')]
        if results[0][1]:
            libdir = configs[0].parent.parent
            results.append(('a program finds it by pkg-config', by_pkg_config(stage, work, libdir), ''))
            cmake = shutil.which('cmake')
            results.append(('a program finds it by CMake', not cmake or by_cmake(work, libdir), '' if cmake else ' # SKIP there is no cmake'))
            results.append(('the command is there', bool(list(stage.rglob('bin/snib'))), ''))
    print(f'1..{len(results)}')
    for i, (what, good, skip) in enumerate(results, 1):
        print(f'{"ok" if good else "not ok"} {i} - {what}{skip}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
