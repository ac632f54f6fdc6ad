"""The documents keep their rules, and each check catches what it is there for."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import document_rules

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def generate():
    """The script that makes pages from the sources."""
    spec = importlib.util.spec_from_file_location("generate", REFERENCE / "generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module  # NamedTuple looks for it there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("check", document_rules.CHECKS, ids=lambda check: check.__name__)
def test_documents_keep_the_rule(check):
    violations = check(ROOT)
    assert not violations, "\n" + "\n".join(violations)


@pytest.mark.parametrize("page", ["settings.md", "commands.md"])
def test_a_generated_page_is_what_the_sources_say(generate, page):
    assert (REFERENCE / page).read_text(encoding="utf-8") == generate.PAGES[page](), \
        f"docs/reference/{page} is stale: python3 docs/reference/generate.py"


def test_every_setting_is_in_the_reference():
    source = (ROOT / "src/config/options.cpp").read_text(encoding="utf-8")
    settings = re.findall(r'^ {4}\{"([A-Z]+_[A-Z_]+)"', source, re.MULTILINE)
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    assert len(settings) > 80
    assert [setting for setting in settings if f"| `{setting}` |" not in page] == []


def test_a_setting_that_the_generator_cannot_read_is_an_error(generate, tmp_path, monkeypatch):
    source = generate.OPTIONS.read_text(encoding="utf-8")
    changed = tmp_path / "options.cpp"
    changed.write_text(source.replace('{"SCR_ENABLE", boolean,', '{"SCR_ENABLE", make_rule<boolean>(),'), encoding="utf-8")
    monkeypatch.setattr(generate, "OPTIONS", changed)
    with pytest.raises(AssertionError, match="understood"):
        generate.settings_page()


@pytest.mark.parametrize("lines, count", [(149, 0), (150, 1)])
def test_a_long_guide_is_caught(tmp_path, lines, count):
    write(tmp_path, "docs/guides/run.md", "line\n" * lines)
    assert len(document_rules.check_lengths(tmp_path)) == count


@pytest.mark.parametrize("text, count", [
    ("The log tells of it.", 1), ("It was TOLD.", 1), ("What may pass\n", 1), ("Make the folder.", 1),
    ("`--storage FOLDER` and `whoever`", 0), ("```\nfolder\n```\n", 0), ("The total is a telltale.", 0),
])
def test_a_banned_word_is_caught_outside_code(tmp_path, text, count):
    write(tmp_path, "docs/guides/run.md", text)
    assert len(document_rules.check_words(tmp_path)) == count


@pytest.mark.parametrize("text, count", [
    ("a\n" * 5, 0), ("a\n" * 6, 1), ("| a |\n" * 9, 0), ("```\n" + "a\n" * 9 + "```\n", 0), ("- a\n" * 9, 0),
])
def test_a_long_paragraph_is_caught(tmp_path, text, count):
    write(tmp_path, "docs/guides/run.md", text)
    assert len(document_rules.check_paragraphs(tmp_path)) == count


@pytest.mark.parametrize("link, count", [
    ("other.md", 0), ("other.md#what-is-it-for", 0), ("#here", 0), ("https://example.org/x", 0),
    ("missing.md", 1), ("other.md#what-for", 1), ("#there", 1),
])
def test_a_broken_link_is_caught(tmp_path, link, count):
    write(tmp_path, "docs/other.md", "# Other\n\n## What `is` it for?\n\n```\n# not a heading\n```\n")
    write(tmp_path, "docs/page.md", f"# Here\n\nSee [a\npage]({link}).\n")
    assert len(document_rules.check_links(tmp_path)) == count


def test_a_guide_that_the_index_forgets_is_caught(tmp_path):
    write(tmp_path, "docs/guides/README.md", "[Run](run.md)\n")
    write(tmp_path, "docs/guides/run.md", "# Run\n")
    write(tmp_path, "docs/guides/stop.md", "# Stop\n")
    assert document_rules.check_index_of_guides(tmp_path) == ["docs/guides/README.md does not name stop.md"]


@pytest.mark.parametrize("source, count", [
    ('events.happened("HALT", why);', 0), ('events_.happened(good ? "HALT" : "FLUSH_FAIL", x);', 1),
    ('events.happened(\n    "NEW_ONE", x);', 1),
])
def test_an_event_that_the_page_does_not_list_is_caught(tmp_path, source, count):
    write(tmp_path, "docs/format/log.md", "| `HALT` | the run is to stop |\n")
    write(tmp_path, "src/session/halting.cpp", source)
    assert len(document_rules.check_events(tmp_path)) == count


@pytest.mark.parametrize("quote, count", [
    ("`is still open for writing`", 0), ("`rank ... is still open`", 0), ("`rank ... has it open`", 1), ("`CAIRN_E_IO`", 0),
])
def test_a_quote_that_no_message_has_is_caught(tmp_path, quote, count):
    write(tmp_path, "src/redundancy/closed.cpp", 'fail("rank {} is still "\n     "open for writing")')
    write(tmp_path, "src/redundancy/closed_test.cpp", 'expect("rank 2 has it open")')
    write(tmp_path, "docs/guides/messages.md", f"| message | cause |\n|---|---|\n| {quote} | a `file is open` |\n")
    assert len(document_rules.check_quoted_messages(tmp_path)) == count


@pytest.mark.parametrize("text, count", [("`SCR_FLUSH` and SCR_SUCCESS", 0), ("`SCR_FLUSHES`", 1), ("`SCR_LOG_DB_*`", 0)])
def test_a_name_that_the_sources_do_not_have_is_caught(tmp_path, text, count):
    write(tmp_path, "src/config/options.cpp", '{"SCR_FLUSH", at_least_0},')
    write(tmp_path, "include/scr.h", "#define SCR_SUCCESS (0)")
    write(tmp_path, "docs/page.md", text)
    assert len(document_rules.check_names(tmp_path)) == count


@pytest.mark.parametrize("text, count", [
    ("`cairn halt --list`", 0), ("`cairn hlt`", 1), ("`cairn halt --lst DIR`", 1), ("```\n$ cairn halt --lst\n```\n", 1),
    ("`cairn run --nodes 4 mpirun --oversubscribe`", 0), ("```\ncairn halt: error: --lst\n```\n", 0),
])
def test_a_command_or_option_that_does_not_exist_is_caught(tmp_path, text, count):
    write(tmp_path, "docs/man/cairn.1", ".It Cm halt\n.It Cm run\n")
    write(tmp_path, "docs/man/cairn-halt.1", ".It Fl l , -list\n")
    write(tmp_path, "docs/man/cairn-run.1", ".It Fl -nodes Ar number\n")
    write(tmp_path, "docs/page.md", text)
    assert len(document_rules.check_commands(tmp_path)) == count
