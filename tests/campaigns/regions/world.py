"""One history: machines, clients and faults, all drawn from one seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from google.protobuf.message import Message
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.leases import is_lease
from budget_service.ledger.values import Account
from budget_service.ledger.windows import SECOND
from budget_service.regions.lease import RegionTerms
from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.regions.records import RegionRecords
from budget_service.regions.region import Region
from budget_service.server.home_client import HomeClient, HomeStatusError
from budget_service.server.lending_service import RegionService
from budget_service.server.limit_cache import LimitCache
from budget_service.server.regional_service import RegionalBudgetService
from budget_service.server.request_runner import RequestRunner
from budget_service.server.service import BudgetService
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.transactions import Changes
from budget_service.tuning import DEFAULTS
from tests.campaigns.regions.loop import now, sleep
from tests.campaigns.regions.machines import (
    AbortedError,
    Context,
    Ledger,
    Machine,
    MemoryRecordStorage,
    Network,
)
from tests.campaigns.regions.oracle import BrokenError, Oracle

UNIT = "0123456789abcdef" * 2
REGIONS = ("eu", "us", "asia")
TWIN = "+"
# Which blocks questions are about, by turns; of everybody: none.
ONE, OTHER = "0" * 16, "f" * 16
TOUCHED: tuple[tuple[str, ...], ...] = ((), (ONE,), (OTHER,), (ONE, OTHER))
# One for each region, and one that is asked for everywhere.
ACCOUNTS = (("eu", 900, "never"), ("us", 300, "never"), ("asia", 900, "day"), ("shared", 600, "day"))
LENGTH_SECONDS = 60
MARGIN = 2 * SECOND
TERMS = RegionTerms(skew=MARGIN, idle=15 * SECOND, report=SECOND)
SETTLING_SECONDS = 300
# Longer than a lease.
OUTAGE_SECONDS = 1.5 * LENGTH_SECONDS
# What a history may have beside its other faults; most have nothing of it.
DISASTERS = ("twin", "restored region", "restored home")


def configuration(rng: random.Random) -> Configuration:
    """Return limits small enough to be reached."""
    return Configuration.model_validate(
        {
            "accounts": [
                {
                    "path": ["acme"],
                    "limit": {"information": rng.choice((900, 9000)), "calls": 9999},
                    "window": "never",
                },
                *(
                    {"path": ["acme", name], "limit": {"information": most, "calls": 999}, "window": window}
                    for name, most, window in ACCOUNTS
                ),
            ],
            "leases": {
                "share_percent": rng.choice((5, 10, 30)),
                "outstanding_percent": rng.choice((50, 90)),
                "seconds": LENGTH_SECONDS,
            },
        }
    )


@dataclass
class World:
    """Everything of one history.

    Args:
        seed: Draws everything.
        seconds: How long there are faults and clients.
        inject_bug: Puts a bug in; called with the parts of each process as it starts.
        skew_beyond: Clocks differ by this many margins.
    """

    seed: int
    seconds: float = 240.0
    inject_bug: Callable[[Any], None] = lambda _: None
    skew_beyond: float = 0.5
    rng: random.Random = field(init=False)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw the machines."""
        self.rng = random.Random(self.seed)
        disasters = random.Random(f"disaster {self.seed}")
        self.disaster = disasters.choice(DISASTERS) if disasters.random() < 0.4 else ""
        # Budgets are reached sooner without blocks.
        self.touched = TOUCHED if self.seed % 2 else TOUCHED[:1]
        self.settings = LiveSettings(Settings(configuration(self.rng)))
        skews = [round((2 * self.rng.random() - 1) * self.skew_beyond * MARGIN) for _ in range(4)]
        names = ("home", *REGIONS)
        self.machines = {
            name: Machine(name, random.Random(self.rng.random()), skew)
            for name, skew in zip(names, skews, strict=True)
        }
        if self.rng.random() < 0.1:
            self.machines["asia"].skew += self.rng.choice((-1, 1)) * 3600 * SECOND
            self.note("wrong clocks")
        limits = {
            Account(tuple(each.path)): each.made_limit
            for each in self.settings.current.configuration.accounts
        }
        self.oracle = Oracle(limits)
        self.oracle.faults.update(self.log)
        self.networks = {name: self.network() for name in REGIONS}
        self.services: dict[str, RegionalBudgetService] = {}
        self.regions: dict[str, Region] = {}
        self.servicers: tuple[RegionService, BudgetService] | None = None
        # The first promise that was broken, which ends the history.
        self.broken: list[BrokenError] = []
        self.work: asyncio.Future[Any] | None = None
        for name, machine in self.machines.items():
            machine.committed = partial(self.observe, name)

    def network(self) -> Network:
        """Return the way from a region to the home."""
        return Network(
            random.Random(self.rng.random()),
            self.handle,
            loss=self.rng.choice((0.0, 0.02, 0.1)),
            repeats=self.rng.choice((0.0, 0.05, 0.3)),
            slowest=self.rng.choice((0.05, 0.2, 1.5)),
            counted=self.count,
        )

    def note(self, fault: str) -> None:
        """Note a fault."""
        self.log.append(fault)

    def count(self, fault: str) -> None:
        """Count a fault."""
        self.oracle.faults[fault] += 1

    async def history(self) -> Oracle:
        """Let everything happen, and check that the promise has held."""
        self.start_home()
        for name in REGIONS:
            await self.start_region(name)
        clients = [
            asyncio.ensure_future(self.client(name, number)) for name in REGIONS for number in range(3)
        ]
        faults = asyncio.ensure_future(self.faults())
        await self.until_broken(asyncio.gather(faults, *clients))
        for network in self.networks.values():
            network.is_cut, network.loss = False, 0.0
        await self.until_broken(sleep(SETTLING_SECONDS))
        await self.require_settled()
        return self.oracle

    async def until_broken(self, work: asyncio.Future[Any]) -> None:
        """Wait for work, unless the promise is broken before."""
        self.work = work
        await asyncio.wait((work,))
        self.require_kept()
        work.result()

    def require_kept(self) -> None:
        """Raise what was broken first."""
        if self.broken:
            raise self.broken[0]

    def start_home(self) -> None:
        """Start the home's process."""
        machine = self.machines["home"]
        ledger: Any = Ledger(machine)
        limits = LimitCache(ledger, self.settings)
        budget = BudgetService(ledger, self.settings, RequestRunner(None, DEFAULTS), DEFAULTS, limits)
        lending = RegionService(
            limits,
            self.settings,
            RequestRunner(None, DEFAULTS),
            regions_of=lambda _: None,
            elapsed=now,
        )
        self.servicers = lending, budget
        self.inject_bug(lending)

    async def start_region(self, name: str) -> None:
        """Start a region's process, and wait until it serves, or has crashed before that."""
        starting = self.machines[name].begin(self.serve_region(name))
        await asyncio.wait((starting,))
        if not starting.cancelled():
            starting.result()

    async def serve_region(self, name: str) -> None:
        """Open a region's records, and serve."""
        machine = self.machines[name]
        machine.lock()
        rng = random.Random(self.rng.random())
        ledger: Any = Ledger(machine)
        called = name.removesuffix(TWIN)
        records = await RegionRecords.opened(
            MemoryRecordStorage(machine), called, draw=lambda: f"{rng.getrandbits(128):032x}"
        )
        home = HomeClient(self.networks[name], called, records)
        region = Region(
            called, ledger, records, home, machine.clock, TERMS, draw=lambda: f"{rng.getrandbits(128):032x}"
        )
        maintenance = LeaseMaintenance(region)
        self.inject_bug(maintenance)
        self.regions[name] = region
        self.services[name] = RegionalBudgetService(
            maintenance, self.networks[name], self.settings, RequestRunner(None, DEFAULTS)
        )
        machine.begin(maintenance.run())

    async def handle(self, method: str, request: Message) -> Message:
        """Answer a message at the home, as its process does; after a crash never."""
        machine = self.machines["home"]
        generation = machine.generation
        await machine.turn(generation)
        if self.servicers is None:
            await asyncio.get_running_loop().create_future()
        assert self.servicers is not None
        servicer = self.servicers[0] if hasattr(self.servicers[0], method) else self.servicers[1]
        answer: Message = await called(servicer, method, request)
        if method == "BorrowBudget":
            self.oracle.lent(request, answer)  # type: ignore[arg-type]
        await machine.turn(generation)
        return answer

    async def client(self, home: str, number: int, twin: str = "") -> None:
        """Ask questions in one region or its twin, sometimes in another one, and again if there is no answer."""
        rng = random.Random(self.rng.random())
        account = ("acme", home if number else "shared")
        while now() < self.seconds:
            await sleep(rng.expovariate(0.7))
            region = home + twin if rng.random() < 0.9 else rng.choice(REGIONS)
            question = rng.randrange(200)
            name = f"{home}{twin}-{number}-{rng.getrandbits(64):x}"
            try:
                await self.ask(rng, region, account, question, name)
            except (HomeStatusError, TimeoutError):
                self.count("refused or unanswered questions")

    async def ask(
        self, rng: random.Random, region: str, account: tuple[str, ...], question: int, name: str
    ) -> None:
        """Ask one question: a direct charge, or a reservation that is settled, cancelled or forgotten."""
        who = pb.Account(path=account)
        self.oracle.touched[name] = blocks = self.touched[question % len(self.touched)]
        cost = cost_pb2.Cost(information=rng.randint(1, 9), calls=0, unit_id=UNIT, blocks=blocks)
        named = rng.random() < 0.7
        # The same question has the same cost, and the same release.
        if named:
            cost.information = 1 + question % 8
        ids = {"query_id": f"q{question}", "release_id": f"r{question}"} if named else {"query_id": name}
        if rng.random() < 0.5:
            charge = pb.UpdateBudgetRequest(account=who, cost=cost, request_id=name)
            if named:
                charge.query_id, charge.release_id = ids["query_id"], ids["release_id"]
            await self.charge(rng, region, charge)
            return
        reserve = pb.ReserveBudgetRequest(
            account=who,
            max_cost=cost_pb2.Cost(information=cost.information + 3, unit_id=UNIT, blocks=blocks),
            query_id=ids["query_id"],
            request_id=f"{name}-r",
        )
        reserve.ttl.seconds = rng.choice((2, 20))
        held = await self.persistently(rng, region, "ReserveBudget", reserve)
        await sleep(rng.random() * 4)
        fate = rng.random()
        if fate < 0.1:
            return
        if fate < 0.2:
            cancel = pb.ReleaseReservationRequest(
                account=who, reservation_id=held.reservation_id, request_id=f"{name}-c"
            )
            await self.persistently(rng, region, "ReleaseReservation", cancel)
            return
        settle = pb.UpdateBudgetRequest(
            account=who,
            cost=cost,
            request_id=name,
            reservation_id=held.reservation_id,
            release_id=ids.get("release_id", ""),
        )
        await self.charge(rng, region, settle)

    async def charge(self, rng: random.Random, region: str, request: pb.UpdateBudgetRequest) -> None:
        """Charge, and note what was acknowledged."""
        answer = await self.persistently(rng, region, "UpdateBudget", request)
        self.count("acknowledged charges")
        if not answer.already_paid:
            self.oracle.acknowledged[request.request_id, region] = answer.charged.information

    async def persistently(self, rng: random.Random, region: str, method: str, request: Message) -> Any:
        """Ask again with the same id while there is no answer."""
        for _ in range(4):
            machine = self.machines[region]
            try:
                async with asyncio.timeout(6.0):
                    await machine.turn(machine.generation)
                    return await called(self.services[region], method, request)
            except TimeoutError:
                self.count("retries")
            except HomeStatusError as error:
                if not error.is_transient:
                    raise
                self.count("retries")
            await sleep(rng.random() * 2)
        raise TimeoutError

    async def faults(self) -> None:
        """Let things go wrong, one after another and at the same time."""
        running = []
        kinds = (self.cut, self.crash_region, self.crash_home, self.pause)
        disasters = {
            "twin": self.start_twin,
            "restored region": self.restore_region,
            "restored home": self.restore_home,
        }
        if self.disaster:
            running.append(asyncio.ensure_future(disasters[self.disaster]()))
        while now() < self.seconds - 60:
            await sleep(self.rng.expovariate(1 / 15.0))
            running.append(asyncio.ensure_future(self.rng.choice(kinds)()))
        await asyncio.gather(*running)

    async def cut(self) -> None:
        """Cut a region off, sometimes for longer than a lease."""
        network = self.networks[self.rng.choice(REGIONS)]
        self.count("cuts")
        network.is_cut = True
        await sleep(self.rng.choice((3.0, 20.0, OUTAGE_SECONDS)))
        network.is_cut = False

    async def crash_region(self) -> None:
        """Kill a region's process and start another one."""
        name = self.rng.choice(REGIONS)
        if name not in self.services:
            return
        self.count("crashes of a region")
        await self.crash_and_start(name, lambda: None)

    async def crash_and_start(self, name: str, between: Callable[[], None]) -> None:
        """Kill a region's process, do something, and start another one."""
        machine = self.machines[name]
        machine.crash()
        generation = machine.generation
        await sleep(self.rng.choice((0.5, 10.0, OUTAGE_SECONDS)))
        await machine.running.wait()
        # The next start follows from the last crash.
        if machine.generation == generation:
            between()
            await self.start_region(name)

    async def start_twin(self) -> None:
        """Start a copy of a region's disk beside it, with callers of its own."""
        await sleep(20 + self.rng.random() * self.seconds / 2)
        name = self.rng.choice(REGIONS)
        self.count("twins of a region")
        twin, machine = name + TWIN, self.machines[name]
        copied = Machine(twin, random.Random(self.rng.random()), machine.skew)
        copied.restore(machine.image())
        copied.committed = partial(self.observe, twin)
        self.machines[twin], self.networks[twin] = copied, self.network()
        self.oracle.copied |= set(self.regions[name].records.leases)
        self.oracle.has_twin = True
        await self.start_region(twin)
        await asyncio.gather(*(self.client(name, number, TWIN) for number in range(2)))
        self.count("twins that were noticed" if self.has_noticed(name) else "twins that were not noticed")

    def has_noticed(self, name: str) -> bool:
        """Return whether one of two twins has heard that there is another one."""
        return any(self.regions[each].copied.is_set() for each in (name, name + TWIN))

    async def restore_region(self) -> None:
        """Put a region's lease file, or all of its disk, back as it was; no mark shows it."""
        name = self.rng.choice(REGIONS)
        await sleep(10 + self.rng.random() * self.seconds / 3)
        machine, image = self.machines[name], self.machines[name].image()
        known = set(self.regions[name].records.leases)
        # What is charged since is often not reported.
        self.networks[name].is_cut = self.rng.random() < 0.6
        await sleep(self.rng.choice((2.0, 15.0, 40.0)))
        self.count("regions that were set back")

        def set_back() -> None:
            # Until it is put back it is as any other region.
            self.oracle.copied |= known
            self.oracle.restored.add(name)
            machine.restore(image, with_ledger=self.rng.random() < 0.7)

        await self.crash_and_start(name, set_back)
        self.networks[name].is_cut = False

    async def restore_home(self) -> None:
        """Put the home's disk back as it was, with its mark."""
        machine = self.machines["home"]
        await sleep(10 + self.rng.random() * self.seconds / 2)
        image = machine.image()
        await sleep(self.rng.choice((2.0, 15.0, OUTAGE_SECONDS)))
        self.count("homes that were set back")
        machine.crash()
        await sleep(self.rng.choice((0.5, 10.0, OUTAGE_SECONDS)))
        machine.crash()
        machine.restore(image)
        self.oracle.home_restored(machine.disk.journal)
        self.start_home()

    async def crash_home(self) -> None:
        """Kill the home's process and start another one."""
        self.count("crashes of the home")
        self.machines["home"].crash()
        await sleep(self.rng.choice((0.5, 10.0, OUTAGE_SECONDS)))
        self.start_home()

    async def pause(self) -> None:
        """Hold a machine's process up, between any two of its steps."""
        machine = self.machines[self.rng.choice(("home", *REGIONS))]
        self.count("pauses")
        machine.running.clear()
        await sleep(self.rng.choice((1.0, 5.0, OUTAGE_SECONDS)))
        machine.running.set()

    def observe(self, name: str, changes: Changes) -> None:
        """Show the oracle what a machine has committed just now."""
        try:
            if name == "home":
                self.home_committed(changes)
            else:
                self.region_committed(name, changes)
        except BrokenError as error:
            self.broken.append(error)
            if self.work is not None:
                self.work.cancel()

    def home_committed(self, changes: Changes) -> None:
        """See a commit of the home."""
        for entry in changes.journal:
            rule = self.oracle.limits[entry.account].window
            self.oracle.home_committed(entry, rule.around(entry.holds[-1].window_start).window.start)

    def region_committed(self, name: str, changes: Changes) -> None:
        """See a commit of a region, by the time that the home's clock showed when it was decided."""
        ahead = self.machines["home"].skew - self.machines[name].skew
        for entry in changes.journal:
            self.oracle.region_committed(name, entry, entry.time + ahead)
        for (root, _), reservation in changes.reservations.items():
            if reservation is not None:
                decided = changes.roots[root].last_time
                self.oracle.region_reserved(name, reservation.account.path[1], decided + ahead)

    async def require_settled(self) -> None:
        """Check the end of the history."""
        home = self.machines["home"]
        held = [id_ for (_, id_) in home.disk.reservations if is_lease(id_)]
        # Those that have lapsed end with the next request of their root.
        now = home.clock()
        held = [id_ for id_ in held if home.disk.reservations["acme", id_].expires_at > now]
        held += [f"{name}: {lease}" for name, each in self.regions.items() for lease in each.records.leases]
        journals = {name: self.machines[name].disk.journal for name in self.regions}
        self.oracle.require_settled(home.disk.journal, journals, held)


async def called(servicer: Any, method: str, request: Message) -> Any:
    """Call a servicer; its errors become HomeStatusError."""
    context = Context()
    try:
        return await getattr(servicer, method)(request, context)
    except AbortedError:
        raise HomeStatusError(context.status) from None
