#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a text file as a C string: embed.py INPUT OUTPUT SYMBOL HEADER"""

import sys

ESCAPES = {'\\': '\\\\', '"': '\\"', '\t': '\\t'}


def main(source, target, symbol, header):
    with open(source, encoding='utf-8') as file:
        lines = file.read().splitlines()
    with open(target, 'w', encoding='utf-8') as file:
        file.write(f'/* Made from {source.rsplit("/", 1)[-1]}. */\n#include "{header}"\n\nconst char {symbol}[] =\n')
        for line in lines:
            text = ''.join(ESCAPES.get(c, c) for c in line)
            file.write(f'  "{text}\\n"\n')
        file.write('  "";\n')


main(*sys.argv[1:])
