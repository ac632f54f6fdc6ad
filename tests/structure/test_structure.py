"""The tree keeps the rules of the house, and each check catches what it is there for."""

import re
import subprocess
from pathlib import Path

import pytest

import house_rules
import plain_words

ROOT = Path(__file__).resolve().parents[2]


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def function_of(lines: int, header: str = "int f(int a)") -> str:
    """A function that is `lines` long, braces included."""
    return header + " {\n" + "  a = a;\n" * (lines - 2) + "}\n"


def test_there_are_sources_to_check():
    assert sum(1 for _ in house_rules.sources(ROOT)) > 10


@pytest.mark.parametrize("check", [*house_rules.CHECKS, plain_words.check_plain_words], ids=lambda check: check.__name__)
def test_tree_keeps_the_rule(check):
    violations = check(ROOT)
    assert not violations, "\n" + "\n".join(violations)


@pytest.mark.parametrize("room, included", [
    ("base", "comm/team.hpp"),           # up
    ("codec", "comm/communicator.hpp"),  # sideways
    ("files", "config/settings.hpp"),    # the exception holds in one direction only
    ("cache", "redundancy/protect.hpp"),
    ("attic", "base/error.hpp"),         # a room that the house does not have
])
def test_an_arrow_up_is_caught(tmp_path, room, included):
    write(tmp_path, f"src/{room}/a.cpp", f'#include <vector>\n#include "{included}"\n')
    assert len(house_rules.check_arrows(tmp_path)) == 1


def test_an_arrow_down_is_allowed(tmp_path):
    write(tmp_path, "src/session/a.cpp", '#include "session/b.hpp"\n#include "base/error.hpp"\n')
    write(tmp_path, "src/config/a.cpp", '#include "files/files.hpp"\n')
    assert house_rules.check_arrows(tmp_path) == []


@pytest.mark.parametrize("name, count", [
    ("src/comm/mpi.cpp", 0), ("src/api/scr.cpp", 0), ("src/interpose/open.cpp", 0),
    ("src/comm/team.cpp", 1), ("src/session/session.cpp", 1),
])
def test_mpi_outside_its_targets_is_caught(tmp_path, name, count):
    write(tmp_path, name, "#include <mpi.h>\n")
    assert len(house_rules.check_mpi(tmp_path)) == count


def test_a_long_file_is_caught(tmp_path):
    write(tmp_path, "src/base/short.cpp", "\n" * house_rules.FILE_LINES_MAX)
    write(tmp_path, "src/base/long.cpp", "\n" * (house_rules.FILE_LINES_MAX + 1))
    assert [Path(line.split(":")[0]).name for line in house_rules.check_file_lengths(tmp_path)] == [
        "long.cpp"]


@pytest.mark.parametrize("header", [
    "int f(int a)",
    "template <class T>\nResult<T> f(T a) noexcept",
    "A::A(int a)\n    : a_{a}, b_(a)",
    "namespace x {\nclass B final : public A<int> {\n public:\n  void f() const override",
])
def test_a_long_function_is_caught(tmp_path, header):
    longest = house_rules.FUNCTION_LINES_MAX
    body = function_of(longest + 1, header).replace("a = a;", "g('{', \"}\", [] { return 1; });")
    write(tmp_path, "src/base/a.cpp", body + "}}\n" * header.count("class B"))
    assert len(house_rules.check_function_lengths(tmp_path)) == 1


def test_what_is_not_a_long_function_is_passed_over(tmp_path):
    longest = house_rules.FUNCTION_LINES_MAX
    write(tmp_path, "src/base/fits.cpp", function_of(longest) * 3)
    write(tmp_path, "src/base/table.cpp", function_of(longest + 9, "const Row table[] ="))
    write(tmp_path, "src/base/class.hpp",
          "// it's a comment {\nstruct A {\n" + "  int f() { return 1'000; }\n" * 99 + "};\n")
    assert house_rules.check_function_lengths(tmp_path) == []


def test_a_function_of_the_upper_rooms_is_shorter(tmp_path):
    longest = house_rules.SHORT_FUNCTION_LINES_MAX
    write(tmp_path, "src/tools/fits.cpp", function_of(longest))
    write(tmp_path, "src/tools/a_test.cpp", function_of(longest + 1))
    write(tmp_path, "src/codec/a.cpp", function_of(longest + 1))
    assert house_rules.check_function_lengths(tmp_path) == []
    write(tmp_path, "src/tools/long.cpp", function_of(longest + 1))
    assert len(house_rules.check_function_lengths(tmp_path)) == 1


@pytest.mark.parametrize("branch", [
    "if (a) b();", "for (;;) b();", "while (a) b();", "case 1: b();", "b(a ? 1 : 2);", "catch (...) {}"])
