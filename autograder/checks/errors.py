"""The check that a call raises the expected exception, with a message that names the bad argument."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from autograder.bridge.shared.errors import EXCEPTIONS, StudentError, StudentRaisedError
from autograder.checks.sentences import actor, kind, public_kind, show, some
from autograder.failures.failed_check import CheckFailed, without_inputs, without_literals
from autograder.records import InfrastructureError
from autograder.text.wording import article, cut

Word = str | int | float


def raises(
    exception: type[Exception],
    function: Callable[..., Any],
    *args: Any,
    naming: Word | tuple[Word, ...] | None = None,
    what: str | None = None,
    **kwargs: Any,
) -> Exception:
    """Check that the call raises `exception`, with every word and value of `naming` in its message; return it.

    `exception` can be a class of the student's: `raises(student.EmptyError, student.mean, [])`.
    `what` describes the call in the failure; by default, it consists of the function's name and
    arguments. NotImplementedError, a timeout and the end of the process pass through, because none
    of them is a reaction to a bad argument.
    """
    words = naming if isinstance(naming, tuple) else (naming,)
    words = tuple(word for word in words if word is not None)
    texts = tuple(value for value in (*args, *kwargs.values()) if isinstance(value, str))
    refusal = _Refusal(what or _call(function, args, kwargs), exception, words, texts)
    try:
        result = function(*args, **kwargs)
    except (NotImplementedError, InfrastructureError, CheckFailed):
        raise
    except Exception as error:
        if isinstance(error, StudentError) and not isinstance(error, StudentRaisedError):
            raise
        refusal.judge(error)
        return error
    else:
        raise refusal.failure(f"returned {show(result, 80)}", f"returned {public_kind(result)}")


@dataclass(frozen=True)
class _Refusal:
    """The expected refusal of a call: the exception, and the words that its message must contain."""

    call: str
    exception: type[Exception]
    words: tuple[Word, ...]
    texts: tuple[str, ...]

    @property
    def hidden_call(self) -> str:
        return without_literals(without_inputs(self.call))

    def judge(self, error: Exception) -> None:
        """Return if the error is the expected one; otherwise raise a failure with the reason."""
        name = cut(
            error.remote.type if isinstance(error, StudentRaisedError) else type(error).__name__, 60
        )
        text = str(error)
        message = f'"{cut(text)}"' if text else "it is empty"
        if not self._is_expected(error):
            public = f"raised {article(_public_name(error))}"
            raise self.failure(f"raised {article(name)} ({message})", public) from None
        missing = tuple(word for word in self.words if not _mentions(text, word))
        if missing:
            end = "as it should, but its message does not name"
            public = f"{actor(self.hidden_call)} raised {article(_public_name(error))}, {end} {self._public(missing)}."
            raise CheckFailed(
                f"{actor(self.call)} raised {article(name)}, {end} {some(missing)} ({message}).",
                public,
                telling=public,  # whatever the student's own words are
            ) from None

    def _is_expected(self, error: Exception) -> bool:
        """Whether the error is of the expected class; one of a student in a worker is known by its name."""
        if isinstance(self.exception, type):
            return isinstance(error, self.exception)
        names_match = (
            (error.remote.type, *error.remote.bases)
            if isinstance(error, StudentRaisedError)
            else ()
        )
        return self.exception.__name__ in names_match

    def failure(self, did: str, public: str) -> CheckFailed:
        name = article(self.exception.__name__)
        full = f"{name} that names {some(self.words)}" if self.words else name
        hidden = f"{name} that names {self._public(self.words)}" if self.words else name
        return CheckFailed(
            f"{actor(self.call)} {did}, but {full} was expected.",
            f"{actor(self.hidden_call)} {public}, but {hidden} was expected.",
        )

    def _public(self, words: tuple[Word, ...]) -> str:
        """Return the names of arguments only; numbers, and words that occur in an input, stay hidden."""
        names = [word for word in words if self._is_public(word)]
        values = len(words) - len(names)
        if not any(map(self._is_public, self.words)):
            return "what is wrong"
        if not names:
            return "the value" if values == 1 else "the values"
        if not values:
            return some(names)
        return some([*names, "its value" if values == 1 else "their values"])

    def _is_public(self, word: Word) -> bool:
        return (
            isinstance(word, str)
            and word.isidentifier()
            and not any(word in text for text in self.texts)
        )


def _public_name(error: Exception) -> str:
    """Return the name of a built-in exception: student code could put an input into the name of its own class."""
    if isinstance(error, StudentRaisedError):
        names = [error.remote.type, *error.remote.bases]
    else:
        names = [base.__name__ for base in type(error).__mro__]
    return next((name for name in names if name in EXCEPTIONS), "Exception")


def _mentions(message: str, word: Word) -> bool:
    text = str(word)
    if not text.replace("_", "").isalnum():
        return text in message
    pattern = re.escape(text).replace("_", "[ _]")
    flags = re.IGNORECASE if len(text) > 1 else 0
    plural = "s?" if len(text) > 1 and text[-1].isalpha() else ""
    return re.search(rf"(?<!\w){pattern}{plural}(?!\w)", message[:10_000], flags) is not None


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    if isinstance(function, nn.Module):
        name: Any = _as_variable(function._get_name())
    else:
        name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        return "the call"
    shown = [_argument(value) for value in args]
    shown += [f"{key}={_argument(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(shown)})"


def _as_variable(class_name: str) -> str:
    """Return the name that an object of the class could have: `head(...)` is a call of the object, `Head(...)` is not."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()


def _argument(value: Any) -> str:
    return kind(value) if isinstance(value, (Tensor, nn.Module)) else show(value, 60)
