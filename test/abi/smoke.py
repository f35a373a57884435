#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library through another language's eyes: loaded at run time, structs laid out by hand, one
lock taken and given back. Prints TAP.

    smoke.py LIBRARY.so VERSION
"""

import ctypes
import sys


class Error(ctypes.Structure):
    _fields_ = [('size', ctypes.c_size_t), ('code', ctypes.c_int), ('engine_code', ctypes.c_int), ('text', ctypes.c_char * 320)]


class LockOptions(ctypes.Structure):
    _fields_ = [('size', ctypes.c_size_t), ('kind', ctypes.c_int), ('name_len', ctypes.c_size_t), ('owner', ctypes.c_char_p),
                ('lease_ms', ctypes.c_int64), ('fixed_lease', ctypes.c_int), ('max_hold_ms', ctypes.c_int64)]


class LongerLockOptions(LockOptions):
    _fields_ = [('of_the_future', ctypes.c_int64)]


SIGNATURES = {
    'snib_version': (ctypes.c_char_p, []),
    'snib_strerror': (ctypes.c_char_p, [ctypes.c_int]),
    'snib_open': (ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(Error)]),
    'snib_close': (None, [ctypes.c_void_p]),
    'snib_lock_new': (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Error)]),
    'snib_lock_free': (None, [ctypes.c_void_p]),
    'snib_lock_acquire': (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Error)]),
    'snib_grant_valid': (ctypes.c_int, [ctypes.c_void_p]),
    'snib_grant_token': (ctypes.c_int64, [ctypes.c_void_p]),
    'snib_grant_release': (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Error)]),
}


def load(path):
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Tap:
    def __init__(self):
        self.number, self.failed = 0, False

    def check(self, name, expected, found):
        self.number += 1
        same = expected == found
        print(f'{"ok" if same else "not ok"} {self.number} - {name}')
        if not same:
            print(f'# expected {expected!r}, found {found!r}')
            self.failed = True


def new_lock(snib, client, options, err):
    lock = ctypes.c_void_p()
    return snib.snib_lock_new(client, b'smoke', options, ctypes.byref(lock), ctypes.byref(err)), lock


def main():
    snib, tap = load(sys.argv[1]), Tap()
    err = Error(size=ctypes.sizeof(Error))
    client, grant = ctypes.c_void_p(), ctypes.c_void_p()

    tap.check('the version is that of the build', sys.argv[2].encode(), snib.snib_version())
    tap.check('a wrong URL is refused', -4, snib.snib_open(ctypes.byref(client), b'nonsense', None, ctypes.byref(err)))
    tap.check('with its code in the error', -4, err.code)
    tap.check('with a text', True, len(err.text) > 0)
    tap.check('and nothing is written', None, client.value)
    tap.check('mem: opens', 0, snib.snib_open(ctypes.byref(client), b'mem:', None, ctypes.byref(err)))
    result, lock = new_lock(snib, client, None, err)
    tap.check('a lock is made', 0, result)
    tap.check('acquired', 1, snib.snib_lock_acquire(lock, 0, ctypes.byref(grant), ctypes.byref(err)))
    tap.check('valid', 1, snib.snib_grant_valid(grant))
    tap.check('with a token', True, snib.snib_grant_token(grant) > 0)
    tap.check('released', 1, snib.snib_grant_release(grant, ctypes.byref(err)))
    snib.snib_lock_free(lock)

    longer = LongerLockOptions(size=ctypes.sizeof(LongerLockOptions))
    result, lock = new_lock(snib, client, ctypes.byref(longer), err)
    tap.check('options of a newer header with a zero tail are taken', 0, result)
    snib.snib_lock_free(lock)
    longer.of_the_future = 1
    result, lock = new_lock(snib, client, ctypes.byref(longer), err)
    tap.check('options of a newer header that ask for something unknown are refused', True, result < 0)
    tap.check('and nothing is written', None, lock.value)
    snib.snib_close(client)
    print(f'1..{tap.number}')
    return 1 if tap.failed else 0


if __name__ == '__main__':
    sys.exit(main())