def test_a_function_with_too_many_branches_is_caught(tmp_path, branch):
    def with_branches(count):
        return "int f(int a) {\n" + f"  {branch} // if\n" * count + "}\n"
    most = house_rules.BRANCHES_MAX
    write(tmp_path, "src/tools/fits.cpp", with_branches(most) * 2)
    write(tmp_path, "src/codec/a.cpp", with_branches(most + 1))
    assert house_rules.check_branches(tmp_path) == []
    write(tmp_path, "src/tools/more.cpp", with_branches(most + 1))
    assert len(house_rules.check_branches(tmp_path)) == 1


def class_of(public: int, private: int) -> str:
    functions = ["  Status f(int a) const;\n", "  int g() { return h(1); }\n"]
    return ("class A final : public B<int> {\n public:\n"
            + "".join(functions[i % 2] for i in range(public))
            + "  std::function<void(int)> not_one;\n private:\n"
            + "".join(functions[i % 2] for i in range(private)) + "  int member_ = f(1);\n};\n")


@pytest.mark.parametrize("more", [(1, 0), (0, 1)])
def test_a_class_with_too_many_functions_is_caught(tmp_path, more):
    most = house_rules.PUBLIC_FUNCTIONS_MAX, house_rules.PRIVATE_FUNCTIONS_MAX
    write(tmp_path, "src/session/fits.hpp", class_of(*most))
    assert house_rules.check_class_sizes(tmp_path) == []
    write(tmp_path, "src/session/larger.hpp", class_of(most[0] + more[0], most[1] + more[1]))
    assert len(house_rules.check_class_sizes(tmp_path)) == 1


def test_a_class_of_a_lower_room_may_be_larger(tmp_path):
    write(tmp_path, "src/codec/a.hpp", class_of(99, 99))
    assert house_rules.check_class_sizes(tmp_path) == []


@pytest.mark.parametrize("name", ["src/util/a.cpp", "src/base/string_utils.hpp",
                                  "docs/misc.md", "tests/mpi/common.cpp"])
def test_a_forbidden_name_is_caught(tmp_path, name):
    write(tmp_path, name, "")
    assert len(house_rules.check_names(tmp_path)) == 1


def test_names_that_only_contain_such_a_word_are_allowed(tmp_path):
    write(tmp_path, "src/base/utility_of.cpp", "")
    write(tmp_path, "src/comm/communicator.cpp", "")
    write(tmp_path, "build/dev/common.cpp", "")
    assert house_rules.check_names(tmp_path) == []


@pytest.mark.parametrize("line, count", [
    ("#include <immintrin.h>", 1), ("#include <arm_neon.h>", 1),
    ("x = __builtin_ia32_crc32di(x, y);", 1), ('__asm__("nop");', 1), ("#ifdef __x86_64__", 1),
    ("// no asm here", 0), ('say("asm");', 0), ("x = __builtin_popcount(y);", 0),
])
def test_code_for_one_processor_is_caught(tmp_path, line, count):
    write(tmp_path, "src/codec/a.cpp", line + "\n")
    assert len(house_rules.check_portable(tmp_path)) == count


def test_what_only_a_newer_python_understands_is_caught(tmp_path):
    write(tmp_path, "python/cairn/old.py", "a = lambda b: b\n")
    write(tmp_path, "python/cairn/new.py", "match 1:\n    case _:\n        pass\n")
    assert len(house_rules.check_python(tmp_path)) == 1


@pytest.mark.parametrize("name, text, count", [
    ("src/tools/a.cpp", 'log.error("{} is no "\n  "folder; mend it", x);', 1), ("src/tools/a.cpp", "// nobody tells\n", 0),
    ("src/session/a.cpp", 'warn("the folder is full");', 1), ("include/a.h", "/* Nobody calls it. */\n", 1),
    ("src/tools/a.cpp", 'json["folders"] = 1;', 0), ("src/tools/a_test.cpp", 'say("it is told");', 0),
    ("python/cairn/commands/a.py", 'x = f"{y} tells all"', 1), ("python/cairn/commands/a.py", '"""cairn a: tells."""\n', 1),
    ("python/cairn/native.py", '"""It tells."""\n', 0), ("python/cairn/launchers/a.py", 'say("it refuses this")', 1),
    ("python/cairn/a.py", 'x = "cd {folder}; ls"', 0),
    ("docs/man/cairn-a.1", "It refuses\n", 1), ("docs/man/crfs.1", "A folder.\n", 1), ("docs/page.md", "It starts from zero.\n", 1),
])
def test_a_word_that_users_should_not_meet_is_caught(tmp_path, name, text, count):
    write(tmp_path, name, text)
    assert len(plain_words.check_plain_words(tmp_path)) == count


@pytest.mark.parametrize("target", ["test", "asan", "tsan", "soak-crfs"])
def test_whoever_runs_the_tests_has_their_packages_first(target):
    """On a bare machine a suite would be skipped that should run."""
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    installed = re.findall(r"install-dependencies build (\S+)", done.stdout)
    assert {"test", "crfs-suite"} <= set(installed)
