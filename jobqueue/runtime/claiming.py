"""Where a worker process claims: for its free slots, and for what will start within a moment.

`Claimer.claim` is called at every turn of the fetch loop. It decides how many jobs to ask for and
when to ask at all, hands what it got to the slots, and gives back at once what must not wait
behind others; `give_back` gives back later what found no slot in time. Whatever raises between a
claim and its slot leaves the job claimed and not held: the beat finds it, and it is released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import Error

from jobqueue import hints
from jobqueue.conf import RELEASE_UNSTARTED_SECONDS, Options
from jobqueue.engine.announcements import announce_superseded
from jobqueue.engine.limits import Taken, Wish, admit, claim_free, seed, take, take_alone
from jobqueue.hints import Listener
from jobqueue.runtime.blocking_claim import BlockingClaim
from jobqueue.runtime.discovery import Discovery
from jobqueue.runtime.held_jobs import HeldJobs
from jobqueue.runtime.ledger import ENOUGH_EMPTY_LOOKS
from jobqueue.runtime.prefetch import Prefetch
from jobqueue.runtime.queue_scan import QueueScan
from jobqueue.runtime.rate_windows import RateWindows
from jobqueue.runtime.recycling import Recycling
from jobqueue.runtime.slots import AsyncSlots, Finished, ThreadSlots
from jobqueue.runtime.spec import ChildSpec
from jobqueue.states import State
from jobqueue.storage import Storage
from jobqueue.storage.records import Claim, Ending
from jobqueue.tasks import JobTask

UNTIL_EMPTY_POLL = 0.2
"""Seconds between two looks of a worker that is to stop when nothing is left."""


class Claimer:
    """Claims for the slots of one process. Only the fetch loop calls it, but for `hinted`.

    tasks: by name, what this process can run; grows when a moved task is found.
    """

    def __init__(
        self,
        spec: ChildSpec,
        options: Options,
        tasks: Mapping[str, JobTask[..., Any]],
        threads: ThreadSlots,
        coroutines: AsyncSlots,
        held: HeldJobs,
        recycling: Recycling,
        blocking_claim: BlockingClaim,
    ) -> None:
        self.tasks = dict(tasks)
        self._spec = spec
        self._options = options
        self._threads = threads
        self._coroutines = coroutines
        self._held = held
        self._recycling = recycling
        self._blocking_claim = blocking_claim
        self._for_threads = self._scan(is_async=False)
        self._for_loop = self._scan(is_async=True)
        self._prefetch = Prefetch(spec.threads, options.batch)
        self._rate_windows = RateWindows()
        self._discovery = Discovery()
        self._heard_of: set[str] = set()
        self._is_hinted = False
        self._looks_at_once = False

    @property
    def has_coroutines(self) -> bool:
        """Whether any task is a coroutine function."""
        return bool(self._for_loop.tasks)

    @property
    def rest_seconds(self) -> float:
        """Seconds until the next look is due."""
        if self._looks_at_once:
            return 0.0
        rest = min(self._for_threads.rest_seconds, self._for_loop.rest_seconds)
        return min(rest, self._rate_windows.next_seconds)

    @property
    def empty_looks(self) -> int:
        """How many looks in a row have found nothing."""
        counts = [each.empty_looks for each in (self._for_threads, self._for_loop) if each.tasks]
        return min(counts, default=ENOUGH_EMPTY_LOOKS)

    def hinted(self) -> None:
        """Look at the next turn; from any thread."""
        self._is_hinted = True
        self._look_again()

    def keep_looking(self) -> None:
        """Rest little: a job that has ended may have enqueued another."""
        self._for_threads.found_something()
        self._for_loop.found_something()

    # --- claim ----------------------------------------

    def claim(self, storage: Storage, listener: Listener) -> int:
        """Claim for the free slots, and what will start within a moment; return how many."""
        self._looks_at_once = False
        running, waiting = self._threads.running, self._threads.waiting
        room = self._prefetch.room(running, waiting)
        limited = self._prefetch.limited_room(running, waiting, self._threads.waiting_first)
        claimed = self._fetch(storage, listener, self._for_threads, room, limited)
        room = min(self._coroutines.count - self._coroutines.running, self._options.batch)
        claimed += self._fetch(storage, listener, self._for_loop, room, room)
        is_idle = self._threads.running < self._threads.count
        if is_idle and self._recycling.room(1) > 0:
            self._blocking_claim.look(storage, self._spec.queues, self.tasks)
        listener.want(is_idle)
        return claimed

    def collect(self, storage: Storage, *, is_ending: bool) -> int:
        """Take on what was claimed in line, or give it back; return how many. At every turn."""
        if is_ending:
            self._blocking_claim.stop()
        found = self._blocking_claim.collect()
        is_unwanted = is_ending or self._recycling.room(1) <= 0
        if is_unwanted:
            _release(storage, found)
        if is_unwanted or not found:
            return 0
        return self._take(storage, Taken(limited=found))  # they have waited enough: first

    def claim_alone(self, storage: Storage) -> int:
        """Claim one suspect, for a process of one slot; return how many that were."""
        queues, _ = self._for_threads.look(storage)
        wish = Wish(self._spec.identity_id, queues, sorted(self.tasks))
        return self._take(storage, take_alone(storage, wish))

    def _fetch(
        self, storage: Storage, listener: Listener, scan: QueueScan, room: int, limited_room: int
    ) -> int:
        if room <= 0 or not scan.is_due:
            return 0
        # Those refused count on top, or they would keep their place before others for ever.
        room = self._recycling.room(room + scan.refused)
        if room <= 0:
            return 0
        queues, behind = scan.look(storage)
        taken = Taken()
        if queues:
            wish = Wish(self._spec.identity_id, queues, scan.tasks, behind, self._spec.strict_order)
            if scan.has_limited and limited_room > 0:
                taken = take(storage, wish, room, limited_room)
                scan.learn(taken)
                self._rate_windows.note(taken.opens)
            else:
                taken.claims = claim_free(storage, wish, room)
            self._share_hint(listener, queues, is_full=len(taken) == room)
        if len(taken):
            scan.found_something()
        elif scan.found_nothing(storage, taken):
            self._looks_at_once = True
        kept = self._take(storage, taken)
        scan.refused = min(len(taken) - kept, self._threads.count)
        if len(taken) and not kept:
            scan.rest()  # all were handed back: claiming them again at once would go on for ever
        return kept

    def _share_hint(self, listener: Listener, queues: list[str], *, is_full: bool) -> None:
        """Pass a hint on that led to a full batch: there may be work for another worker, too."""
        if not self._spec.queues and not self._heard_of.issuperset(queues):
            self._heard_of.update(queues)
            listener.watch(sorted(self._heard_of))
        if self._is_hinted and is_full:
            listener.pass_on(queues)
        self._is_hinted = False

    def _take(self, storage: Storage, taken: Taken) -> int:
        """Hand claims to the slots; give back what must not wait or is held already."""
        back = [claim for claim in taken.limited if not self._put(claim, is_first=True)]
        back += [claim for claim in taken.claims if not self._put(claim)]
        _release(storage, back)  # without a hint: it would wake this very process
        self._recycling.took(len(taken) - len(back))
        return len(taken) - len(back)

    def _put(self, claim: Claim, *, is_first: bool = False) -> bool:
        """Hand a claim to a slot; return False if it is not to be kept."""
        is_async = self.tasks[claim.task].is_async  # a coroutine waits behind nobody
        if not (is_async or is_first or self._prefetch.may_wait(claim, self._threads.waiting)):
            return False
        entry = (claim.fence, None)
        if self._held.setdefault(claim.id, entry) is not entry:
            return False
        if is_async:
            self._coroutines.put(claim)
        else:
            self._threads.put(claim, is_first=is_first)
        return True

    # --- what changes the next claim ----------------------------------------

    def give_back(self, storage: Storage, *, all_of_them: bool) -> None:
        """Release claims that found no slot in time, so that an idle worker can have them."""
        claims = self._threads.take_back(0.0 if all_of_them else RELEASE_UNSTARTED_SECONDS)
        try:
            _release(storage, claims)
        except Error:
            for claim in claims:
                self._threads.put(claim)  # still ours, as far as we know
            raise
        for claim in claims:
            self._held.pop(claim.id, None)
        if claims:
            self._recycling.took(-len(claims))
            self._prefetch.gave_back()
        hints.send(self._spec.backend, {claim.queue for claim in claims}, storage.connection)

    def have_ended(self, storage: Storage, finished: Sequence[Finished]) -> None:
        """Learn from ends that are written, and let start what waited for them."""
        for ended, _ in finished:
            if self.tasks[ended.claim.task].is_async:
                self._coroutines.done()
            else:
                self._prefetch.learn(ended)
        for queue in {ended.claim.queue for ended, _ in finished}:
            self._for_threads.has_ended(queue)
            self._for_loop.has_ended(queue)
        self._let_start(storage, {ended.claim.limit_key for ended, _ in finished})

    def open_rates(self, storage: Storage) -> None:
        """Let start what waited for a rate whose next period has begun."""
        if due := self._rate_windows.due():
            self._let_start(storage, due)
            self._look_again()  # a queue may be among them

    def discover(self, storage: Storage) -> None:
        """Take on tasks that jobs wait for and that could be imported after all."""
        found = self._discovery.run_once(storage, self.tasks)
        if not found:
            return
        self.tasks |= found
        for scan, is_async in ((self._for_threads, False), (self._for_loop, True)):
            scan.tasks = self._names(is_async=is_async)
        if self.has_coroutines:
            self._coroutines.start()
        storage.update_worker_tasks(self._spec.identity_id, sorted(self.tasks))
        seed(storage, self.tasks.values(), self._spec.backend, self._options)

    def _let_start(self, storage: Storage, keys: Iterable[str | None]) -> None:
        """Admit the next jobs of keys that have got room, and look for them."""
        admitted = admit(storage, keys)
        self._rate_windows.note(admitted.opens)
        if admitted.queues:
            self._look_again()
            hints.send(self._spec.backend, admitted.queues, storage.connection)

    def _look_again(self) -> None:
        self._for_threads.hinted()
        self._for_loop.hinted()

    def _names(self, *, is_async: bool) -> tuple[str, ...]:
        return tuple(sorted(n for n, task in self.tasks.items() if task.is_async == is_async))

    def _scan(self, *, is_async: bool) -> QueueScan:
        names = self._names(is_async=is_async)
        poll = self._options.poll_seconds
        return QueueScan(
            names,
            self._spec.queues,
            min(poll, UNTIL_EMPTY_POLL) if self._spec.until_empty else poll,
        )


def _release(storage: Storage, claims: list[Claim]) -> None:
    if not claims:
        return
    moves = storage.end_many(
        [
            Ending(id=c.id, fence=c.fence, worker=c.worker, state=State.READY, alone=c.alone)
            for c in claims
        ]
    )
    announce_superseded(moves.superseded)
