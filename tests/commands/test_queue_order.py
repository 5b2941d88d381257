"""``runworker --queue-order``: strict needs the queues in their order."""

import pytest
from django.core.management import CommandError

from jobqueue.management.commands.runworker import _is_strict


def test_strict_order_needs_the_queues_by_name():
    assert _is_strict({"queue_order": "strict", "queues": "mail,default"})
    assert not _is_strict({"queue_order": "rank", "queues": ""})
    with pytest.raises(CommandError, match="needs --queues"):
        _is_strict({"queue_order": "strict", "queues": ""})
