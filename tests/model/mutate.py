#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a faulty copy of a C file: mutate.py INPUT OUTPUT FROM TO. FROM has to be there exactly once; white space in it
stands for any, since lines are broken by clang-format."""
import re
import sys

source, target, old, new = sys.argv[1:]
text = open(source, encoding="utf-8").read()
pattern = r"\s+".join(re.escape(word) for word in old.split())
found = len(re.findall(pattern, text))
if found != 1:
    sys.exit(f"{source}: '{old}' is there {found} times: the mutant is to be written anew")
with open(target, "w", encoding="utf-8") as file:
    file.write(re.sub(pattern, lambda _: new, text))
