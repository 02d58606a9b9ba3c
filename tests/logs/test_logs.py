"""Logs: one line an event, linked, whole under many writers, readable after a tear."""

import json
import multiprocessing
import threading
from pathlib import Path

import pytest

from amem.logs import reader, schema, writer
from amem.model.call import ObservedBy


def read(at: str = "2026-11-30T07:00:00.000Z", **keys: object) -> schema.MemoryRead:
    return schema.MemoryRead(at=at, tool="get", label="internal", **keys)  # type: ignore[arg-type]


def test_a_line_starts_with_the_common_keys_and_leaves_out_what_is_absent(tmp_path: Path) -> None:
    writer.append(tmp_path, read(session="ses-00000000", entries=("mem-me-0123456789ab",), observed_by=ObservedBy.AMEM))
    line = json.loads((tmp_path / "reads.jsonl").read_text())
    assert list(line) == ["v", "event", "at", "session", "observed_by", "tool", "entries", "tokens", "label", "prev"]
    assert line["event"] == "memory.read"
    assert line["prev"] == writer.GENESIS


def test_every_event_names_its_log_and_its_dotted_name() -> None:
    for event in (schema.PolicyDecision, schema.MemoryRead, schema.MemoryWrite):
        assert event.log.endswith(".jsonl")
        assert event.event.count(".") == 1


def test_an_unbroken_log_verifies(tmp_path: Path) -> None:
    for number in range(5):
        writer.append(tmp_path, read(tokens=number))
    assert reader.verify(tmp_path / "reads.jsonl") == []
    assert [event["tokens"] for event in reader.events(tmp_path / "reads.jsonl")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("damage", ["change", "drop", "swap"])
def test_a_changed_dropped_or_reordered_line_shows(tmp_path: Path, damage: str) -> None:
    for number in range(5):
        writer.append(tmp_path, read(tokens=number))
    path = tmp_path / "reads.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if damage == "change":
        lines[2] = lines[2].replace(b'"tokens":2', b'"tokens":9')
    elif damage == "drop":
        del lines[2]
    else:
        lines[2], lines[3] = lines[3], lines[2]
    path.write_bytes(b"".join(lines))
    broken = reader.verify(path)
    assert broken
    assert {each.kind for each in broken} == {"changed"}


def test_a_torn_line_is_kept_skipped_and_ended_by_the_next(tmp_path: Path) -> None:
    writer.append(tmp_path, read(tokens=1))
    path = tmp_path / "reads.jsonl"
    with path.open("ab") as file:
        file.write(b'{"v":1,"event":"memory.re')
    writer.append(tmp_path, read(tokens=2))
    assert [event["tokens"] for event in reader.events(path)] == [1, 2]
    assert reader.verify(path) == [reader.Broken(2, "torn")]


def test_a_line_longer_than_the_tail_window_still_links(tmp_path: Path) -> None:
    writer.append(tmp_path, read(entries=tuple(f"mem-me-{number:012d}" for number in range(2000))))
    writer.append(tmp_path, read(tokens=2))
    assert reader.verify(tmp_path / "reads.jsonl") == []


def _write(directory: str, start: int) -> None:
    kept = writer.Writer(Path(directory))
    for number in range(50):
        if number % 2:
            kept.append(read(tokens=start + number))
        else:
            writer.append(Path(directory), read(tokens=start + number))


def test_threads_of_one_writer_write_whole_linked_lines(tmp_path: Path) -> None:
    kept = writer.Writer(tmp_path)
    threads = [threading.Thread(target=lambda: [kept.append(read(tokens=n)) for n in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.close()
    path = tmp_path / "reads.jsonl"
    assert len(list(reader.events(path))) == 200
    assert reader.verify(path) == []


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    kept = writer.Writer(tmp_path)
    kept.append(read(tokens=1))
    (tmp_path / "reads.jsonl").rename(tmp_path / "old.jsonl")
    kept.append(read(tokens=2))
    kept.close()
    assert [event["tokens"] for event in reader.events(tmp_path / "reads.jsonl")] == [2]
    assert reader.verify(tmp_path / "reads.jsonl") == []


def test_a_line_of_another_process_between_two_of_ours_is_linked(tmp_path: Path) -> None:
    kept = writer.Writer(tmp_path)
    kept.append(read(tokens=1))
    writer.append(tmp_path, read(tokens=2))
    kept.append(read(tokens=3))
    kept.close()
    assert reader.verify(tmp_path / "reads.jsonl") == []


def test_many_processes_write_whole_linked_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(str(tmp_path), start * 100)) for start in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    path = tmp_path / "reads.jsonl"
    assert sorted(event["tokens"] for event in reader.events(path)) == sorted(s * 100 + n for s in range(4) for n in range(50))
    assert reader.verify(path) == []


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "reads.jsonl").symlink_to("elsewhere")
    with pytest.raises(OSError):
        writer.append(tmp_path, read())
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_the_log_is_the_owners_alone(tmp_path: Path) -> None:
    writer.append(tmp_path, read())
    assert (tmp_path / "reads.jsonl").stat().st_mode & 0o777 == 0o600
