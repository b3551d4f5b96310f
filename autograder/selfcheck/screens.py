"""Terminal screens for students: reports, hints and progress, wrapped to the terminal's width.

Each function converts a record to a rich renderable; nothing is run or read here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from autograder.feedback.causes import causes_of
from autograder.feedback.render import Item
from autograder.selfcheck.answers import Card
from autograder.selfcheck.check import CheckReport, Finding
from autograder.selfcheck.drawing import Drawing
from autograder.selfcheck.hints import Hint
from autograder.selfcheck.pack import Packed
from autograder.selfcheck.progress import Standing
from autograder.text.wording import joined

BAR = 12
KEYS = "h hint · p picture · a answers · c catch · s pack · q quit"
NO_ANSWERS = "The answers to a part's questions are shown once its visible tests pass."
INDENT = 4
PRINTED_LINES = 8
FOLDED = 2  # names of assignments that are not begun
IN_FULL = 3  # failures that `watch` shows in full
_IN_LINE = re.compile(r" \(line \d+( of cell \d+)?\)")  # repeated in the line with the location
MARKS = {"?": "cyan", "✓": "green", "✗": "red", "○": "yellow"}
FULL = "█"
EMPTY = "░"


def check_screen(report: CheckReport, drawings: Sequence[Drawing] = ()) -> RenderableType:
    """Show a line per test, a message per cause, help, pictures, the points so far and the next step."""
    lines: list[RenderableType] = [Text(f"{report.assignment} · {report.file}", "bold")]
    lines += _about_the_file(report)
    already_said = {report.problem}
    for part, findings in report.by_part().items():
        lines += [
            Text(),
            _part_line(report.title(part), findings),
            *_findings(findings, already_said),
        ]
    if drawings:
        lines += [Text(), drawings_screen(drawings)]
    lines.append(Text())
    name = report.assignment
    if report.all_passed:
        lines += [Text(f"Well done! All {len(report.findings)} visible tests pass.", "green")]
        lines += [Text(_sure(report))]
        lines += [_commands((f"autograder pack {name}", "makes the file to hand in"))]
    else:
        lines += [Text(_sure(report)), _next(report)]
        lines += [_commands((f"autograder hint {name}", "helps, one step at a time"))]
    lines += [Text(warning, "yellow") for warning in report.warnings]
    lines += [Text(report.note, "dim")] if report.note else []
    return Group(*lines)


def _sure(report: CheckReport) -> str:
    """Say how many points the visible tests give, and what the hidden tests of the others ask."""
    if report.points <= report.max_score:
        return f"{_share(report.score, report.max_score)} points of the visible tests."
    share = _share(report.score, report.points)
    return f"{share} points are sure; the hidden tests ask the same promises with other numbers."


def _next(report: CheckReport) -> Text:
    finding = report.next
    if report.problem or finding is None:
        place = f" ({report.stopped_at})" if report.stopped_at else ""
        return Text(f"Next: fix the error that stops your file{place}.")
    place = f" ({finding.place})" if finding.place else ""
    if finding.unwritten and finding.place:
        return Text(f"Next: write `{finding.place.function}`{place}.")
    return Text(f"Next: “{finding.result.title}”{place}")


def _about_the_file(report: CheckReport) -> Iterator[RenderableType]:
    if report.problem:
        yield Text(report.problem, "red")
    for sentence in report.failures:
        yield Text(sentence, "yellow")
    if report.stopped_at:
        yield _indented(Text(f"→ {report.stopped_at}", "dim"))
    if report.printed.strip():
        yield _printed("Your file printed:", report.printed, 0)


def _findings(findings: Iterable[Finding], already_said: set[str]) -> Iterator[RenderableType]:
    """Show tests that fail for one cause together, below the known mistake and its question."""
    findings_by_test = {finding.result.name: finding for finding in findings}
    named = (replace(f.result, mistake=f.mistake or None) for f in findings_by_test.values())
    for cause in causes_of(named):
        if cause.familiar:
            yield _hanging(Text("≈", "cyan"), Text(cause.familiar, "cyan"))
        if cause.question and cause.question not in already_said:
            already_said.add(cause.question)
            yield _hanging(Text("?", "cyan"), Text(cause.question, "cyan"))
        above = bool(cause.shared) and cause.shared not in already_said
        if above:
            already_said.add(cause.shared)
            yield from _failure(findings_by_test[cause.tests[0].name])
        for result in cause.tests:
            yield from _finding(findings_by_test[result.name], already_said, above)


def _finding(
    finding: Finding, already_said: set[str], above: bool = False
) -> Iterator[RenderableType]:
    """Show one test, and what it found unless that stands `above` it."""
    result = finding.result
    mark, style = _mark(finding)
    title = Text(result.title, "dim" if finding.waits else "")
    yield _hanging(Text(mark, style), title)
    if finding.passed or finding.waits:
        return
    if not finding.unwritten:
        title.append(f" (−{result.lost:g})", "dim")
    if above:
        return
    cause = result.message or ""
    if cause in already_said:
        yield _indented(Text("for the same reason as above", "dim"))
        return
    already_said.add(cause)
    yield from _failure(finding)


def _failure(finding: Finding) -> Iterator[RenderableType]:
    cause = finding.result.message or ""
    for line in (_IN_LINE.sub("", cause, count=1) if finding.place else cause).splitlines():
        yield _indented(Text(line, "yellow" if finding.unwritten else "red"))
    if finding.place:
        function = f", in `{finding.place.function}`" if finding.place.function else ""
        yield _indented(Text(f"→ {finding.place}{function}", "dim"))
    if finding.result.to_try:
        yield _indented(Text(finding.result.to_try, "dim"))
    if finding.printed.strip():
        yield _printed("It printed:", finding.printed, INDENT)


def _mark(finding: Finding) -> tuple[str, str]:
    if finding.passed:
        return "✓", "green"
    if finding.waits:
        return "·", "dim"
    return ("○", "yellow") if finding.unwritten else ("✗", "red")


def _printed(heading: str, text: str, indent: int) -> RenderableType:
    lines = text.rstrip().splitlines()
    more = [f"… {len(lines) - PRINTED_LINES} more lines"] if len(lines) > PRINTED_LINES else []
    shown = [heading, *(f"  {line}" for line in lines[:PRINTED_LINES] + more)]
    return _indented(Text("\n".join(shown), "dim"), indent)


def hint_screen(hint: Hint | None, command: str) -> RenderableType:
    """Show one step, and the command for the next; or that no step is needed."""
    if hint is None:
        return Text("Every visible test passes: no hint is needed.", "green")
    kind = Text(f"Hint {hint.number} of {hint.of} · {hint.kind}", "cyan")
    body = _indented(Group(*map(Text, hint.text.split("\n"))))
    lines: list[RenderableType] = [Text(hint.title, "bold"), kind, body]
    if hint.number < hint.of:
        lines.append(Text(f"The next step: {command}", "dim"))
    elif hint.again:
        lines.append(Text(f"That was the last step. From the first: {command} --again", "dim"))
    return Group(*lines)


def question_screen(card: Card) -> RenderableType:
    """Show a question, below the title of its part."""
    return Group(Text(card.title, "bold"), _indented(Text(card.question)))


def answer_screen(card: Card) -> RenderableType:
    """Show the answer to a question that was shown."""
    return _indented(Text(card.answer, "cyan"))


def no_answers_screen() -> RenderableType:
    return Text(NO_ANSWERS, "dim")


def items_screen(
    sections: Iterable[tuple[str, Sequence[Item]]], lines: Sequence[str] = (), command: str = ""
) -> RenderableType:
    """Show lists, each below its heading if it has one, then lines, and the command that they end with."""
    shown: list[RenderableType] = []
    for heading, items in sections:
        if heading:
            shown.append(Text(heading, "bold"))
        shown += [*_items(items), Text()]
    shown += map(Text, lines)
    if command:
        shown.append(_commands((command, "asks the author's input")))
    return Group(*shown)


def _items(items: Iterable[Item]) -> Iterator[RenderableType]:
    for item in items:
        mark = Text(item.mark, MARKS.get(item.mark, "dim"))
        yield _hanging(mark, Text(item.line))
        if item.title:
            yield _indented(Text(item.title, "bold"))
        for line in item.below:
            yield _indented(Text(line, "cyan" if line.startswith(("    ", "→")) else ""))


def drawings_screen(drawings: Sequence[Drawing]) -> RenderableType:
    """Show the pictures' paths, sentences and captions, and the pictures that cannot be drawn yet."""
    lines: list[RenderableType] = []
    for drawing in drawings:
        if drawing.problem:
            lines.append(
                _hanging(
                    Text("·", "dim"), Text(f"{drawing.title}: not yet ({drawing.problem})", "dim")
                )
            )
        else:
            lines.append(_hanging(Text("▣", "green"), Text(drawing.file)))
            lines.append(_indented(Text(drawing.words)))
            lines.append(_indented(Text(f"What to look for: {drawing.look_for}", "dim")))
    return Group(*lines)


