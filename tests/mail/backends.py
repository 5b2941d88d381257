"""Email backends that misbehave; what they were given is in `given`."""

from typing import Any, ClassVar

given: list[Any] = []


class Moody:
    """Fails, then sends nothing, then sends."""

    answers: ClassVar = [OSError("no route to host"), 0, 1]

    def __init__(self, **options: Any) -> None:
        pass

    def send_messages(self, messages: list[Any]) -> int:
        answer = self.answers[len(given)]
        given.extend(messages)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Lenient:
    """Takes what no server would, and does not say how many it has sent."""

    def __init__(self, **options: Any) -> None:
        pass

    def send_messages(self, messages: list[Any]) -> None:
        given.extend(messages)
