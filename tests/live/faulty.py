"""A channel layer that fails at everything, as one whose server is away."""

from typing import Any


class FaultyLayer:
    """Raises whatever it is asked for."""

    def __init__(self, **config: Any) -> None:
        self.extensions = ["groups"]

    async def new_channel(self, prefix: str = "specific.") -> str:
        return f"{prefix}channel"

    async def group_add(self, group: str, channel: str) -> None:
        raise ConnectionError("the layer is away")

    async def group_send(self, group: str, message: Any) -> None:
        raise ConnectionError("the layer is away")

    async def receive(self, channel: str) -> Any:
        raise ConnectionError("the layer is away")
