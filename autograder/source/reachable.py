"""Which top-level functions and classes of a text the entry points reach, and the names that those use."""

from collections.abc import Collection
from dataclasses import dataclass, field

Place = tuple[int, int]  # the cell and the line
Owner = tuple[str, int, int]  # the name, cell and line of a definition at the top of the text


@dataclass
class Definition:
    """A top-level function or class: the names it uses and refers to, and whether it is replaced later."""

    uses: dict[str, Place] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    replaced: bool = False


class Definitions:
    """The top-level definitions of a text; `aliased` are names that its top refers to without calling them."""

    def __init__(self) -> None:
        self.aliased: set[str] = set()
        self.latest: dict[str, Owner] = {}
        self._top = Definition()  # the statements outside of definitions
        self._all: dict[Owner, Definition] = {}

    def of(self, owner: Owner | None) -> Definition:
        """Return the definition of an owner; for None, the statements outside of definitions."""
        return self._top if owner is None else self._all[owner]

    def begin(self, owner: Owner, certain: bool) -> Owner:
        """Add a definition, which replaces an earlier one of that name if it is certain to run."""
        self._all.setdefault(owner, Definition())
        before = self.latest.get(owner[0])
        if before is not None and before != owner and certain:
            self._all[before].replaced = True
        self.latest[owner[0]] = owner
        return owner

    def uses(self, entry_points: Collection[str] | None, all_count: bool) -> dict[str, Place]:
        """Return the first place of each name used at the top level or reachable from the entry points.

        Entry points None stand for every definition that is not replaced; with `all_count`, replaced ones count, too.
        """
        uses = dict(self._top.uses)
        for definition in self._all.values() if all_count else self._reached(entry_points):
            for name, place in definition.uses.items():
                keep_first(uses, name, place)
        return uses

    def _reached(self, entry_points: Collection[str] | None) -> list[Definition]:
        alive: dict[str, list[Definition]] = {}
        for (name, _, _), definition in self._all.items():
            if not definition.replaced or name in self.aliased:
                alive.setdefault(name, []).append(definition)
        waiting = set(alive) if entry_points is None else {*entry_points, *self._top.references} & set(alive)
        reached = set[str]()
        while waiting:
            name = waiting.pop()
            reached.add(name)
            for definition in alive[name]:
                waiting |= (definition.references & set(alive)) - reached
        return [definition for name in reached for definition in alive[name]]


def keep_first(places: dict[str, Place], name: str, place: Place) -> None:
    """Store the place of a name, unless an earlier one is known."""
    places[name] = min(place, places.get(name, place))
