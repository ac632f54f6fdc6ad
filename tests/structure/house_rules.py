"""The rules of the house that a program can check.

Each check takes the root of a checkout and returns its violations, one line of text each, so that the
tests can run the same check over the real tree and over a small tree with a known violation.
"""

import ast
import re
from pathlib import Path
from typing import Iterator, List, NamedTuple

FLOORS = {
    "base": 1,
    "codec": 2, "comm": 2, "files": 2, "config": 2,
    "topology": 3, "records": 3, "transfer": 3, "aggregate": 3, "agreement": 3,
    "cache": 4, "redundancy": 4, "rbio": 4, "crfs": 4,
    "recovery": 5, "prefix": 5,
    "restart": 6,
    "session": 7, "scavenge": 7, "agent": 7,
    "wrapped": 8, "api": 8, "tools": 8,
    "interpose": 9,
    "mounted": 10,
}
# Rooms on one floor do not know each other. config reads its files through the seam of files.
SAME_FLOOR_ALLOWED = {("config", "files")}

MPI_ALLOWED = re.compile(r"^(comm/mpi\.|api/|interpose/)")
FORBIDDEN_WORDS = {"util", "utils", "common", "helper", "helpers", "manager", "misc"}
NOT_OURS = re.compile(r"^(build.*|\..*|__pycache__)$")

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
# Rooms whose functions are shorter, and decide less.
SHORT_FUNCTIONS_IN = ("prefix", "recovery", "restart", "scavenge", "session", "tools")
SHORT_FUNCTION_LINES_MAX = 45
BRANCHES_MAX = 12
PUBLIC_FUNCTIONS_MAX = 20
PRIVATE_FUNCTIONS_MAX = 25
# Rooms whose classes are kept small.
SMALL_CLASSES_IN = SHORT_FUNCTIONS_IN

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def sources(root: Path) -> Iterator[Path]:
    """Every C and C++ file under src/."""
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".c", ".cpp", ".h", ".hpp"):
            yield path


def check_arrows(root: Path) -> List[str]:
    """A room includes only rooms below it."""
    found = []
    for path in sources(root):
        room = path.relative_to(root / "src").parts[0]
        for included in INCLUDE.findall(path.read_text()):
            other = included.split("/")[0]
            if other == room or other not in FLOORS or "/" not in included:
                continue
            if room not in FLOORS:
                found.append(f"{path}: room '{room}' has no floor")
            elif FLOORS[other] >= FLOORS[room] and (room, other) not in SAME_FLOOR_ALLOWED:
                found.append(f"{path}: {room} (floor {FLOORS[room]}) includes {included} "
                             f"(floor {FLOORS[other]})")
    return found


def check_mpi(root: Path) -> List[str]:
    """mpi.h is known only to what is built once per MPI."""
    return [f"{path}: includes mpi.h"
            for path in sources(root)
            if "mpi.h" in INCLUDE.findall(path.read_text())
            and not MPI_ALLOWED.match(path.relative_to(root / "src").as_posix())]


def check_file_lengths(root: Path) -> List[str]:
    """A file that needs a table of contents is two files."""
    lengths = ((path, path.read_text().count("\n")) for path in sources(root))
    return [f"{path}: {lines} lines, more than {FILE_LINES_MAX}"
            for path, lines in lengths if lines > FILE_LINES_MAX]


def has_short_functions(root: Path, path: Path) -> bool:
    return (path.relative_to(root / "src").parts[0] in SHORT_FUNCTIONS_IN
            and not path.name.endswith("_test.cpp"))


def check_function_lengths(root: Path) -> List[str]:
    """No function is longer than can be read at once."""
    found = []
    for path in sources(root):
        most = SHORT_FUNCTION_LINES_MAX if has_short_functions(root, path) else FUNCTION_LINES_MAX
        found += [f"{path}:{function.line}: {function.lines} lines in '{function.header}', "
                  f"more than {most}"
                  for function in functions(path.read_text()) if function.lines > most]
    return found


def check_branches(root: Path) -> List[str]:
    """No function decides so much that nobody can follow all its ways."""
    return [f"{path}:{function.line}: {function.branches} branches in '{function.header}', "
            f"more than {BRANCHES_MAX}"
            for path in sources(root) if has_short_functions(root, path)
            for function in functions(path.read_text())
            if function.branches > BRANCHES_MAX]


def check_class_sizes(root: Path) -> List[str]:
    """A class has one job: what has many functions has several."""
    return [f"{path}:{found.line}: class {found.name} has {found.public} public and "
            f"{found.private} private functions; at most {PUBLIC_FUNCTIONS_MAX} and "
            f"{PRIVATE_FUNCTIONS_MAX}"
            for path in sources(root)
            if path.relative_to(root / "src").parts[0] in SMALL_CLASSES_IN
            for found in classes(path.read_text())
            if found.public > PUBLIC_FUNCTIONS_MAX or found.private > PRIVATE_FUNCTIONS_MAX]


def check_names(root: Path) -> List[str]:
    """Names say what is inside; these words do not."""
    return [f"{path}: a forbidden word in the name"
            for path in our_paths(root)
            if FORBIDDEN_WORDS & set(re.split(r"[^a-z]+", path.name.lower()))]


def check_portable(root: Path) -> List[str]:
    """Instructions of one processor are left to libraries and the compiler."""
    return [f"{path}: '{found.group().strip()}' compiles on one kind of processor only"
            for path in sources(root) if path.name not in WITH_INSTRUCTIONS
            for found in OF_ONE_PROCESSOR.finditer(without_text(path.read_text()))]


