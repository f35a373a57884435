#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public functions and their contracts, read from include/snib/: for tools/gen-docs,
tools/gen-man and tools/check-docs, which print and check them.

    tools/contracts.py     what is wrong with them, one line each; fails if there is any

Every function has a comment of its own, right before its declaration. The first sentence of it says
what the function does, and begins with a verb: "Opens a client." Tables and man pages print it.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONTRACT_WORDS_MIN = 5
FIRST_WORDS_MIN = 3
# What says nothing by itself in a table.
BORROWED = re.compile(r'(As|The same|Same|See|Like|Without|1|0)\b')


class Contract:
    def __init__(self, header, name, comment, code):
        self.header, self.name, self.code = header, name, code
        self.lines = re.sub(r'^\s*\* ?', '', comment.strip(), flags=re.MULTILINE).strip().splitlines() if comment else []

    @property
    def words(self):
        return ' '.join(' '.join(self.lines).split())

    @property
    def first(self):
        """The first sentence, without its full stop."""
        return re.split(r'(?<=\.)(?:\s|$)', self.words, maxsplit=1)[0].rstrip('.')


def headers(root=ROOT):
    return sorted((root / 'include/snib').glob('*.h'))


def contracts(root=ROOT):
    found = []
    for path in headers(root):
        text = path.read_text()
        for match in re.finditer(r'^SNIB_API\b[^;(]*?\b(\w+)\s*\([^;]*;', text, re.MULTILINE):
            comment = re.search(r'/\*((?:(?!\*/).)*)\*/\n\Z', text[:match.start()], re.DOTALL)
            found.append(Contract(path.name, match.group(1), comment and comment.group(1), match.group(0)))
    return found


def typedefs(root=ROOT):
    """{name: declaration} of what callbacks look like."""
    found = {}
    for path in headers(root):
        for match in re.finditer(r'^typedef [^;{]*?\b(\w+)\([^;]*;', path.read_text(), re.MULTILINE):
            found[match.group(1)] = match.group(0)
    return found


def complaint(contract, seen):
    first = contract.first
    if len(contract.words.split()) < CONTRACT_WORDS_MIN:
        return 'needs a contract in a comment of its own, right before it: meaning, ownership, errors, blocking, threads'
    if not contract.words.startswith(first + '.') or len(first.split()) < FIRST_WORDS_MIN:
        return f'the contract must begin with a sentence, not "{first[:60]}"'
    if BORROWED.match(first) or not re.match(r'[A-Z][a-z]+s\b|Does\b', first):
        return f'the first sentence must say what it does, and begin with a verb ("Opens a client."), not "{first[:60]}"'
    if first in seen:
        return f'the first sentence is that of {seen[first]}(): "{first}"; say what is different'
    return None


def complaints(root=ROOT):
    found, seen = [], {}
    for contract in contracts(root):
        wrong = complaint(contract, seen)
        if wrong:
            found.append(f'include/snib/{contract.header}: {contract.name}(): {wrong}')
        seen[contract.first] = contract.name
    return found


if __name__ == '__main__':
    for line in complaints():
        print(line)
    sys.exit(1 if complaints() else 0)
