"""Parse YAML files into pydantic records, with the line number of every error.

`MarkedYaml` collects all problems of a file as sentences; it does not raise for invalid input.
"""

import re
import types
import typing
from collections.abc import Collection, Hashable
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, Field, RootModel, ValidationError

from autograder.course.yaml_record import YamlRecord
from autograder.text.moments import read_date_or_time
from autograder.text.spelling import closest, did_you_mean, one_of
from autograder.text.yaml_loader import check_shape

Record = TypeVar("Record", bound=BaseModel)
_TEXT = "tag:yaml.org,2002:str"
_TIME = "tag:yaml.org,2002:timestamp"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
# in YAML 1.1, 010 is eight, 1:30 is ninety and 1_000 is a thousand
_PLAIN_NUMBER = re.compile(
    r"[-+]?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|nan)", re.I
)
YamlPath = tuple[Any, ...]  # the path from the root to a value: ("assignments", 2, "title")

_NOT_A_LIST = "must be a list (lines that begin with `- `), not {given}."
_NOT_A_BLOCK = "must be a block of `name: value` lines, not {given}."
# what is wrong with a value, by the type of pydantic's error; `given` is the value
_SENTENCES = {
    "int_type": "must be a whole number, not {given}.",
    "int_from_float": "must be a whole number, not {given}.",
    "float_type": "must be a number, not {given}.",
    "finite_number": "must be an ordinary number, not {given}.",
    "string_type": "must be text, not {given}.",
    "string_too_short": "is empty.",
    "bool_type": "must be true or false, not {given}.",
    "tuple_type": _NOT_A_LIST,
    "list_type": _NOT_A_LIST,
    "too_short": "must not be an empty list.",
    "model_type": _NOT_A_BLOCK,
    "model_attributes_type": _NOT_A_BLOCK,
    "dict_type": _NOT_A_BLOCK,
    "datetime_type": "must be a date and time such as `2026-11-27 23:59`, not {given}.",
    "greater_than": "must be greater than {gt:g}, not {given}.",
    "greater_than_equal": "must be at least {ge:g}, not {given}.",
    "less_than_equal": "must be at most {le:g}, not {given}.",
    "string_pattern_mismatch": "must be {description}, not {given}.",
    "value_error": "{error}",
}