def our_paths(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if NOT_OURS.match(path.name):
            continue
        yield path
        if path.is_dir():
            yield from our_paths(path)


class Function(NamedTuple):
    header: str
    line: int
    lines: int
    branches: int


# What may hold braces without being code, and preprocessor lines.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE)
COMMENT_OR_TEXT = re.compile(NOT_CODE.pattern.rsplit("|^", 1)[0], re.DOTALL)
# No library copies past the caches; for other processors the file has memcpy (docs/adr/0035).
WITH_INSTRUCTIONS = ("stream_copy.cpp", "vector_registers.hpp", "vector_registers_in_use.hpp")
OF_ONE_PROCESSOR = re.compile(
    r"\w*intrin\.h|\barm_(neon|acle|sve)\.h|\b__builtin_(ia32|arm|aarch64)_\w+"
    r"|\b(__)?asm(__)?\b|\b__(x86_64|aarch64|AVX\w*|SSE\w*|ARM_\w+)__?\b")
BRANCH = re.compile(r"\b(?:if|for|while|case|catch)\b|\?")
TEMPLATE = re.compile(r"^template\s*<[^{}]*?>\s*(?=[\w:\[])")
CONTAINER = re.compile(r"^(inline\s+)?(namespace|extern|class|struct|union)\b")


def blank(match: "re.Match[str]") -> str:
    return re.sub(r"[^\n]", " ", match.group())


def without_text(text: str) -> str:
    """Code and preprocessor lines only."""
    return COMMENT_OR_TEXT.sub(blank, text)


def functions(text: str) -> Iterator[Function]:
    """The functions defined at namespace or class scope; lambdas count as part of theirs."""
    text = NOT_CODE.sub(blank, text)
    open_blocks = []  # kind, header and position of the header of each block
    start = 0  # where the statement that a brace would belong to begins
    for match in re.finditer(r"[{};]", text):
        position = match.start()
        if match.group() == "{":
            header = " ".join(text[start:position].split())
            begins = position if not header else start + len(text[start:position]) - len(
                text[start:position].lstrip())
            open_blocks.append((block_kind(header, open_blocks), header, begins))
        elif match.group() == "}" and open_blocks:
            kind, header, begins = open_blocks.pop()
            if kind == "function":
                yield Function(header, text.count("\n", 0, begins) + 1,
                               text.count("\n", begins, position) + 1,
                               len(BRANCH.findall(text, begins, position)))
        start = position + 1


def block_kind(header: str, open_blocks: list) -> str:
    """container, function, or other: a block inside a function, or data."""
    if any(kind != "container" for kind, _, _ in open_blocks):
        return "other"
    header = TEMPLATE.sub("", re.sub(r"^(public|private|protected)\s*:\s*", "", header))
    if CONTAINER.match(header) and "(" not in header:
        return "container"
    # After a constructor's initialisers in braces, its body has no header of its own.
    is_function = header == "" or ("(" in header and not header.endswith("="))
    return "function" if is_function else "other"


class Class(NamedTuple):
    name: str
    line: int
    public: int
    private: int


CLASS = re.compile(r"^(?:template\s*<.*?>\s*)?(class|struct)\s+(\w+)[^()]*$")
# A declaration, not a member that holds a function or is made by one.
DECLARES_FUNCTION = re.compile(
    r"^(?!using|typedef|friend|static_assert|std::function\b)([^=(]|operator\W+)*[\w\]=<>]\s*\(.*\)"
    r"\s*(const)?\s*(noexcept)?\s*(override|final)?\s*(=\s*(0|default))?$")


def classes(text: str) -> Iterator[Class]:
    """Each class with the number of functions that it declares, public and other."""
    text = NOT_CODE.sub(blank, text)
    open_blocks = []  # of a class: name, line, access and counts; of any other: None
    start = 0
    for match in re.finditer(r"[{};]|\b(public|private|protected)\s*:(?!:)", text):
        statement = " ".join(text[start:match.start()].split())
        inside = open_blocks[-1] if open_blocks else None
        start = match.end()
        if match.group(1):
            if inside:
                inside["is_public"] = match.group(1) == "public"
            continue
        if inside and match.group() != "}" and DECLARES_FUNCTION.match(statement.split(" : ")[0]):
            inside["public" if inside["is_public"] else "private"] += 1
        if match.group() == "{":
            head = CLASS.match(statement)
            open_blocks.append(head and {
                "name": head.group(2), "line": text.count("\n", 0, match.start()) + 1,
                "is_public": head.group(1) == "struct", "public": 0, "private": 0})
        elif match.group() == "}" and open_blocks:
            done = open_blocks.pop()
            if done:
                yield Class(done["name"], done["line"], done["public"], done["private"])


def check_python(root: Path) -> List[str]:
    """The package needs nothing of the grammar that Python 3.9 does not have."""
    found = []
    for path in sorted((root / "python").rglob("*.py")):
        try:
            ast.parse(path.read_text(), path.name, feature_version=(3, 9))
        except SyntaxError as error:
            found.append(f"{path}:{error.lineno}: {error.msg}")
    return found


CHECKS = [check_arrows, check_mpi, check_file_lengths, check_function_lengths, check_branches, check_class_sizes, check_names,
          check_portable, check_python]
