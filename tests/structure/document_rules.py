"""The rules for documents that a program can check.

Each check takes the root of a checkout and returns its violations, one line of text each, as in house_rules.
"""

import re
from pathlib import Path
from typing import Iterator, List, Set, Tuple

# Words of documents that hide who does what, or that have a word of the field.
BANNED = re.compile(
    r"\b(tells?|told|telling|nobody|whoever|somebody|folders?|mends?|mended|mending|remains|again and again|may pass"
    r"|is held for|so many more|from zero|(?:is|are) refused by)\b", re.IGNORECASE)
# Decisions keep the words of their day; commands.md follows from the manual pages, and is changed there.
NOT_CHECKED_FOR_WORDS = ("docs/adr/", "docs/reference/commands.md")
LINES_MAX = {"docs/guides/*.md": 150, "docs/reference/space-and-memory.md": 150, "docs/reference/redundancy.md": 150,
             "docs/performance.md": 150, "docs/testing.md": 150, "docs/comparison.md": 150, "docs/concepts.md": 200,
             "CHANGELOG.md": 60, "README.md": 150, "CONTRIBUTING.md": 150}
PARAGRAPH_LINES_MAX = 5
NO_PARAGRAPHS = re.compile(r"^\s*(\||#|```|[-*] |\d+\. |<!--|!\[)")
NAME = re.compile(r"\b(?:SCR|CAIRN|RBIO)_[A-Z][A-Z_0-9]*\b")
# Of job control, the halt record, CMake and the sources, where no table has them.
NAMES_FROM_ELSEWHERE = ("SCR_CKPT_NAME", "SCR_FINALIZE_CALLED", "CAIRN_MPI", "CAIRN_TRY")
LINK = re.compile(r"(?<!!)\[(?:[^\]]|\n)*?\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def documents(root: Path) -> Iterator[Path]:
    """Every page that people read."""
    yield from sorted(path for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md"), root / "examples/README.md"]
                      if path.is_file())


def name_of(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def without_blocks(text: str) -> str:
    """The text of a page, with as many lines, but without what is in fenced blocks."""
    lines, inside = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside = inside != fence
    return "\n".join(lines)


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "``", without_blocks(text))


def check_lengths(root: Path) -> List[str]:
    """A page can be read once, from its beginning to its end."""
    found = []
    for pattern, most in LINES_MAX.items():
        for path in root.glob(pattern):
            lines = path.read_text(encoding="utf-8").count("\n")
            if lines >= most:
                found.append(f"{name_of(path, root)}: {lines} lines, and fewer than {most} are allowed")
    return found


def check_words(root: Path) -> List[str]:
    """Documents are in plain English."""
    found = []
    for path in documents(root):
        name = name_of(path, root)
        if name.startswith(NOT_CHECKED_FOR_WORDS):
            continue
        for number, line in enumerate(without_code(path.read_text(encoding="utf-8")).splitlines(), 1):
            found += [f"{name}:{number}: '{word.group(0)}'" for word in BANNED.finditer(line)]
    return found


def paragraphs(text: str) -> Iterator[Tuple[int, int]]:
    """First line and length of each paragraph of prose."""
    begin = length = 0
    for number, line in enumerate([*without_blocks(text).splitlines(), ""], 1):
        if line.strip() and not NO_PARAGRAPHS.match(line) and not (line.startswith(" ") and not length):
            begin, length = (begin, length + 1) if length else (number, 1)
        elif length:
            yield begin, length
            length = 0


def check_paragraphs(root: Path) -> List[str]:
    """A paragraph is one thought."""
    return [f"{name_of(path, root)}:{begin}: a paragraph of {length} lines, more than {PARAGRAPH_LINES_MAX}"
            for pattern in LINES_MAX for path in root.glob(pattern)
            for begin, length in paragraphs(path.read_text(encoding="utf-8")) if length > PARAGRAPH_LINES_MAX]


def anchors(text: str) -> Set[str]:
    """What a link into a page may name: its headings, in the form that forges give them."""
    found: Set[str] = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", without_blocks(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        base = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        anchor, count = base, 0
        while anchor in found:
            count += 1
            anchor = f"{base}-{count}"
        found.add(anchor)
    return found


def check_links(root: Path) -> List[str]:
    """A link leads to a file that is there, and to a heading that it has."""
    found = []
    for path in documents(root):
        text = without_code(path.read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            link = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            there = (path.parent / target).resolve() if target else path
            where = f"{name_of(path, root)}:{text[:match.start()].count(chr(10)) + 1}: {link}"
            if not there.exists():
                found.append(f"{where}: there is no such file")
            elif anchor and anchor not in anchors(there.read_text(encoding="utf-8")):
                found.append(f"{where}: {target or 'the page'} has no such heading")
    return found


def check_index_of_guides(root: Path) -> List[str]:
    """docs/guides/README.md names every guide."""
    guides = root / "docs/guides"
    index = (guides / "README.md").read_text(encoding="utf-8")
    return [f"docs/guides/README.md does not name {path.name}" for path in sorted(guides.glob("*.md"))
            if path.name != "README.md" and f"({path.name})" not in index]


def check_events(root: Path) -> List[str]:
    """docs/format/log.md lists every event that the sources log."""
    page = (root / "docs/format/log.md").read_text(encoding="utf-8")
    logged = re.compile(r'happened\(\s*(?:\w+ \? )?"([A-Z_]+)"(?: : "([A-Z_]+)")?')
    found = []
    for path in sorted([*(root / "src").rglob("*.cpp"), *(root / "python").rglob("*.py")]):
        if path.stem.endswith("_test"):
            continue
        for match in logged.finditer(path.read_text(encoding="utf-8")):
            found += [f"{name_of(path, root)} logs {event}, which docs/format/log.md does not list"
                      for event in match.groups() if event and f"`{event}`" not in page]
    return found


def check_names(root: Path) -> List[str]:
    """Settings, constants and codes that documents name are those of the sources."""
    known = set(NAMES_FROM_ELSEWHERE)
    for source in (root / "src/config/options.cpp", *sorted((root / "include").glob("*.h"))):
        known |= set(NAME.findall(source.read_text(encoding="utf-8")))
    found = []
    for path in documents(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found += [f"{name_of(path, root)}:{number}: there is no {name}" for name in NAME.findall(line)
                      if name not in known and not name.endswith("_")]
    return found


def commands_in(text: str) -> Iterator[str]:
    """What a page asks its reader to type, in blocks and in the text, from `cairn` on."""
    typed = [line for block in re.findall(r"^ *```.*?\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
             for line in block.splitlines() if not re.match(r"\s*cairn[\w -]*:", line)]
    typed += re.findall(r"`([^`\n]+)`", without_blocks(text))
    for line in typed:
        command = re.match(r"\s*(?:\w+\$ |\$ |exec |SCR_\w+=\S+ )*(cairn .*)", line)
        if command:
            yield re.split(r"\s(?:mpirun|mpiexec|srun|flux|jsrun|#|&&|\|)(?=\s|$)", command.group(1))[0]


def check_commands(root: Path) -> List[str]:
    """Commands and options that documents name are in the manual pages."""
    manual = root / "docs/man"
    listed = set(re.findall(r"^\.It Cm (\S+)$", (manual / "cairn.1").read_text(encoding="utf-8"), re.MULTILINE))
    found = []
    for path in documents(root):
        for command in commands_in(path.read_text(encoding="utf-8")):
            name = command.split()[1] if len(command.split()) > 1 else ""
            where = f"{name_of(path, root)}: '{command.strip()}'"
            command = re.sub(r"\"[^\"]*\"|'[^']*'", "", command)
            page = manual / f"cairn-{name}.1"
            if re.fullmatch(r"[a-z][a-z-]*", name) and name not in listed:
                found.append(f"{where}: there is no command {name}")
            elif page.exists():
                known = page.read_text(encoding="utf-8")
                found += [f"{where}: {page.name} has no --{option}"
                          for option in re.findall(r"(?<!\S)--([a-z][a-z-]+)", command)
                          if option != "help" and not re.search(rf"\bFl\b.* -{option}\b|, -{option}\b|Fl -{option}\b", known)]
    return found


def said_by_sources(root: Path) -> str:
    """The texts of the sources, in which a message is one line whatever its line breaks."""
    sources = [path for pattern in ("src/**/*.[ch]pp", "python/**/*.py") for path in sorted(root.glob(pattern))
               if not path.stem.endswith("_test")]
    joined = re.sub(r'"\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in sources))
    return re.sub(r"\s+", " ", joined)


def check_quoted_messages(root: Path) -> List[str]:
    """A user who looks for the words of a message finds it in docs/guides/messages.md. There `...` stands for what differs,
    and a name for itself; what the loader says is not ours."""
    page = root / "docs/guides/messages.md"
    said = said_by_sources(root)
    found = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        first = line.split("|")[1] if line.startswith("|") else ""
        quotes = [quote for quote in re.findall(r"`([^`]+)`", first) if " " in quote and "shared object" not in quote]
        found += [f"docs/guides/messages.md:{number}: no message says '{part.strip()}'" for quote in quotes
                  for part in quote.split("...") if part.strip(" .,") not in said]
    return found


CHECKS = [check_quoted_messages, check_lengths, check_words, check_paragraphs, check_links, check_index_of_guides, check_events, check_names,
          check_commands]
