"""Terminal tables of a graded class, of two compared gradings and of similar submissions."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table

from autograder.api import Run
from autograder.cli.verbosity import VERBOSE
from autograder.course.config import Course
from autograder.feedback.objections import SHORT, Objection
from autograder.feedback.titles import titles_of
from autograder.gradebook.comparing import Change, Comparison, TestChange
from autograder.gradebook.decisions import FILE_NAME as DECISIONS
from autograder.gradebook.decisions import Decided, ids_of
from autograder.gradebook.final_scores import final_of, number, points_of, standing
from autograder.gradebook.lateness import Final, GradeKey
from autograder.gradebook.times import shown_id, with_name
from autograder.records import Grade
from autograder.text.wording import counted, counted_are, listed

OTHER = "other"  # the column of refused submissions without an assignment in the course
TABLE_ROWS = 60  # maximum number of students in a terminal; the report has all of them
NAME_WIDTH = 32  # maximum width of a student's name
WIDEST = 10_000  # of a table that is only measured
SHOWN = {"excused": "[dim]excused[/]", "refused": "[yellow]refused[/]"}
COLOURS = {"down": "red", "up": "green", "same": "yellow"}
COUNTED = {
    "down": "down",
    "removed": "only in the old grades",
    "up": "up",
    "added": "only in the new grades",
    "same": "with other results and the same score",
    "unchanged": "unchanged",
}


def show_class(console: Console, course: Course, run: Run, *, as_json: bool) -> None:
    """Print the table of a class: refused submissions, scores, and the paths of the report and the grades."""
    summary = run.summary
    folder = run.folder
    grades = list(run.grades)
    count = run.final_scores
    if as_json:
        counts = {
            "graded": summary.graded,
            "refused": summary.refused,
            "unchanged": summary.unchanged,
        }
        print(
            json.dumps(
                {**counts, "failures": summary.failures, **run.as_record()}, ensure_ascii=False
            )
        )
        return
    people = run.names
    originals = run.originals
    for grade in sorted((g for g in grades if g.status == "refused"), key=lambda g: g.key):
        whose = f"{escape(with_name(grade.student, people, originals))}, {grade.assignment}"
        console.print(f"[yellow]refused[/] {whose}: {escape(grade.problem or '')}")
    for table in _class_tables(console, course, run):
        console.print(table)
    _show_late(console, count, people, originals)
    for grade in grades if VERBOSE.get() else ():
        place = f"{escape(with_name(grade.student, people, originals))}, {grade.assignment}"
        console.print(
            f"[dim]{place}: {grade.seconds:.2f} s, seed {grade.seed}, {grade.isolation}[/]",
            soft_wrap=True,
        )
    _show_mistakes(console, course, grades)
    tiers = sorted({grade.isolation for grade in grades if grade.status == "graded"})
    if tiers and tiers != ["namespaces"]:
        console.print(f"[yellow]Isolation: {', '.join(tiers)}[/] (see `autograder doctor`)")
    for failure in summary.failures:
        console.print(f"[red]not graded:[/] {escape(failure)}")
    done = f"{summary.graded} graded, {summary.refused} refused, {summary.unchanged} unchanged."
    console.print(
        f"{done} Report: [bold]{folder / 'index.html'}[/], grades: {folder / 'grades.csv'}",
        soft_wrap=True,
    )


def _class_tables(console: Console, course: Course, run: Run) -> Iterator[Table]:
    """Yield one table, or several if the console is too narrow for all assignments; each shows the total."""
    names = [a.name for a in course.assignments if any(g.assignment == a.name for g in run.grades)]
    has_others = any(_is_for_none(course, grade) for grade in run.grades)
    columns = [*names, OTHER] if has_others else names
    shown = list[str]()
    table = _class_table(course, run, names, [])
    for name in columns:
        wider = _class_table(course, run, names, [*shown, name])
        if (
            shown
            and console.measure(wider, options=console.options.update_width(WIDEST)).maximum
            > console.width
        ):
            yield table
            shown = []
            wider = _class_table(course, run, names, [name])
        shown = [*shown, name]
        table = wider
    yield table


def _is_for_none(course: Course, grade: Grade) -> bool:
    return grade.status == "refused" and course.find(grade.assignment) is None


def _class_table(course: Course, run: Run, names: list[str], shown: list[str]) -> Table:
    grades = run.grades
    count = run.final_scores
    scores = {(g.student, OTHER if _is_for_none(course, g) else g.assignment): g for g in grades}
    students = sorted({*(grade.student for grade in grades), *run.absent})
    table = Table(box=box.SIMPLE_HEAD, show_footer=len(students) > TABLE_ROWS)
    rest = len(students) - TABLE_ROWS
    footer = f"… {rest} more in the report" if rest > 0 else ""
    table.add_column("student", footer=footer, no_wrap=True, max_width=NAME_WIDTH)
    most = {name: points_of(course.assignment(name), grades, count) for name in names}
    table.add_column(f"total\n/ {number(sum(most.values()))}", justify="right", no_wrap=True)
    for name in shown:
        points = "" if name == OTHER else f"/ {number(most[name])}"
        table.add_column(f"{name.partition('_')[0]}\n{points}", justify="right", no_wrap=True)
    originals = run.originals
    for student in students[:TABLE_ROWS]:
        mine = {name: scores.get((student, name)) for name in (*names, OTHER)}
        finals = {name: final_of(grade, count) if grade else None for name, grade in mine.items()}
        total = number(sum(final.score for final in finals.values() if final))
        table.add_row(
            escape(shown_id(student, originals)), total, *[_cell(mine[n], finals[n]) for n in shown]
        )
    return table


def _cell(grade: Grade | None, final: Final | None) -> str:
    if grade is None or final is None:
        return "[dim]–[/]"
    shown = standing(grade, final)
    if shown != "scored":
        return SHOWN[shown]
    score = number(final.score)
    if grade.score == grade.max_score:
        score = f"[green]{score}[/]"
    elif grade.score == 0:
        score = f"[red]{score}[/]"
    return f"[yellow]late[/] {score}" if final.minus else score


def _show_late(
    console: Console,
    count: Mapping[GradeKey, Final],
    names: Mapping[str, str],
    originals: Mapping[str, str],
) -> None:
    """Print which scores were reduced for lateness, or may have to be."""
    finals = list(count.values())
    if decisions := {decision for final in finals for decision in final.decisions}:
        console.print(f"{counted_are(len(decisions), 'decision')} laid over the grades.")
    if late := sum(final.minus > 0 for final in finals):
        whose = "1 grade counts" if late == 1 else f"{late} grades count"
        console.print(
            f"[yellow]{whose} less than the score reached, for lateness.[/] The table shows final scores; "
            "grades.csv has both.",
            soft_wrap=True,
        )
    if untimed := sum(not final.known for final in finals):
        console.print(
            f"[yellow]The submission time of {counted(untimed, 'submission')} is unknown; the score counts in full.[/] "
            "`autograder collect` stores the times of a course site; `--times` reads them from a table.",
            soft_wrap=True,
        )
    if marked := [
        f"{with_name(student, names, originals)} ({name})"
        for (student, name), f in count.items()
        if f.marked
    ]:
        console.print(
            f"[yellow]Marked as late by the course site:[/] {escape(listed(marked))}.",
            soft_wrap=True,
        )


def _show_mistakes(console: Console, course: Course, grades: list[Grade]) -> None:
    title_of = titles_of(course)
    grades_with: Counter[tuple[str, str | None, str | None]] = Counter()
    for grade in grades:
        of_mistakes = [test for test in grade.tests if test.mistake]
        names = [(grade.assignment, test.mistake, test.hint) for test in of_mistakes]
        grades_with.update(dict.fromkeys(names, 1))
    for (assignment, mistake, hint), count in grades_with.most_common(5):
        title = escape(title_of(assignment, mistake or ""))
        console.print(f"[bold]{count}×[/] {assignment[:2]} {title}. [dim]{escape(hint or '')}[/]")


def show_line(grade: Grade, course: Course, as_json: bool) -> None:
    """Print a grade as one line at once, for people who watch or for machines."""
    moment = datetime.fromisoformat(grade.graded_at).astimezone(ZoneInfo(course.timezone))
    names = ("student", "assignment", "status", "score", "max_score", "problem", "graded_at")
    if as_json:
        record = {name: getattr(grade, name) for name in names}
        print(json.dumps(record, ensure_ascii=False), flush=True)
        return
    result = f"{number(grade.score)} of {number(grade.max_score)}"
    if grade.status == "refused":
        result = f"refused: {grade.problem}"
    words = (moment.strftime("%H:%M:%S"), grade.student, grade.assignment, result)
    print("  ".join(words), flush=True)


def show_comparison(console: Console, comparison: Comparison) -> None:
    """Print the changed submissions with the reasons, then those of one run only, the counts and warnings."""
    for change in comparison.changes:
        if change.before and change.after:
            _show_change(console, change)
    for kind in ("removed", "added"):
        places = [f"{c.student}, {c.assignment}" for c in comparison.changes if c.kind == kind]
        if places:
            console.print(f"{COUNTED[kind].capitalize()}: {escape(listed(places))}.")
    counts = [f"{count} {COUNTED[kind]}" for kind, count in comparison.counts.items() if count]
    console.print(f"{', '.join(counts)}.")
    if comparison.other_seeds:
        console.print(
            f"[yellow]The runs drew different inputs (seeds {_seeds(comparison.seeds_before)} and "
            f"{_seeds(comparison.seeds_after)}): a result may change although the suite did not.[/] "
            f"`autograder grade --regrade --seed {comparison.seeds_before[-1]}` repeats the old ones."
        )
    if others := sum(change.other_submission for change in comparison.changes):
        console.print(f"[yellow]Changed with another submission text: {others}.[/]")


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _show_change(console: Console, change: Change) -> None:
    before, after = (_score(grade) for grade in (change.before, change.after) if grade)
    scores = f"{before} → [{COLOURS[change.kind]}]{after}[/]"
    console.print(f"[bold]{escape(change.student)}[/], {escape(change.assignment)}: {scores}")
    for reason in _reasons(change):
        console.print(Padding(reason, (0, 0, 0, 2)))
    console.print()


def numbers(header: str) -> Column:
    """Return a column of numbers."""
    return Column(header, justify="right", no_wrap=True)


def _score(grade: Grade) -> str:
    if grade.status == "refused":
        return "refused"
    return f"{number(grade.score)} / {number(grade.max_score)}"


def _reasons(change: Change) -> Iterator[str]:
    for grade, when in ((change.before, "before"), (change.after, "now")):
        if grade is not None and grade.problem:
            yield f"{when}: {escape(grade.problem)}"
    if change.other_submission:
        yield "[yellow]another text was graded[/]"
    yield from change.reasons
    yield from map(_reason, change.tests)


def _reason(test: TestChange) -> str:
    before = test.before or "not there"
    after = test.after or "not there"
    how = f"{before} → {after}" if before != after else f"{after}, other points"
    points = [
        "–" if score is None else number(score) for score in (test.score_before, test.score_after)
    ]
    message = f"\n  [dim]{escape(test.message)}[/]" if test.message else ""
    return f"[bold]{how}[/] ({' → '.join(points)}): {escape(test.title)}{message}"


def show_decided(console: Console, decided: Sequence[Decided]) -> None:
    """Print what a new decision changes."""
    changed = [after for after in decided if len(_scores(after)) > 1]
    shown = changed if len(decided) > 1 else decided
    for after in shown[:TABLE_ROWS]:
        change = " → ".join(_scores(after))
        console.print(
            f"{escape(_called(after))}, {after.grade.assignment}: {change}", soft_wrap=True
        )
    if len(shown) < len(decided):
        console.print(f"Scores that do not change: {len(decided) - len(shown)}.")
    console.print(escape(decided[0].made[-1].sentence) if decided else "", soft_wrap=True)
    console.print(f"Written to {DECISIONS}. `autograder report` writes the pages with it.")


def _scores(decided: Decided) -> list[str]:
    """Return the score before and after a decision; one if it is the same."""
    grades = (decided.journal, decided.grade)
    scores = [f"{number(g.score)} of {number(g.max_score)} points" for g in grades]
    return list(dict.fromkeys(scores))


def _called(decided: Decided) -> str:
    """Return the student's id as the decision has it, which can be one that no folder can have."""
    named = [
        decision.student for decision in decided.made if decided.grade.student in ids_of(decision)
    ]
    return named[-1] if named and named[-1] else decided.grade.student


