"""docs/reference/websocket.md says what the protocol does."""

from pathlib import Path

from jobqueue.live import protocol

TEXT = Path("docs/reference/websocket.md").read_text(encoding="utf-8")


def rows(title: str) -> dict[str, str]:
    """Return the table that follows a line with `title`, its first column without backticks."""
    _, _, rest = TEXT.partition(title)
    table = rest.split("\n| --- | --- |\n", 1)[1].split("\n\n", 1)[0]
    cells = (line.strip("| ").split(" | ", 1) for line in table.strip().split("\n"))
    return {first.strip("`"): second for first, second in cells}


def test_close_codes() -> None:
    found = rows("## Close codes")
    assert found.pop("1012")
    assert found == {str(int(c)): meaning for c, meaning in protocol.CLOSE_MEANING.items()}
    assert set(protocol.CLOSE_MEANING) == set(protocol.Close)


def test_problems() -> None:
    found = {code: meaning.casefold() for code, meaning in rows("## Problems").items()}
    expected = {
        code: meaning.rstrip(".").casefold() for code, (_, meaning) in protocol.PROBLEMS.items()
    }
    assert found == expected


def test_reasons() -> None:
    expected = {reason.value: meaning for reason, meaning in protocol.RESYNC_MEANING.items()}
    assert rows("Reasons of `resync`") == expected


def test_topics_and_limits() -> None:
    assert all(f"### `{topic}`" in TEXT for topic in protocol.Topic)
    assert f"| subscriptions of a connection | {protocol.MAX_SUBSCRIPTIONS}," in TEXT
    assert f"| events of a subscription | {protocol.FRAMES_PER_SECOND} a second" in TEXT
    assert f"| a message of a client | {protocol.MAX_MESSAGE_BYTES // 1024} KiB" in TEXT
    assert f"| {protocol.MAX_MESSAGES} in {protocol.MESSAGES_SECONDS:g} s, else close" in TEXT
    assert f"| {protocol.MAX_MALFORMED} in all, then close" in TEXT
    assert f"more than {protocol.MAX_CHANGES} changes" in TEXT
    assert f"at most {protocol.MAX_WATCHED};" in TEXT
    assert f"Protocol version **{protocol.VERSION}**" in TEXT
