"""Words that no sentence for users may have. The list is short: that a sentence is understood at once is for readers to say."""

import ast
import re
from pathlib import Path
from typing import Iterator, List, Tuple

BANNED = re.compile(
    r"\b(tell|tells|told|telling|nobody|somebody|anybody|whoever|what may pass|(is|are) held for|again and again"
    r"|so many more|from zero|folders?|mend|mends|mended|mending|remains|(is|are|be|was|were) refused|refuses?)\b", re.IGNORECASE)

# What is kept free of them: in sources the texts, in documents every line. Add what you have rewritten.
PATTERNS = ("src/**/*.cpp", "src/**/*.hpp", "python/cairn/**/*.py", "docs/man/*.[138]", "README.md", "docs/*.md",
            "include/*")
# What stands for a value, as in "{folder}", and its name.
PLACE = re.compile(r"\{\w+\}")

CPP_TEXT = re.compile(r'//[^\n]*|#include[^\n]*|(?P<text>"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)')


def texts_of_cpp(source: str) -> Iterator[Tuple[int, str]]:
    """String literals, those that follow each other as one, with their lines."""
    for found in CPP_TEXT.finditer(source):
        if found.group("text"):
            yield source.count("\n", 0, found.start()) + 1, "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', found.group("text")))


def texts_of_python(source: str, is_command: bool) -> Iterator[Tuple[int, str]]:
    """The same. Docstrings are for readers of the code, but for that of a command, which --help prints."""
    tree = ast.parse(source)
    internal = (ast.FunctionDef, ast.ClassDef) if is_command else (ast.FunctionDef, ast.ClassDef, ast.Module)
    docstrings = {node.body[0].value for node in ast.walk(tree)
                  if isinstance(node, internal) and node.body and isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.lineno, node.value


def texts_of(path: Path) -> Iterator[Tuple[int, str]]:
    """A word alone is a key of JSON or a name, and no sentence."""
    source = path.read_text()
    if path.suffix in (".cpp", ".hpp"):
        found = texts_of_cpp(source)
    elif path.suffix == ".py":
        found = texts_of_python(source, path.parent.name == "commands")
    else:
        yield from enumerate(source.splitlines(), 1)
        return
    yield from ((line, text) for line, text in found if " " in text.strip())


def check_plain_words(root: Path) -> List[str]:
    """Users read these sentences."""
    paths = sorted(path for pattern in PATTERNS for path in root.glob(pattern)
                   if not path.stem.endswith("_test"))
    return [f"{path}:{line}: '{found.group()}' in: {text.strip()[:100]}"
            for path in paths for line, text in texts_of(path) for found in [BANNED.search(PLACE.sub("{}", text))] if found]