def show_objection(console: Console, objection: Objection) -> None:
    """Print the disputed tests, their answers and the student's reason side by side."""
    request = objection.request
    console.print(
        f"[bold]{escape(request.student)}[/], {request.assignment}, submission {request.digest[:SHORT]}",
        soft_wrap=True,
    )
    table = Table("test", "answer", "reason", box=box.SIMPLE_HEAD, pad_edge=False)
    reason = request.reason or "–"
    for answer in objection.answers:
        lines = [answer.before, "", f"Once more: {answer.now}"]
        if answer.before == answer.now:
            lines = [answer.now, "", "Once more: the same."]
        if answer.claimed:
            lines += ["", f"The text says instead: {answer.claimed}"]
        title = f"{escape(answer.title)}\n[dim]{answer.test}[/]"
        table.add_row(title, escape("\n".join(lines)), escape(reason))
        reason = ""
    console.print(table)
    if objection.other_suite:
        console.print("The suite is another one than when the submission was graded.")
    console.print(
        "Nothing is written yet. The same command with --reason TEXT answers the student; "
        "with --give POINTS or --drop TEST, too, it decides.",
        soft_wrap=True,
    )


def show_to_review(console: Console, submissions: Sequence[dict[str, Any]]) -> None:
    """Print the submissions that an instructor may decide about."""
    for submission in submissions:
        score = f"{number(submission['score'])} / {number(submission['max_score'])}"
        place = f"[bold]{escape(submission['student'])}[/], {submission['assignment']}: {score}"
        console.print(f"{place}. {escape(' '.join(submission['reasons']))}", soft_wrap=True)
    console.print(f"{counted(len(submissions), 'submission')} to review.")
