#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the string literals of C sources that people read, file by file, in the order of the source.

    literals.py [--without DIR]... [--skip FILE]... DIR...

Adjacent literals are joined; a macro among them, such as PRIu64, is printed as <PRIu64>. A literal is printed
if it has a word and a blank, or a word alone where people read what the function around it is given (SPOKEN). Before
it stands the innermost call, or "-" outside of calls (a table, an assignment). Escapes stay as in the source. Files are
named by their base name and lines by nothing, so that neither moving a file nor adding a line changes the output.
"""

import argparse
import pathlib
import re
import sys

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<directive>^[ \t]*\#(?:/\*.*?\*/|[^\n\\]|\\.)*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<char>'(?:[^'\\\n]|\\.)*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d[\w.]*)
      | (?P<punct>[^\s\w])""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
DEFINE = re.compile(r"\s*#\s*define\s+\w+(?:\([^)]*\))?(?P<body>.*)", re.DOTALL)
FORMAT = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?(?:[A-Za-z]|<\w+>|%)|<\w+>|\\.")
# A pattern for fnmatch(), such as "serial *|console *".
GLOB = re.compile(r"[a-z ]+\*(?:\|[a-z ]+\*)*")
KEYWORDS = {"return", "case", "else", "if", "for", "while", "switch", "sizeof", "static", "const", "char"}
# What these are given is read by programs, or by whoever compiles it.
SILENT = {
    "G_STATIC_ASSERT",
    "_Static_assert",
    "g_regex_new",
    "json_pack",
    "json_unpack",
    "json_unpack_ex",
    "sscanf",
    "static_assert",
}
# What these are given is read by people, be it one word.
SPOKEN = {
    "g_prefix_error",
    "g_set_error",
    "g_set_error_literal",
    "job_add_event",
    "job_note_failure",
    "job_set_next_action",
    "lifecycle_enter_phase",
    "log_job",
    "log_job_by",
    "log_message",
    "print_field",
    "term_error",
    "term_print",
}


def tokens(text):
    """(kind, text) of each token; a #define's body is between two "end" tokens."""
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "directive":
            define = DEFINE.match(match.group())
            yield "end", ""
            if define:
                yield from tokens(";" + define.group("body"))
            yield "end", ""
        elif kind != "comment":
            yield kind, match.group()


def is_part(kind, text):
    return kind == "string" or (kind == "name" and text not in KEYWORDS)


def literals(text):
    r"""(callee or None, literal) of each run of adjacent literals.

    >>> for row in literals(r'''
    ... #include "a b.h"
    ... #define ABOUT "It is \
    ... \"here\"." /* not
    ... "here" */
    ... static const char *const rows[] = {[ONE] = "one or " "more", F(x, 'x') ? "a" : "b"}; // "not here"
    ... log_job(job, '"', quoted("x"), "%" PRIu64 " bytes " /* nor here */ "left");
    ... if (a) return "the end";
    ... '''):
    ...     print(*row)
    None It is \"here\".
    None one or more
    None a
    None b
    quoted x
    log_job %<PRIu64> bytes left
    None the end
    """
    callees, run = [], []
    before = ("end", "")
    # As in C, lines that end in a backslash are joined before anything else.
    for kind, token in [*tokens(text.replace("\\\n", "")), ("end", "")]:
        if is_part(kind, token):
            run.append((kind, token))
        else:
            # f("…"): the name belongs to the call, not to the literal before it.
            if any(part == "string" for part, _ in run):
                callee = next((name for name in reversed(callees) if name), None)
                yield callee, "".join(word[1:-1] if part == "string" else f"<{word}>" for part, word in run)
            run = []
        if kind == "end":
            callees.clear()  # a macro need not be balanced
        elif token in ("(", "[", "{"):
            is_call = token == "(" and before[0] == "name" and before[1] not in KEYWORDS
            callees.append(before[1] if is_call else None)
        elif token in (")", "]", "}") and callees:
            callees.pop()
        before = (kind, token)


def is_read(callee, literal):
    if callee in SILENT or not re.search(r"[A-Za-z]{2,}", FORMAT.sub("", literal)):
        return False
    return callee in SPOKEN or (re.search(r"\s|\\n", literal) is not None and not GLOB.fullmatch(literal))


def words_of(path):
    text = path.read_text(encoding="utf-8")
    return tuple(
        f'  {callee or "-"}: "{literal}"'
        for callee, literal in literals(text)
        if is_read(callee, literal)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--skip", action="append", default=[], help="a base name")
    parser.add_argument("directories", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    files = []
    for directory in options.directories:
        for path in directory.rglob("*.[ch]"):
            if path.name not in options.skip and not any(without in path.parents for without in options.without):
                files.append((path.name, words_of(path)))
    # By name and, where two folders have a file of one name, by what is in them: never by the folder.
    for name, words in sorted(files):
        if words:
            print(name, *words, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
