# SPDX-License-Identifier: LGPL-2.1-or-later
"""For gdb: how the types of the public headers lie in memory, and what their enums count. NAMES=FILE has the types, one a line."""
import os

import gdb


def type_name(type_):
    return str(type_).replace("const ", "").replace("struct ", "").replace("enum ", "")


def describe(name):
    type_ = gdb.lookup_type(name).strip_typedefs()
    if type_.code == gdb.TYPE_CODE_ENUM:
        print("enum %s" % name)
        for field in type_.fields():
            print("    %s = %d" % (field.name, field.enumval))
    elif type_.code == gdb.TYPE_CODE_STRUCT and type_.fields():
        print("struct %s, %d bytes" % (name, type_.sizeof))
        for field in type_.fields():
            print("    %d %s: %s" % (field.bitpos // 8, field.name, type_name(field.type)))


with open(os.environ["NAMES"], encoding="utf-8") as names:
    for line in names:
        try:
            describe(line.strip())
        except gdb.error as error:
            print("%s: %s" % (line.strip(), error))