def progress_screen(standings: Sequence[Standing]) -> RenderableType:
    """Show a bar for each assignment that is begun and each of its parts; the others are one line."""
    table = Table.grid(
        Column(ratio=1), Column(no_wrap=True), Column(justify="right", no_wrap=True), padding=(0, 2)
    )
    begun = [standing for standing in standings if standing.is_begun]
    for standing in begun:
        name = Text(standing.work.name, "bold")
        report = standing.report
        table.add_row(name, *(_points(report.findings) if report else (Text("?", "red"), "")))
        if problem := report.problem if report else standing.problem:
            table.add_row(_indented(Text(problem, "red")), "", "")
        if report:
            for part, findings in report.by_part().items():
                table.add_row(_indented(Text(report.title(part)), 2), *_points(findings))
    all_findings: list[Finding] = []
    unfinished = []
    for standing in standings:
        if standing.report:
            all_findings += standing.report.findings
        if standing.report is None or not standing.report.all_passed:
            unfinished.append(standing.work.name)
    waiting = [standing.work.name for standing in standings if standing not in begun]
    if waiting:
        table.add_row(Text(f"Not begun: {joined(waiting, FOLDED)}", "dim"), "", "")
    _, share = _points(all_findings)
    more: RenderableType = Text("Well done! All visible tests of all assignments pass.", "green")
    if unfinished:
        more = _commands((f"autograder check {unfinished[0]}", "goes on"))
    return Group(table, Text(), Text(f"{share} points of the visible tests."), more)


