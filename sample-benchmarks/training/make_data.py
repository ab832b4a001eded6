#!/usr/bin/env python3
"""Makes digits.csv.gz: drawings of the digits 0 to 9, each 8 by 8 grey values
from 0 to 9 and then the digit. The same bytes every time."""

import gzip
import random
import sys

GLYPHS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)


def drawing(chance, digit):
    """One drawing of a digit: moved a little, drawn unevenly, and dirty."""
    down, right = chance.randrange(2), chance.randrange(4)
    grey = [chance.randrange(4) for _ in range(64)]
    for y, row in enumerate(GLYPHS[digit].split()):
        for x, ink in enumerate(row):
            if ink == "1" and chance.random() < 0.9:
                grey[8 * (y + down) + x + right] = 4 + chance.randrange(6)
    return grey


def main():
    chance = random.Random(20240229)
    lines = []
    for i in range(3000):
        lines.append(",".join(map(str, drawing(chance, i % 10) + [i % 10])))
    chance.shuffle(lines)
    with open(sys.argv[1], "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=0) as out:
        out.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
