"""Which ledger a root has."""

import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from amem.errors import ConfigError
from amem.ledger.draft import Draft
from amem.ledger.opening import open_ledger, open_reading, own_space
from amem.settings import grants
from amem.settings.root import Root
from tests.ledger.worlds import DOM, ME, admitted, claimed, listing


def root(folder: Path, ledger: str = "") -> tuple[Root, grants.Grants]:
    folder.mkdir(exist_ok=True)
    there = Root(folder)
    there.grants.write_text(f'owner = "{ME}"\n[grants.{DOM}]\n{ledger}')
    return there, grants.load(there.grants)


def test_without_a_url_it_is_sqlite_under_the_root(tmp_path: Path) -> None:
    there = root(tmp_path / "r")
    with open_ledger(*there) as ledger:
        admitted(ledger)
    assert there[0].ledger.is_file()
    with open_reading(*there) as ledger:
        assert ledger.list(listing()).total == 1


def test_roots_with_the_same_url_share_tasks_only_in_the_same_space(tmp_path: Path, pg_dsn: str) -> None:
    alone = [root(tmp_path / name, f'[ledger]\nurl = "{pg_dsn}"\n') for name in ("a", "b")]
    shared = [root(tmp_path / name, f'[ledger]\nurl = "{pg_dsn}"\nspace = "team"\n') for name in ("c", "d")]
    with open_ledger(*alone[0]) as one, open_ledger(*alone[1]) as two:
        task = admitted(one)
        assert two.list(listing()).total == 0
    with open_reading(*alone[0]) as again:
        assert again.show(task.id).title == "A task"
    with open_ledger(*shared[0]) as one, open_ledger(*shared[1]) as two:
        assert one.list(listing()).total == 0
        task = admitted(one)
        assert claimed(two).id == task.id


def test_own_space_is_drawn_once_whoever_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "state" / "ledger.space"
    start, got = threading.Barrier(8), []

    def draw() -> None:
        start.wait()
        got.append(own_space(file))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["ledger.space"]
    assert own_space(tmp_path / "other") != got[0]


@pytest.mark.parametrize("space", ["", "a/b", "x" * 64])
def test_space_that_is_no_name_is_refused(tmp_path: Path, space: str) -> None:
    with pytest.raises(ConfigError, match=r"ledger\.space"):
        root(tmp_path / "r", f'[ledger]\nurl = "postgres://h/d"\nspace = "{space}"\n')


def test_questions_load_no_rules_and_sqlite_no_psycopg(tmp_path: Path) -> None:
    there = root(tmp_path / "r")
    with open_ledger(*there) as ledger:
        ledger.create(Draft(domain=DOM, title="T"), by=ME)
    code = (
        "import sys; from pathlib import Path; from amem.ledger.opening import open_reading; from amem.ledger.reading import Filter\n"
        "from amem.settings import grants; from amem.settings.root import Root; root = Root(Path(sys.argv[1]))\n"
        f"with open_reading(root, grants.load(root.grants)) as ledger: assert ledger.list(Filter(domains=('{DOM}',))).total == 1\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('amem.ledger', 'psycopg'))))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(there[0].path)], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "amem.ledger.reading" in loaded
    assert not loaded & {"amem.ledger.operations", "amem.ledger.events", "amem.ledger.draft", "psycopg"}