def watch_screen(
    report: CheckReport | None, problem: str, clock: str, extra: RenderableType | None
) -> RenderableType:
    """Show the progress through the parts, the failures and the keys; passed tests are only counted."""
    lines: list[RenderableType] = [] if report is None else list(_standing_of(report))
    if problem:
        lines += [Text(), Text(problem, "red")]
    if extra is not None:
        lines += [Text(), extra]
    return Group(*lines, Text(), Text(f"checked at {clock} · {KEYS}", "dim"))


def _standing_of(report: CheckReport) -> Iterator[RenderableType]:
    yield Text(f"{report.assignment} · {report.file}", "bold")
    yield from _about_the_file(report)
    for part, findings in report.by_part().items():
        yield _part_line(report.title(part), findings)
    yield Text()
    already_said = {report.problem}
    failing = [finding for finding in report.findings if not finding.passed and not finding.waits]
    yield from _findings(failing[:IN_FULL], already_said)
    if failing[IN_FULL:]:
        more = len(failing) - IN_FULL
        yield Text(f" ✗ {more} more {'does' if more == 1 else 'do'} not pass yet", "dim")
    passed = sum(finding.passed for finding in report.findings)
    waiting = sum(finding.waits for finding in report.findings)
    yield Text(
        f" ✓ {passed} of {len(report.findings)} tests pass"
        + (f", {waiting} wait" if waiting else ""),
        "green",
    )
    yield Text()
    if report.all_passed:
        yield Text(f"Well done! {_sure(report)}", "green")
        yield Text("Next: s makes the file to hand in.")
    else:
        yield _next(report)


def packed_screen(packed: Packed, report: CheckReport) -> RenderableType:
    """Show the contents of the archive and the results of its file."""
    content = (
        f"{packed.file.name}, {packed.size:,} bytes, and nothing else. The grader can open it."
    )
    lines: list[RenderableType] = [Text(f"{packed.archive}", "bold"), _indented(Text(content))]
    if packed.source != packed.file.name:
        lines.append(_indented(Text(f"{packed.source} is in it as {packed.file.name}.", "yellow")))
    if packed.unchanged:
        lines.append(_indented(Text("It was there already, and your file has not changed since.")))
    elif packed.older:
        lines.append(_indented(Text(f"The older one is {packed.older} now.", "yellow")))
    lines.append(Text(f"Its visible tests: {_share(report.score, report.max_score)} points."))
    lines += [Text(report.problem, "red")] if report.problem else []
    lines += [Text(warning, "yellow") for warning in report.warnings]
    lines += [Text(report.note, "yellow")] if report.note else []
    if failing := sum(not finding.passed for finding in report.findings):
        sentence = f"{failing} of {len(report.findings)} tests {'does' if failing == 1 else 'do'} not pass yet."
        lines.append(Text(f"{sentence} You may still hand it in.", "yellow"))
    return Group(*lines, Text(f"Hand in {packed.archive.name}.", "green"))


def _part_line(title: str, findings: Sequence[Finding]) -> RenderableType:
    bar, share = _points(findings)
    table = Table.grid(
        Column(ratio=1), Column(justify="right", no_wrap=True), expand=True, padding=(0, 2)
    )
    table.add_row(Text(title, "bold"), Text.assemble(bar, f"  {share}"))
    return table


def _points(findings: Iterable[Finding]) -> tuple[Text, str]:
    """Return a bar of the points, and how many of how many they are."""
    results = [finding.result for finding in findings]
    score = sum(result.score for result in results)
    total = sum(result.max_score for result in results)
    full = round(BAR * score / total) if total else BAR
    full = min(full, BAR - 1) if score < total else BAR
    return Text.assemble((FULL * full, "green"), (EMPTY * (BAR - full), "dim")), _share(
        score, total
    )


def _share(score: float, total: float) -> str:
    return f"{score:g} of {total:g}"


def _hanging(mark: Text, text: Text) -> RenderableType:
    table = Table.grid(Column(width=1), Column(overflow="fold"), padding=(0, 1, 0, 0))
    table.add_row(mark, text)
    return Padding(table, (0, 0, 0, 1))


def _indented(text: RenderableType, by: int = INDENT) -> RenderableType:
    return Padding(text, (0, 0, 0, by))


def _commands(*commands: tuple[str, str]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for command, purpose in commands:
        table.add_row(Text(f"  {command}", "bold"), Text(purpose, "dim"))
    return table
