"""The whole package: answers what one file's texts refer to in another, and finishes the sites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from app.mine import messages, options
from app.mine.draft import Class, Construction, Draft, FileReport, Function, Passed
from app.mine.model import Site, Template, Variant
from app.mine.text import (
    MAX_ALTERNATIVES,
    Call,
    Hole,
    Number,
    Parameter,
    Part,
    Parts,
    Reference,
    Text,
    concatenated,
    either,
    hole,
    one,
    template_of,
    varied,
)
from app.mine.visitor import EXCEPTIONS

MAX_DEPTH = 6
MAX_VARIANTS = 24
MAX_CLASSES = 500
HELPER_LETTERS = 12  # a text with fewer letters of its own is mostly what its callers hand over
_OPTION = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*\w")
_TEXT_NAME = re.compile(r"(?:.*_)?(?:msg|message|reason|err|error|detail|details|text|label|prefix|what|hint|desc)\Z")
_LETTERS = re.compile(r"[^\W\d_]")
_WITH_ERRNO = {"OSError", "IOError", "EnvironmentError", "FileNotFoundError", "FileExistsError", "PermissionError"}
_FIRST_ONLY = {"SyntaxError", "IndentationError", "ExceptionGroup", "BaseExceptionGroup", "UnicodeDecodeError"}

Bound = dict[str, Text]


class Package:
    """The symbols of all files of one release."""

    def __init__(self, reports: Sequence[FileReport]) -> None:
        self.imports = {report.module: report.imports for report in reports}
        self.constants: dict[str, Text] = {}
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Function] = {}
        self.options: dict[str, tuple[str, ...]] = {}
        self.declared: set[str] = set()
        self.used: set[str] = set()  # functions whose text a raise shows
        for report in reports:
            prefix = report.module + "."
            self.constants.update((prefix + name, text) for name, text in report.constants.items())
            self.classes.update((prefix + name, value) for name, value in report.classes.items())
            self.functions.update((prefix + name, value) for name, value in report.functions.items())
            self.declared.update(report.declared)
            for field, names in (*report.declared.items(), *report.options.items()):
                self.options[field] = tuple(dict.fromkeys((*self.options.get(field, ()), *names)))
        self._children: dict[str, list[str]] = {}
        for name, class_ in self.classes.items():
            for base in class_.bases:
                self._children.setdefault(self._class_name(base), []).append(name)
        self._named = Counter(name.rpartition(".")[2] for name in self.functions)
        self.by_option = {name: field for field, names in self.options.items() for name in names}
        for field in self.declared:
            self.by_option.update((name, field) for name in self.options[field])

    # ---- looking up -----------------------------------------------------------------------------

    def _where(self, target: str, table: dict[str, object]) -> str:
        """Return the name under which `table` defines a dotted name, through re-exports and base classes."""
        for _ in range(MAX_DEPTH):
            if target in table:
                return target
            owner, _, member = target.rpartition(".")
            for base in self._bases(owner):
                if f"{base}.{member}" in table:
                    return f"{base}.{member}"
            redirected = self._redirected(target)
            if redirected == target:
                return ""
            target = redirected
        return ""

    def _redirected(self, target: str) -> str:
        parts = target.split(".")
        for i in range(len(parts) - 1, 0, -1):
            names = self.imports.get(".".join(parts[:i]))
            if names is not None:
                found = names.get(parts[i])
                return ".".join((found, *parts[i + 1 :])) if found else target
        return target

    def _bases(self, name: str) -> list[str]:
        """Return a class of this package and its bases here, nearest first; empty if it is none."""
        found: list[str] = []
        queue = [name]
        while queue and len(found) < 20:
            current = self._class_name(queue.pop(0))
            if current and current not in found:
                found.append(current)
                queue += self.classes[current].bases
        return found

    def _class_name(self, target: str) -> str:
        for _ in range(MAX_DEPTH):
            if target in self.classes:
                return target
            redirected = self._redirected(target)
            if redirected == target:
                return ""
            target = redirected
        return ""

    def _constant(self, target: str) -> Text | None:
        where = self._where(target, self.constants)  # type: ignore[arg-type]
        if where:
            return self.constants[where]
        owner, _, member = target.rpartition(".")
        bases = self._bases(owner)
        if any(member in self.classes[name].changed for name in bases) or self._overridden(bases[:1], member):
            return None  # an instance may have another
        return next(
            (c.attributes[member] for c in map(self.classes.__getitem__, bases) if member in c.attributes), None
        )

    def _overridden(self, classes: list[str], member: str) -> bool:
        """Tell whether a class below one of these has an attribute of its own by that name."""
        seen: set[str] = set()
        queue = list(classes)
        while queue and len(seen) < MAX_CLASSES:
            for child in self._children.get(queue.pop(), ()):
                class_ = self.classes[child]
                if member in class_.attributes or member in class_.changed:
                    return True
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
        return False

    def function_name(self, target: str) -> str:
        """Return the dotted name of the function that a reference means, "" if there is none."""
        return self._where(target, self.functions)  # type: ignore[arg-type]

    # ---- texts ----------------------------------------------------------------------------------

    def expanded(self, text: Text, depth: int = 0) -> Text:
        """Return the text with references and calls answered."""
        if all(isinstance(part, str) or type(part) in (Hole, Parameter) for a in text.alternatives for part in a):
            return text
        if len(text.alternatives) == 1:
            return concatenated(self._part(part, depth) for part in text.alternatives[0])
        general = concatenated(self._part(part, depth) for part in text.general).general
        return varied(general, [concatenated(self._part(part, depth) for part in a) for a in text.alternatives])

    def _part(self, part: Part, depth: int) -> Text:
        if depth < MAX_DEPTH:
            if isinstance(part, Reference):
                found = self._constant(part.target)
                if found is not None:
                    return self.expanded(found, depth + 1)
            elif isinstance(part, Call):
                return self._returned(part, depth) or hole(part.text)
        return one(part if isinstance(part, str) or type(part) is Parameter else Hole(part.text))

    def _returned(self, call: Call, depth: int) -> Text | None:
        where = self.function_name(call.target)
        if not where or not self.functions[where].returns:
            return None
        function = self.functions[where]
        bound = self._bound(function.parameters, function.defaults, call.args, call.keywords)
        texts = [self.expanded(_substituted(text, bound), depth + 1) for text in function.returns[:MAX_ALTERNATIVES]]
        text = either(texts, call.text)
        if not (text.literal or messages.reads_as_sentence(text)):
            return None
        self.used.add(where)
        return text

    @staticmethod
    def _bound(
        parameters: tuple[str, ...],
        defaults: Bound,
        args: tuple[Text, ...],
        keywords: Iterable[tuple[str, Text]],
    ) -> Bound:
        if parameters and parameters[0] in ("self", "cls"):
            parameters = parameters[1:]
        return {**defaults, **dict(zip(parameters, args, strict=False)), **dict(keywords)}

    # ---- exceptions -----------------------------------------------------------------------------

    def shown(self, construction: Construction, depth: int = 0) -> list[tuple[str, Text]]:
        """Return class name and text of what a traceback prints for a new exception; several where it may differ."""
        class_name = self._class_name(construction.target) if construction.target else ""
        if not class_name and construction.target and construction.called and depth < MAX_DEPTH:
            where = self.function_name(construction.target)
            if where and self.functions[where].exceptions:
                function = self.functions[where]
                bound = self._bound(function.parameters, function.defaults, construction.args, construction.keywords)
                self.used.add(where)
                made = [_constructed(inner, bound) for inner in function.exceptions[:4]]
                return [pair for inner in made for pair in self.shown(inner, depth + 1)]
        name = class_name.rpartition(".")[2] or construction.name
        shown, plain = self._instance(self._bases(class_name), construction)
        if shown is not None:
            shown = self.expanded(shown)
            if any(isinstance(part, str) and part.strip() for part in shown.general):
                return [(name, shown)]
        return [(name, self.expanded(plain))]

    def _instance(self, bases: list[str], construction: Construction) -> tuple[Text | None, Text]:
        """Return the text of an instance as its class's `__str__` has it, if it has one, and what was passed on.

        What was passed on is what reaches `BaseException`, and stands in where `__str__` cannot be followed.
        """
        args, keywords = construction.args, construction.keywords
        assigned: Bound = {}
        shown: Text | None = None
        message: Text | None = None
        for name in bases:
            class_ = self.classes[name]
            if class_.has_init and message is None:
                bound = self._bound(class_.parameters, class_.defaults, args, keywords)
                for attribute, text in class_.assigned.items():
                    assigned.setdefault(attribute, _substituted(text, bound))
                if class_.passed is None:
                    message = self._plain(bases, construction.name, args, ())
                else:
                    rest = args[len(class_.parameters) :]
                    args = ()
                    for text in class_.passed:
                        handed_on = bool(class_.rest) and text.general == (Hole(class_.rest),)
                        args += rest if handed_on else (_substituted(text, bound, assigned),)
                    keywords = tuple((k, _substituted(text, bound, assigned)) for k, text in class_.passed_keywords)
            if shown is None:
                shown = class_.shown
            for attribute, text in class_.attributes.items():
                assigned.setdefault(attribute, text)
        if message is None:
            message = self._plain(bases, construction.name, args, keywords)
        return (None if shown is None else _substituted(shown, {}, assigned)), message

    def _plain(
        self, bases: list[str], name: str, args: tuple[Text, ...], keywords: tuple[tuple[str, Text], ...]
    ) -> Text:
        """Return the text that `BaseException` makes of its arguments; of a foreign class the likeliest one."""
        builtin = next((b for c in bases for b in self.classes[c].bases if b in EXCEPTIONS), "")
        builtin = builtin or (name if name in EXCEPTIONS else "")
        if not args:
            given = dict(keywords)
            return next((given[k] for k in messages.TEXT_KEYWORDS if k in given), one())
        if len(args) == 1 or builtin in _FIRST_ONLY:
            return _quoted(args[0]) if builtin == "KeyError" and args[0].known else args[0]
        if name == "CalledProcessError":
            return concatenated((one("Command "), args[1], one(" returned non-zero exit status "), args[0], one(".")))
        if name == "TimeoutExpired":
            return concatenated((one("Command "), args[0], one(" timed out after "), args[1], one(" seconds")))
        if builtin in _WITH_ERRNO:
            tail = (one(": "), _quoted(args[2])) if len(args) > 2 else ()
            return concatenated((one("[Errno "), args[0], one("] "), args[1], *tail))
        if builtin:
            inner: list[Text] = []
            for i, arg in enumerate(args):
                inner += [one(", ")] * (i > 0) + [_quoted(arg) if arg.known else arg]
            return concatenated((one("("), *inner, one(")")))
        given = dict(keywords)
        named = next((given[k] for k in messages.TEXT_KEYWORDS if k in given), None)
        return named or next((a for a in args if messages.reads_as_sentence(a)), None) or args[0]

    # ---- finishing ------------------------------------------------------------------------------

    def site(self, draft: Draft, extra: Sequence[Variant] = ()) -> Site | None:
        """Return the finished site; None where a message turns out to be no sentence."""
        exception, text = self.read(draft)
        if draft.kind == "message" and not messages.reads_as_sentence(text):
            return None
        template = template_of(text.general)
        variants: list[Variant] = []
        if len(text.alternatives) > 1:
            variants = [
                Variant(template_of(parts), draft.path, draft.function)
                for parts in text.alternatives
                if any(isinstance(part, str) and part.strip() for part in parts)
            ]
        variants = [v for v in dict.fromkeys((*variants, *extra)) if v.template != template][:MAX_VARIANTS]
        return Site(
            kind=draft.kind,
            exception=exception,
            template=template,
            path=draft.path,
            function=draft.function,
            line=draft.line,
            end_line=draft.end_line,
            statement=draft.statement,
            condition=draft.condition,
            guards=draft.guards,
            flags=self._flags(draft, [template, *(v.template for v in variants)]),
            variants=tuple(variants),
            excerpt_line=draft.excerpt_line,
            excerpt=draft.excerpt,
        )

    def hands_on(self, draft: Draft, functions: set[str]) -> bool:
        """Tell whether a message is only what one of these functions returned."""
        parts = draft.text.general if draft.text is not None else ()
        return len(parts) == 1 and isinstance(parts[0], Call) and self.function_name(parts[0].target) in functions

    def read(self, draft: Draft) -> tuple[str, Text]:
        """Return the exception and the text of a draft."""
        if draft.text is not None:
            return "", self.expanded(draft.text)
        pairs = [pair for construction in draft.constructions for pair in self.shown(construction)]
        if len(pairs) == 1:
            return pairs[0]
        return pairs[0][0], either((text for _, text in pairs), "message")

    def _flags(self, draft: Draft, templates: Iterable[Template]) -> tuple[str, ...]:
        fields = set()
        for field in draft.fields:
            name = field.removeprefix("@")
            if name in self.options and (name == field or name in self.declared):
                fields.add(name)
        for template in templates:
            for literal in template.literals:
                for option in _OPTION.findall(literal):
                    if option in self.by_option:
                        fields.add(self.by_option[option])
        return tuple(sorted(options.canonical(field, self.options[field]) for field in fields))

    # ---- raise-helpers --------------------------------------------------------------------------

    def handed_parameters(self, text: Text) -> tuple[str, ...]:
        """Return the parameters that a site's text mostly consists of, so that callers write it."""
        names = tuple(dict.fromkeys(p.text for parts in text.alternatives for p in parts if isinstance(p, Parameter)))
        own = sum(len(_LETTERS.findall(part)) for part in text.general if isinstance(part, str))
        return names if own < HELPER_LETTERS and any(map(_TEXT_NAME.match, names)) else ()

    def handed_over(self, helper: str, text: Text, passed: Passed) -> Text | None:
        """Return the text of a helper's site as one caller makes it; None if the call is of something else."""
        where = self.function_name(passed.target) if passed.target else ""
        if where != helper and not (not where and self._only(helper)):
            return None
        function = self.functions[helper]
        bound = self._bound(function.parameters, function.defaults, passed.args, passed.keywords)
        return self.expanded(_substituted(text, bound))

    def home(self, function: str) -> str:
        """Return the module that defines a function or method."""
        while function and function not in self.imports:
            function = function.rpartition(".")[0]
        return function

    def is_method(self, function: str) -> bool:
        """Tell whether a dotted name is a function in a class."""
        return function.rpartition(".")[0] in self.classes

    def _only(self, helper: str) -> bool:
        """Tell whether a method's name is not shared by another function of the package."""
        return self.is_method(helper) and self._named[helper.rpartition(".")[2]] == 1


