#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `meson install` leaves is enough for a program: found by pkg-config and by CMake, compiled,
run; and for its author: `man` finds a page for every function. Prints TAP.

    install.py BUILD-DIRECTORY
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# A program of its own, for what the README's does not show.
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
        struct snib_scope held = SNIB_SCOPE_INIT;
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
foreach(version 0.2 0.1.99 1.0 0.0)
  find_package(snib ${version} QUIET)
  if(snib_FOUND)
    message(FATAL_ERROR "it says it is good for ${version}")
  endif()
endforeach()
find_package(snib 0.1.0 EXACT REQUIRED)
find_package(snib 0.1 REQUIRED)
add_executable(shop shop.c)
target_link_libraries(shop @TARGET@)
'''


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        print('\n'.join('# ' + line for line in done.stdout.splitlines()[-20:]))
    return done.stdout if done.returncode == 0 else None


def by_pkg_config(stage, work, libdir, *static):
    env = {**os.environ, 'PKG_CONFIG_PATH': str(libdir / 'pkgconfig'), 'PKG_CONFIG_SYSROOT_DIR': str(stage)}
    flags = run(['pkg-config', *static, '--cflags', '--libs', 'snib'], env=env)
    if flags is None or run(['cc', 'shop.c', '-o', 'shop', *flags.split()], cwd=work) is None:
        return False
    return (run(['./shop'], cwd=work, env={**os.environ, 'LD_LIBRARY_PATH': str(libdir)}) or '').startswith('1 ')


def of_the_readme(stage, work, libdir):
    """The README's program, by the README's command: the text of both is taken from there."""
    text = (ROOT / 'README.md').read_text()
    programs = re.findall(r'^```c\n(.*?)^```', text, re.DOTALL | re.MULTILINE)
    commands = re.findall(r'^```\n(cc shop\.c .*?)^```', text, re.DOTALL | re.MULTILINE)
    if len(programs) != 1 or len(commands) != 1 or 'int main(' not in programs[0]:
        return complain([f'README.md has {len(programs)} programs in C and {len(commands)} commands to compile it'])
    place = work / 'readme'
    place.mkdir()
    (place / 'shop.c').write_text(programs[0])
    env = {**os.environ, 'PKG_CONFIG_PATH': str(libdir / 'pkgconfig'), 'PKG_CONFIG_SYSROOT_DIR': str(stage), 'LD_LIBRARY_PATH': str(libdir)}
    strict = run(['sh', '-c', commands[0].replace('cc shop.c', 'cc -std=c99 -Wall -Wextra -Werror shop.c').replace('./shop', 'true')], cwd=place, env=env)
    free = run(['sh', '-c', commands[0]], cwd=place, env={**env, 'SNIB_URL': f'local:{place}/locks'})
    wrong = run(['sh', '-c', './shop; test $? = 1'], cwd=place, env={**env, 'SNIB_URL': 'nonsense'})
    return complain([f'it said: {said!r}' for said, expected in [(strict, ''), (free, 'sold under token '), (wrong, 'the URL does not begin with a scheme')]
                     if said is None or expected not in said])


def by_cmake(work, libdir, target):
    (work / 'CMakeLists.txt').write_text(CMAKE.replace('@TARGET@', target))
    shutil.rmtree(work / 'b', ignore_errors=True)
    prefix = next(path for path in libdir.parents if (path / 'include/snib').is_dir())
    if run(['cmake', '-S', '.', '-B', 'b', f'-DCMAKE_PREFIX_PATH={prefix}'], cwd=work) is None:
        return False
    return run(['cmake', '--build', 'b'], cwd=work) is not None and (run(['b/shop'], cwd=work) or '').startswith('1 ')


def libraries_of(option, work):
    """Which libraries are installed with a default_library: of a build that is set up and not made."""
    if run(['meson', 'setup', f'--default-library={option}', '-Dtests=false', '-Dbench=false', str(ROOT), str(work / option)]) is None:
        return None
    listed = json.loads(subprocess.run(['meson', 'introspect', '--installed', str(work / option)], stdout=subprocess.PIPE, check=True).stdout)
    return sorted({Path(path).name for path in listed.values() if re.search(r'/libsnib\.(a|so)$', path)})


def what_is_shown(archive):
    """What of the archive a program or library that links it would show to others: nothing but the public functions."""
    text = subprocess.run(['readelf', '-sW', archive], stdout=subprocess.PIPE, text=True, check=True).stdout
    fields = [line.split() for line in text.splitlines() if re.match(r'\s+\d+:', line)]
    shown = {f[7] for f in fields if len(f) > 7 and f[4] in ('GLOBAL', 'WEAK') and f[5] == 'DEFAULT' and f[6] != 'UND'}
    names = {f[7] for f in fields if len(f) > 7 and f[4] in ('GLOBAL', 'WEAK') and f[6] != 'UND'}
    return [f'{name} is shown' for name in sorted(shown - set(functions()))] + [f'{name} could clash' for name in sorted(names) if not name.startswith('snib_')]


def statically(stage, work, libdir, build):
    """Results with the static library as it is installed beside the shared one, then alone."""
    thin = Path(build).resolve() / 'src/libsnib.a'  # meson copies the members when it installs, not before
    members = subprocess.run(['ar', 't', thin.name], cwd=thin.parent, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    archive = libdir / 'libsnib.a'
    subprocess.run(['ar', 'qcs', str(archive), *members], cwd=thin.parent, check=True)
    cmake = shutil.which('cmake')
    skip = '' if cmake else ' # SKIP there is no cmake'
    results = [('-Ddefault_library says which libraries are installed', complain(
                   [f'{option}: {found}' for option, wanted in [('both', ['libsnib.a', 'libsnib.so']), ('static', ['libsnib.a'])]
                    for found in [libraries_of(option, work)] if found != wanted]), ''),
               ('the static library shows the public functions and nothing else', complain(what_is_shown(archive)), ''),
               ('a program links snib::static by CMake', not cmake or by_cmake(work, libdir, 'snib::static'), skip)]
    for path in libdir.glob('libsnib.so*'):
        path.unlink()
    return results + [
        ('a program links the static library alone by pkg-config --static', by_pkg_config(stage, work, libdir, '--static'), ''),
        ('snib::snib of CMake is the static library where it is alone', not cmake or by_cmake(work, libdir, 'snib::snib'), skip)]


def functions():
    """The public functions, as the compiler's eyes see them: not by the parser that makes the
    pages."""
    text = subprocess.run(['gcc', '-E', '-P', '-I', str(ROOT / 'include'), str(ROOT / 'include/snib/snib.h')], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return sorted(set(re.findall(r'visibility\("default"\)\)\)[^;(]*?\b(snib_\w+)\s*\(', text)))


def man_pages(stage):
    """What is wrong with the pages of the functions."""
    folders = [p.parent for p in stage.rglob('man3/snib_lock.3')]
    if not folders:
        return ['there is no man3/snib_lock.3']
    wrong = [f'there is no page for {name}()' for name in functions() if not (folders[0] / f'{name}.3').exists()]
    wrong += [f'the link {page.name} leads nowhere' for page in folders[0].glob('*.3') for target in re.findall(r'^\.so (\S+)$', page.read_text(), re.MULTILINE)
              if not (folders[0].parent / target).exists()]
    if shutil.which('groff'):
        said = subprocess.run(['groff', '-t', '-man', '-rcR=1', '-ww', '-z', *map(str, sorted(folders[0].parent.glob('man*/*')))], cwd=folders[0].parent,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
        wrong += said.splitlines()[:20]
    return wrong


def shown_by_man(stage):
    """man's own output for one function, a struct and a macro."""
    folder = next(p.parent.parent for p in stage.rglob('man3/snib_lock.3'))
    wrong = []
    for topic, expected in [('snib_lock_acquire', 'Acquires a lock, and waits for it if it is held'), ('snib_latch_cancel', 'SNIB_ECANCELLED'),
                            ('snib_lock_options', 'fixed_lease'), ('SNIB_WITH_LOCK', 'every way out of the block'), ('snib', 'run a command under a lock')]:
        done = subprocess.run(['man', '-M', str(folder), topic], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, 'MANWIDTH': '200', 'MANPAGER': 'cat', 'LC_ALL': 'C.UTF-8'})
        if done.returncode or expected not in ' '.join(re.sub('.\b', '', done.stdout).split()):
            wrong.append(f'man {topic} does not say "{expected}" but: {done.stdout[:200]}')
    return wrong


def complain(lines):
    for line in lines:
        print(f'# {line}')
    return not lines


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
            results.append(('the program of the README compiles and runs by its own command', of_the_readme(stage, work, libdir), ''))
            cmake = shutil.which('cmake')
            results.append(('a program finds it by CMake', not cmake or by_cmake(work, libdir, 'snib::snib'), '' if cmake else ' # SKIP there is no cmake'))
            results.append(('every function has a man page, and groff has nothing to say about any page', complain(man_pages(stage)), ''))
            man = shutil.which('man')
            results.append(('man finds functions, structs and the macro', not man or complain(shown_by_man(stage)), '' if man else ' # SKIP there is no man'))
            results.append(('the command is there', bool(list(stage.rglob('bin/snib'))), ''))
            completions = [list(stage.rglob(p)) for p in ('bash-completion/completions/snib', 'zsh/site-functions/_snib', 'fish/vendor_completions.d/snib.fish')]
            results.append(('its completion for bash, zsh and fish is there', all(f and f[0].stat().st_size > 1000 for f in completions), ''))
            results += statically(stage, work, libdir, sys.argv[1])
    print(f'1..{len(results)}')
    for i, (what, good, skip) in enumerate(results, 1):
        print(f'{"ok" if good else "not ok"} {i} - {what}{skip}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