class MarkedYaml:
    """One YAML file: its `data`, the line of every value, and the `problems` found so far.

    `noun` describes the file as a whole in messages ("the course"), `item` an entry of its list, if
    it is one.
    """

    def __init__(self, label: str, text: str, noun: str, item: str = "entry") -> None:
        self.label = label
        self.noun = noun
        self.item = item
        self.data: Any = None
        self._lines: dict[YamlPath, int] = {(): 1}
        self._problems: list[tuple[int, str]] = []
        self._written: dict[YamlPath, str] = {}  # the texts of numbers, times and the like
        self._odd_numbers: set[YamlPath] = set()
        self._loader = yaml.SafeLoader("")
        self._parse(text)

    @property
    def problems(self) -> tuple[str, ...]:
        """Each problem as `course.yml, line 7: …`, from the top of the file to its end."""
        ordered = sorted(dict.fromkeys(self._problems), key=lambda problem: problem[0])
        return tuple(f"{self.label}, line {line}: {sentence}" for line, sentence in ordered)

    def line(self, place: YamlPath) -> int:
        """Return the line of a value, or of the nearest enclosing value in the file."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def add(self, place: YamlPath, sentence: str) -> None:
        self._problems.append((self.line(place), sentence))

    def read(self, kind: type[Record]) -> Record | None:
        """Return the record of this file, or None if there are problems."""
        if self._problems and self.data is None:
            return None
        try:
            record = kind.model_validate(self.data)
        except ValidationError as error:
            details = error.errors(include_url=False)
            self._tell_odd_numbers({detail["loc"] for detail in details})
            unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
            meant = [_meant(kind, place) for place in unknown]
            for detail in details:
                if detail["type"] == "too_short" and detail["input"]:
                    continue  # the list is long enough; its invalid entries are reported one by one
                if detail["type"] == "missing" and detail["loc"] in meant:
                    continue  # present under a misspelt name, which is reported
                self.add(detail["loc"], self._sentence(kind, detail))
            return None
        self._tell_odd_numbers(set())
        return record

    def _tell_odd_numbers(self, refused: Collection[YamlPath]) -> None:
        """Add a problem for each number that YAML reads as another one than people do."""
        for place in sorted(self._odd_numbers.difference(refused), key=self.line):
            self.add(
                place,
                f"{self._named(place)} is written {self._written[place]}, which YAML takes for "
                f"{self._value(place)}. Write digits alone, such as 10 or 2.5.",
            )

    def read_list(self, kind: type[Record]) -> tuple[Record, ...] | None:
        """Return the records of a file that is a list of them, or None if there are problems."""
        several: Any = RootModel[Annotated[tuple[kind, ...], Field(strict=False)]]  # type: ignore[valid-type]
        record = self.read(several)
        return record.root if record else None

    def check_unique(self, place: YamlPath, key: str, noun: str) -> None:
        """Add a problem for each item of the list at `place` that repeats the `key` of an earlier one."""
        first: dict[Hashable, int] = {}
        for index, item in enumerate(self.items(place)):
            value = item.get(key) if isinstance(item, dict) else None
            if not isinstance(value, str):
                continue
            here = (*place, index, key)
            if value in first:
                self.add(here, f"the {noun} `{value}` is there already, in line {first[value]}.")
            first.setdefault(value, self.line(here))

    def items(self, place: YamlPath) -> list[Any]:
        """Return the list at `place`; empty if the value is not a list."""
        value = self._value(place)
        return value if isinstance(value, list) else []

    def _value(self, place: YamlPath) -> Any:
        value = self.data
        for step in place:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def _parse(self, text: str) -> None:
        try:
            node = _composed(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._problems.append(
                (mark.line + 1 if mark else 1, f"this is not valid YAML: {error.problem}.")
            )
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            self._problems.append((line, "this is not valid YAML: there is a control character."))
        except RecursionError as error:
            self._problems.append((1, f"{error}."))
        else:
            if node is None:
                self._problems.append((1, f"the file is empty; it should describe {self.noun}."))
            else:
                self.data = self._convert(node, (), ())

    def _convert(self, node: yaml.Node, place: YamlPath, around: tuple[int, ...]) -> Any:
        self._lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in around:
            self.add(place, "this block contains itself (an alias inside its own anchor).")
            return None
        around = (*around, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._convert_mapping(node, place, around)
        if isinstance(node, yaml.SequenceNode):
            return [
                self._convert(item, (*place, index), around)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, place)

    def _convert_mapping(
        self, node: yaml.MappingNode, place: YamlPath, around: tuple[int, ...]
    ) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            here = (*place, key)
            if key in data:
                self._problems.append(
                    (line, f"`{key}` is there twice, first in line {self._lines[here]}.")
                )
                continue
            self._lines[here] = line
            data[key] = self._convert(value_node, here, around)
        return data

    def _scalar(self, node: yaml.Node, place: YamlPath) -> Any:
        if node.tag != _TEXT:
            self._written[place] = node.value
        try:
            if (
                node.tag == _TIME
            ):  # of which YAML knows more spellings, with another meaning in each version
                return read_date_or_time(node.value)
            value = self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self.add(
                place, f"`{node.value}` cannot be read as YAML's `{node.tag}`; put it in quotes."
            )
            return node.value
        if node.tag in _NUMBERS and not _PLAIN_NUMBER.fullmatch(node.value):
            self._odd_numbers.add(place)
        return value

    def _sentence(self, kind: type[BaseModel], detail: Any) -> str:
        place = detail["loc"]
        error = detail["type"]
        owner = self.name_of(place[:-1])
        name = place[-1] if place else ""
        if error == "missing":
            return f"{owner} has no `{name}`."
        if error == "extra_forbidden":
            model = _model_at(kind, place[:-1])
            if issubclass(model, YamlRecord) and name in model.GONE:
                return f"`{name}` is no longer a setting of {owner}. {model.GONE[name]}"
            settings = _field_names(model)
            hint = did_you_mean(name, settings) or f"; it can have {one_of(settings)}."
            return f"`{name}` is not a setting of {owner}{hint}"
        return f"{self._named(place)} {self._demand(kind, detail)}"

    def _named(self, place: YamlPath) -> str:
        """Return how a sentence about a value begins."""
        is_setting = place and not isinstance(place[-1], int)
        return f"`{place[-1]}` of {self.name_of(place[:-1])}" if is_setting else self.name_of(place)

    def _demand(self, kind: type[BaseModel], detail: Any) -> str:
        """Return what a value must be; one that is not text is shown as it is written."""
        sentence = _demand(kind, detail)
        written = self._written.get(detail["loc"], "")
        if detail["type"] == "string_type" and written:
            return f"must be text, not {written} (put it in quotes)."
        return sentence

    def name_of(self, place: YamlPath) -> str:
        """Describe the value at `place` for a message: the part `mask` of `03_masked_heads`."""
        if not place:
            return self.noun
        around = place[:-1]
        key = place[-1]
        if isinstance(key, str):
            return f"`{key}` of {self.name_of(around)}" if around else f"`{key}`"
        noun = str(around[-1]).removesuffix("s") if around else self.item
        name = self._written_name(place)
        owner = self._written_name(around[:-1])
        item = f"the {noun} `{name}`" if name else f"{noun} {key + 1}"
        return f"{item} of `{owner}`" if owner else item

    def _written_name(self, place: YamlPath) -> str | None:
        """Return the `name` or `id` of a block, if it has one."""
        value = self._value(place)
        name = (value.get("name") or value.get("id")) if isinstance(value, dict) else None
        return name if isinstance(name, str) else None


def _demand(kind: type[BaseModel], detail: Any) -> str:
    """`must be a whole number, not the text "ten".`"""
    error = detail["type"]
    given = detail["input"]
    place = detail["loc"]
    if given is None:
        return "is empty."
    if error == "literal_error":
        words = _words(_annotation(_model_at(kind, place[:-1]), place[-1]))
        hint = did_you_mean(given, words) or "."
        return f"must be {one_of(words)}, not {_shown(given)}{hint}"
    facts = {"given": _shown(given), "message": detail["msg"], **detail.get("ctx", {})}
    if error == "string_pattern_mismatch":
        facts["description"] = _model_at(kind, place[:-1]).model_fields[place[-1]].description
    sentence = _SENTENCES.get(error, "is wrong: {message}.").format(**facts)
    return sentence


def _words(annotation: Any) -> list[str]:
    """Return the values of a `Literal`, also of an optional one, as they are written in YAML."""
    if typing.get_origin(annotation) is typing.Literal:
        return ["true" if word is True else str(word) for word in typing.get_args(annotation)]
    words: list[str] = []
    for inner in typing.get_args(annotation):
        words += _words(inner)
    return words


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, dict):
        return "a block of `name: value` lines"
    return "a list" if isinstance(value, list) else f"{value}"


def _meant(kind: type[BaseModel], place: YamlPath) -> YamlPath:
    """Return the place of the setting that an unknown name is a misspelling of."""
    around = place[:-1]
    return (*around, closest(place[-1], _field_names(_model_at(kind, around))))


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _annotation(model: type[BaseModel], key: str) -> Any:
    return next(f.annotation for name, f in model.model_fields.items() if key in (name, f.alias))


def _model_at(kind: type[BaseModel], place: YamlPath) -> type[BaseModel]:
    """Return the model of the block at a place of a file of this kind."""
    if issubclass(kind, RootModel):
        root = kind.model_fields["root"].annotation
        if typing.get_origin(root) is dict:  # its keys are names that the author chose
            root = typing.get_args(root)[1]
            place = place[1:]
        kind = _inner_model(root)
    for step in place:
        if isinstance(step, str):
            kind = _inner_model(_annotation(kind, step))
    return kind


def _inner_model(annotation: Any) -> type[BaseModel]:
    """`Part` for `Part`, `tuple[Part, ...]` and `Part | None`."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation
    inner = [part for part in typing.get_args(annotation) if part not in (Ellipsis, type(None))]
    return _inner_model(inner[0])


def _composed(text: str) -> yaml.Node | None:
    """Return the root node, read by libyaml where it is there: ten times faster, but its errors have other words."""
    with suppress(yaml.YAMLError):  # said below, in words of its own
        check_shape(text)
    fast = getattr(yaml, "CSafeLoader", None)
    if fast is not None:
        with suppress(yaml.YAMLError):
            return yaml.compose(text, Loader=fast)
    return yaml.compose(text, Loader=yaml.SafeLoader)