def _substituted(text: Text, bound: Bound, assigned: Bound | None = None) -> Text:
    """Return the text with parameters replaced by what was passed, `self.x` by what was assigned."""

    def part_of(part: Part) -> Text:
        if isinstance(part, Parameter) and part.text in bound:
            return bound[part.text]
        if assigned and isinstance(part, Hole) and part.text.startswith("self.") and part.text[5:] in assigned:
            return assigned[part.text[5:]]
        if isinstance(part, Call):
            return one(
                Call(
                    part.text,
                    part.target,
                    tuple(_substituted(a, bound, assigned) for a in part.args),
                    tuple((k, _substituted(a, bound, assigned)) for k, a in part.keywords),
                )
            )
        return one(part)

    if len(text.alternatives) == 1:
        return concatenated(part_of(part) for part in text.alternatives[0])
    general = concatenated(part_of(part) for part in text.general).general
    return varied(general, [concatenated(part_of(part) for part in parts) for parts in text.alternatives])


def _constructed(construction: Construction, bound: Bound) -> Construction:
    return Construction(
        construction.name,
        construction.target,
        tuple(_substituted(a, bound) for a in construction.args),
        tuple((k, _substituted(a, bound)) for k, a in construction.keywords),
        construction.called,
    )


def _quoted(text: Text) -> Text:
    """Return the text as `repr` of the string shows it, where part of it is literal."""

    def quoted(parts: Parts) -> Parts:
        literals = "".join(part for part in parts if isinstance(part, str))
        if not literals or (len(parts) == 1 and isinstance(parts[0], Number)):
            return parts
        mark = '"' if "'" in literals and '"' not in literals else "'"
        # A literal that ends in the other quote is written with the mark that the whole string gets.
        inner = tuple(
            repr(part + ("'" if mark == '"' else '"'))[1:-2] if isinstance(part, str) else part for part in parts
        )
        return (mark, *inner, mark)

    return Text(quoted(text.general), tuple(quoted(parts) for parts in text.alternatives))
