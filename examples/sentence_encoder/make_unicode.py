# SPDX-License-Identifier: Apache-2.0
# Facts about characters to unicode.txt: what the tokenizer drops, splits at, and folds to.
#
#   python3 make_unicode.py    (writes unicode.txt from Python's own tables)
#
# Lines of hexadecimal code points: `drop`, `space`, `mark` and `punctuation` with first and last of a
# range; `fold` with a character and what it becomes: decomposed, without marks, in lower case. Hangul
# syllables, which decompose by a formula, are left out. A run of characters that fold alike is one
# line, `run first last step first-target`.
import pathlib
import sys
import unicodedata

CODES = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]
SPACES = {9, 10, 13, 0x20, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
SPACES.update(range(0x2000, 0x200B))


def is_dropped(c):
    # Controls, formats, private use; characters that have no meaning yet stay.
    other = unicodedata.category(chr(c)) in ("Cc", "Cf", "Co")
    return c in (0, 0xFFFD) or (other and c not in SPACES)


def is_mark(c):
    return unicodedata.category(chr(c)) == "Mn"


def is_punctuation(c):
    ascii_sign = 0x21 <= c <= 0x7E and not chr(c).isalnum()
    return ascii_sign or unicodedata.category(chr(c))[0] == "P"


def fold(c):
    bare = [d for d in unicodedata.normalize("NFD", chr(c)) if not is_mark(ord(d))]
    return [ord(e) for d in bare for e in d.lower()]


lines = []
for name, test in (
    ("drop", is_dropped),
    ("space", SPACES.__contains__),
    ("mark", is_mark),
    ("punctuation", is_punctuation),
):
    first = last = None
    for c in [c for c in CODES if test(c)] + [None]:
        if last is not None and c != last + 1:
            lines.append(f"{name} {first:x} {last:x}")
            first = None
        if first is None:
            first = c
        last = c

folds = {}
for c in CODES:
    if not (is_dropped(c) or is_mark(c) or c in SPACES or 0xAC00 <= c <= 0xD7A3) and fold(c) != [c]:
        folds[c] = fold(c)
while folds:
    first = min(folds)
    target = folds[first]
    best = [first]
    for step in (1, 2) if len(target) == 1 else ():
        run = [first]
        while folds.get(run[-1] + step) == [target[0] + step * len(run)]:
            run.append(run[-1] + step)
        if len(run) > len(best):
            best = run
    if len(best) > 2:
        lines.append(f"run {first:x} {best[-1]:x} {best[1] - first:x} {target[0]:x}")
    else:
        best = [first]
        lines.append(" ".join(["fold", f"{first:x}", *(f"{c:x}" for c in target)]))
    for c in best:
        del folds[c]

header = f"# From Unicode {unicodedata.unidata_version} by make_unicode.py, which says what lines mean.\n"
pathlib.Path(__file__).with_name("unicode.txt").write_text(header + "\n".join(lines) + "\n")
