"""One pass over one file: every site with its guards, and the symbols other files may refer to."""

from __future__ import annotations

import ast
import builtins
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Final

from app.mine import messages, options
from app.mine.draft import Class, Construction, Draft, FileReport, Function, Passed
from app.mine.guards import Guard, chosen, words_of
from app.mine.model import Kind
from app.mine.source import clip, dotted, source_of
from app.mine.templates import string_like, text_of, walk_calls
from app.mine.text import MAX_ALTERNATIVES, Call, Parameter, Reference, Text, concatenated, either, hole, one

MAX_ALIASES = 3
EXCERPT_BEFORE, EXCERPT_AFTER, EXCERPT_LINES, EXCERPT_CHARACTERS = 12, 6, 60, 4096
EXCEPTIONS: Final = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
_VIEW = re.compile(r"(?:view|copy|replace|args)\Z")
_FUNCTIONS: Final = frozenset(name for name, value in vars(builtins).items() if not isinstance(value, type))
_CLASS_NAME = re.compile(r"_*[A-Z]")
_EXCEPTION_NAME = re.compile(r"_*[A-Z]\w*(?:Error|Exception|Exit|Warning|Interrupt|Failure|Timeout)\Z")

Function_ = ast.FunctionDef | ast.AsyncFunctionDef


class _Caught:
    """Marks a name that an `except ... as name` binds: raising it is no new exception."""


_CAUGHT: Final = _Caught()
Raw = tuple[ast.expr, ...]  # what a name may have been assigned, unread
Binding = Text | Raw | str | _Caught | None  # str: the dotted name of an import; None: nothing is known
Environment = dict[str, Binding]


class Visitor:
    """Walks the statements of one module, carrying guards and what local names stand for.

    Expressions are entered only where a site, a text or an option needs them, and a function only if one of the
    `marked` lines (sorted) is in it; this is what keeps the pass cheaper than parsing.
    """

    def __init__(
        self, report: FileReport, lines: list[str], marked: list[int], wanted: frozenset[str] = frozenset()
    ) -> None:
        self.report = report
        self.lines = lines
        self.marked = marked
        self.wanted = wanted
        self.root = report.module.partition(".")[0]
        self.package = report.module if report.path.endswith("__init__.py") else report.module.rpartition(".")[0]
        self.globals: dict[str, str] = {}
        self.changed: set[str] = set()  # globals that a function assigns, so that they are no constants
        self.env: Environment = {}
        self.guards: list[Guard] = []
        self.exits: list[Guard] = []  # facts that the last finished block ended with
        self.scope: list[str] = []
        self.class_name = ""
        self.class_: Class | None = None
        self.configures = False  # inside a class that declares options
        self.function: Function | None = None
        self.function_name = ""  # bare name
        self.accepts = False  # the function has a `return`, `return None`, `return ""` or `return True`
        self.span = (1, len(lines))
        self.clock = 0
        self.assigned_at: dict[str, int] = {}
        self.accessors: dict[str, str] = {}  # "Class.attribute" -> field it was read from
        self.handlers: dict[type, Callable[[Any], str]] = {
            ast.If: self._if,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.Return: self._return,
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.For: self._loop,
            ast.AsyncFor: self._loop,
            ast.While: self._while,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.FunctionDef: self._def,
            ast.AsyncFunctionDef: self._def,
            ast.ClassDef: self._class,
            ast.Continue: lambda _: "continue",
            ast.Break: lambda _: "break",
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.Match: self._match,
            ast.Delete: self._delete,
            ast.Global: self._global,
        }

    # ---- the walk -------------------------------------------------------------------------------

    def module(self, tree: ast.Module) -> None:
        """Visit a whole module and fill the report."""
        self._globals(tree.body)
        self._block(tree.body)
        self.report.constants = {
            name: value
            for name, value in self.env.items()
            if isinstance(value, Text) and value.known and name not in self.changed
        }

    def _globals(self, body: Iterable[ast.stmt]) -> None:
        """Learn the module-level names before any function uses one."""
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                self.globals[node.name] = f"{self.report.module}.{node.name}"
            elif isinstance(node, ast.Assign) and (
                string_like(node.value) or isinstance(node.value, (ast.Call, ast.Name, ast.Attribute))
            ):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.globals[target.id] = f"{self.report.module}.{target.id}"
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                if string_like(node.value):
                    self.globals[node.target.id] = f"{self.report.module}.{node.target.id}"
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found = self._imported(node)
                self.globals.update(found)
                self.report.imports.update(found)
            elif isinstance(node, ast.If):
                self._globals(node.body)
                self._globals(node.orelse)
            elif isinstance(node, ast.Try):
                self._globals(node.body)
                for handler in node.handlers:
                    self._globals(handler.body)
                self._globals(node.orelse)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> dict[str, str]:
        """Return the names that an import binds to things of this package."""
        found: dict[str, str] = {}
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == self.root:
                    found[alias.asname or self.root] = alias.name if alias.asname else self.root
            return found
        source = node.module or ""
        if node.level:
            parts = self.package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1])
            source = f"{base}.{source}" if source else base
        if source.partition(".")[0] == self.root:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{source}.{alias.name}"
        return found

    def _block(self, body: list[ast.stmt]) -> str:
        """Visit statements in order; return how control leaves the block, "" where it runs through."""
        mark = len(self.guards)
        leaves = ""
        handlers = self.handlers
        for node in body:
            handler = handlers.get(type(node))
            if handler is not None:
                leaves = handler(node) or leaves
        if len(self.guards) > mark:
            self.exits = self.guards[mark:]
            del self.guards[mark:]
        else:
            self.exits = []
        return leaves

    def _branch(self, guard: Guard, body: list[ast.stmt]) -> str:
        self.guards.append(guard)
        leaves = self._block(body)
        self.guards.pop()
        return leaves

    def _exit(self, node: ast.expr | None, *, negated: bool, leaves: str) -> None:
        self.guards.append(Guard(node, negated, leaves=leaves, clock=self.clock))

    def _if(self, node: ast.If) -> str:
        self._calls(node.test)
        self._walrus(node.test)
        entry = self.env
        self.env = dict(entry)
        first = self._branch(Guard(node.test), node.body)
        first_exits, after_body = self.exits, self.env
        self.env = entry
        if node.orelse:
            self.env = dict(entry)
            second = self._branch(Guard(node.test, True), node.orelse)
            second_exits = self.exits
        else:
            second, second_exits = "", []
        if first and second:
            return first if first == second else "return"
        if first:
            self._exit(node.test, negated=True, leaves=first)
            self.guards += second_exits
        elif second:
            self.env = after_body
            self._exit(node.test, negated=False, leaves=second)
            self.guards += first_exits
        else:
            self.env = self._joined(after_body, self.env)
        return ""

    def _match(self, node: ast.Match) -> str:
        entry = self.env
        ends: list[Environment] = []
        leaving: list[str] = []
        subject = clip(source_of(node.subject), 150)
        exhaustive = False
        for case in node.cases:
            self.env = dict(entry)
            for inner in ast.walk(case.pattern):
                if isinstance(inner, (ast.MatchAs, ast.MatchStar)) and inner.name:
                    self._bind(inner.name, None)
            text = f"match {subject}: case {clip(ast.unparse(case.pattern), 150)}"
            if case.guard is not None:
                text += f" if {clip(source_of(case.guard), 150)}"
            elif isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
                exhaustive = True
            leaves = self._branch(Guard(None, fixed=text), case.body)
            if leaves:
                leaving.append(leaves)
            else:
                ends.append(self.env)
        if exhaustive and not ends:
            self.env = entry
            return leaving[0] if len(set(leaving)) == 1 else "return"
        self.env = entry if not exhaustive or not ends else ends.pop()
        for end in ends:
            self.env = self._joined(self.env, end)
        return ""

    def _loop(self, node: ast.For | ast.AsyncFor) -> str:
        self._calls(node.iter)
        self._target(node.target, None)
        self._repeated(node.body, None)
        self._block(node.orelse)
        return ""

    def _while(self, node: ast.While) -> str:
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self._repeated(node.body, None if endless else Guard(node.test, repeated=True))
        self._block(node.orelse)
        return ""

    def _repeated(self, body: list[ast.stmt], guard: Guard | None) -> None:
        """Visit a loop body: a name that it assigns may hold any of its texts when an iteration starts."""
        for name in _assigned(body):
            known = self.env.get(name)
            self.env[name] = either((known, hole(name)), name) if isinstance(known, Text) else None
        entry = dict(self.env)
        if guard is None:
            self._block(body)
        else:
            guard.clock = self.clock
            self._branch(guard, body)
        self.env = self._joined(entry, self.env)

    def _with(self, node: ast.With | ast.AsyncWith) -> str:
        for item in node.items:
            self._calls(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars, None)
        leaves = self._block(node.body)
        self.guards += self.exits
        return leaves

    def _try(self, node: ast.Try | ast.TryStar) -> str:
        entry = dict(self.env)
        leaves = self._block(node.body)
        exits = self.exits
        during = self._joined(entry, self.env)
        if node.orelse:
            leaves = self._block(node.orelse) or leaves
            exits = exits + self.exits
        end = None if leaves else self.env
        ways = {leaves}
        for handler in node.handlers:
            self.env = dict(during)
            text = "except" if handler.type is None else f"except {clip(source_of(handler.type), 200)}"
            if handler.name:
                self.env[handler.name] = _CAUGHT
            left = self._branch(Guard(None, fixed=text), handler.body)
            ways.add(left)
            if not left:
                end = self.env if end is None else self._joined(end, self.env)
        self.env = during if end is None else end
        final = self._block(node.finalbody)
        if final:
            return final
        if end is None:
            return ways.pop() if len(ways) == 1 else "return"
        if all(ways - {leaves}):
            self.guards += exits
        return ""

    def _class(self, node: ast.ClassDef) -> str:
        outer = (self.env, self.class_, self.class_name, self.configures, self.span, self.guards, self.function)
        self.scope.append(node.name)
        qualified = ".".join(self.scope)
        self.class_ = Class(bases=tuple(self._resolved(base) or dotted(base) for base in node.bases))
        self.class_name = f"{self.report.module}.{qualified}"
        self.configures = "Args" in node.name
        self.env = dict(self.env) if self.function is not None else {}
        self.span = (node.lineno, node.end_lineno or node.lineno)
        self.guards = []
        self.function = None
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                found = options.declared(statement)
                if found is not None:
                    self.report.declared[found[0]] = found[1]
                    self.configures = True
        self._block(node.body)
        fields = _instance_fields(node)
        self.class_.attributes = {
            name: value
            for name, value in self.env.items()
            if isinstance(value, Text) and value.known and name not in fields
        }
        self.report.classes[qualified] = self.class_
        self.scope.pop()
        self.env, self.class_, self.class_name, self.configures, self.span, self.guards, self.function = outer
        return ""

    def _def(self, node: Function_) -> str:
        index = bisect_left(self.marked, node.lineno)
        if index == len(self.marked) or self.marked[index] > (node.end_lineno or node.lineno):
            self.env.pop(node.name, None)
            return ""
        outer = (self.env, self.span, self.guards, self.function, self.function_name, self.assigned_at, self.accepts)
        self.scope.append(node.name)
        nested = self.function is not None
        self.function = Function(parameters=_parameters(node.args))
        self.function_name = node.name
        self.env = dict(self.env) if nested else {}
        for name in self.function.parameters:
            self.env[name] = one(Parameter(name))
        for argument in (node.args.vararg, node.args.kwarg):
            if argument is not None:
                self.env[argument.arg] = None
        self.function.defaults = self._defaults(node.args)
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        self.span = (first, node.end_lineno or node.lineno)
        self.guards = []
        self.accepts = False
        self.assigned_at = {}
        if self.class_ is not None and not nested and node.name == "__init__":
            self.class_.has_init = True
            self.class_.parameters = self.function.parameters[1:]
            if node.args.vararg is not None:
                self.class_.rest = "*" + node.args.vararg.arg
            self.class_.defaults = self.function.defaults
        first_draft = len(self.report.drafts)
        self._block(node.body)
        if not (self.accepts or (node.returns is not None and _may_be_none(node.returns))):
            # A function that never says "fine" returns texts, not verdicts.
            kept = [draft for draft in self.report.drafts[first_draft:] if draft.origin != "verdict"]
            self.report.drafts[first_draft:] = kept
        if self.class_ is not None and not nested and node.name == "__str__" and self.function.returns:
            self.class_.shown = either(self.function.returns, "str(self)")
        if self.function.returns or self.function.exceptions or self.function.parameters:
            self.report.functions[".".join(self.scope)] = self.function
        self.scope.pop()
        self.env, self.span, self.guards, self.function, self.function_name, self.assigned_at, self.accepts = outer
        self.env.pop(node.name, None)
        return ""

    def _defaults(self, arguments: ast.arguments) -> dict[str, Text]:
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
        pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
        return {a.arg: text_of(d, self) for a, d in pairs if string_like(d)}

    # ---- names ----------------------------------------------------------------------------------

    def _bind(self, name: str, value: Binding) -> None:
        self.clock += 1
        self.assigned_at[name] = self.clock
        self.env[name] = value

    def _value(self, node: ast.expr | None) -> Binding:
        """Return what to remember of an assigned expression."""
        if node is None:
            return None
        if string_like(node):
            return text_of(node, self)
        if isinstance(node, ast.Await):
            node = node.value
        if isinstance(node, (ast.Call, ast.Attribute, ast.Name, ast.IfExp)):
            if isinstance(node, ast.Name):
                return self.env.get(node.id, (node,))
            return (node,)
        return None

    def _target(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, self._value(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                values = list(value.elts)
            for element, part in zip(target.elts, values, strict=True):
                self._target(element, part)
        elif isinstance(target, ast.Starred):
            self._target(target.value, None)
        elif isinstance(target, ast.Attribute) and value is not None:
            self._attribute_set(target, value)

    def _attribute_set(self, target: ast.Attribute, value: ast.expr) -> None:
        if not isinstance(target.value, ast.Name) or target.value.id not in ("self", "cls") or self.class_ is None:
            return
        self.class_.changed.add(target.attr)
        if self.function_name == "__init__" and isinstance(value, (ast.Name, ast.JoinedStr, ast.Constant, ast.IfExp)):
            self.class_.assigned[target.attr] = text_of(value, self)
        if isinstance(value, ast.Attribute):
            field = self._field(value)
            if field:
                self.accessors[f"{self.class_name}.{target.attr}"] = field

    def _walrus(self, node: ast.expr) -> None:
        for value in (node, *(node.values if isinstance(node, ast.BoolOp) else ())):
            inner = value.left if isinstance(value, ast.Compare) else value
            if isinstance(inner, ast.NamedExpr):
                self._bind(inner.target.id, self._value(inner.value))

    def _joined(self, left: Environment, right: Environment) -> Environment:
        """Return what names stand for where two ways meet."""
        if left is right:
            return left
        joined = dict(left)
        for name, value in right.items():
            if name not in left:
                joined[name] = self._either(name, None, value)
            elif left[name] is not value:
                joined[name] = self._either(name, left[name], value)
        for name in left.keys() - right.keys():
            joined[name] = self._either(name, left[name], None)
        return joined

    @staticmethod
    def _either(name: str, left: Binding, right: Binding) -> Binding:
        if isinstance(left, Text) and isinstance(right, Text):
            return left if left == right else either((left, right), name)
        if isinstance(left, Text) and left.known:
            return either((left, hole(name)), name)
        if isinstance(right, Text) and right.known:
            return either((hole(name), right), name)
        if isinstance(left, tuple) or isinstance(right, tuple):
            both = (left if isinstance(left, tuple) else ()) + (right if isinstance(right, tuple) else ())
            return both[:MAX_ALTERNATIVES]
        return None

    def _resolved(self, node: ast.expr, depth: int = 0) -> str:
        """Return the dotted name in this package that an expression refers to, "" if it is none."""
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        name = node.id
        if name in ("self", "cls") and self.class_name and rest:
            base = self.class_name
        else:
            bound = self.env.get(name, "")
            if isinstance(bound, str):
                base = bound or self.globals.get(name, "")
            elif isinstance(bound, tuple) and len(bound) == 1 and isinstance(bound[0], (ast.Name, ast.Attribute)):
                base = self._resolved(bound[0], depth + 1) if depth < MAX_ALIASES else ""
            else:
                base = ""
        return ".".join((base, *reversed(rest))) if base else ""

    # `Names` of app.mine.templates
    def text(self, node: ast.Name | ast.Attribute) -> Text | None:
        """Return the text that a name or attribute holds here."""
        if isinstance(node, ast.Name) and node.id in self.env:
            bound = self.env[node.id]
            if isinstance(bound, Text):
                return bound
            if isinstance(bound, tuple) and bound:
                return self._raw_text(node.id, bound)
            if not isinstance(bound, str):
                return None
        target = self._resolved(node)
        return one(Reference(dotted(node), target)) if target else None

    def _raw_text(self, name: str, bound: Raw) -> Text | None:
        """Read an assigned call or alias as text; the name itself is hidden meanwhile, so this ends."""
        held = self.env.pop(name)
        try:
            texts = [self._inner_text(name, node) for node in bound]
        finally:
            self.env[name] = held
        return either(texts, name)

    def _inner_text(self, name: str, node: ast.expr) -> Text:
        if isinstance(node, ast.Call):
            found = text_of(node, self)
            calls = [part for part in found.general if isinstance(part, Call)]
            if calls and len(found.general) == 1:
                return one(Call(name, calls[0].target, calls[0].args, calls[0].keywords))
            return found if found.known else hole(name)
        if isinstance(node, ast.IfExp):
            found = text_of(node, self)
            return found if found.known else hole(name)
        if isinstance(node, (ast.Name, ast.Attribute)):
            target = self._resolved(node)
            return one(Reference(name, target)) if target else hole(name)
        return hole(name)

    def call(self, node: ast.Call) -> Text | None:
        """Return a call of a function of this package, to be answered when the whole package is known."""
        target = self._resolved(node.func)
        if not target:
            return None
        args, keywords = self._arguments(node)
        return one(Call(clip(source_of(node), 200), target, args, keywords))

    def _arguments(self, node: ast.Call) -> tuple[tuple[Text, ...], tuple[tuple[str, Text], ...]]:
        return (
            tuple(text_of(a, self) for a in node.args[:12]),
            tuple((k.arg, text_of(k.value, self)) for k in node.keywords[:24] if k.arg is not None),
        )

    # ---- simple statements ----------------------------------------------------------------------

    def _import(self, node: ast.Import | ast.ImportFrom) -> str:
        found = self._imported(node)
        self.report.imported.update(found.values())
        if self.scope:
            for name, target in found.items():
                self._bind(name, target)
        return ""

    def _delete(self, node: ast.Delete) -> str:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(target.id, None)
        return ""

    def _global(self, node: ast.Global) -> str:
        self.changed.update(node.names)
        return ""

    def _assign(self, node: ast.Assign) -> str:
        self._calls(node.value)
        for target in node.targets:
            self._target(target, node.value)
        if isinstance(node.value, (ast.Call, ast.Await)):
            self._message_call(node, node.value)
        elif isinstance(node.targets[0], ast.Attribute) and messages.holds_error(node.targets[0].attr):
            self._message(node, text_of(node.value, self), "assign")
        return ""

    def _annotated(self, node: ast.AnnAssign) -> str:
        if node.value is not None:
            self._target(node.target, node.value)
        return ""

    def _augmented(self, node: ast.AugAssign) -> str:
        if not isinstance(node.target, ast.Name):
            if isinstance(node.target, ast.Attribute):
                self._attribute_set(node.target, node.value)
            return ""
        name = node.target.id
        bound = self.env.get(name)
        value: Binding = None
        if isinstance(node.op, ast.Add) and (isinstance(bound, Text) or string_like(node.value)):
            before = bound if isinstance(bound, Text) else hole(name)
            added = text_of(node.value, self)
            if before.spelled or added.spelled:
                value = concatenated((before, added))
        self._bind(name, value)
        return ""

    def _expression(self, node: ast.Expr) -> str:
        value = node.value
        if isinstance(value, (ast.Await, ast.Yield)) and value.value is not None:
            value = value.value
        if not isinstance(value, ast.Call):
            if isinstance(value, ast.JoinedStr):
                self._message_parts(node, value)
            return ""
        self._calls(value)
        self._message_call(node, value)
        function = value.func
        if isinstance(function, ast.Attribute):
            if function.attr == "add_argument":
                for field, names in options.registered(value).items():
                    known = self.report.options.get(field, ())
                    self.report.options[field] = tuple(dict.fromkeys((*known, *names)))
            elif function.attr == "__init__" and self.class_ is not None and self.function_name == "__init__":
                self._super_init(value, function.value)
            elif function.attr == "exit" and isinstance(function.value, ast.Name) and function.value.id == "sys":
                return "return"
        return ""

    def _super_init(self, node: ast.Call, base: ast.expr) -> None:
        assert self.class_ is not None
        args = node.args
        if isinstance(base, ast.Call) and dotted(base.func) == "super":
            pass
        elif dotted(base) and args and isinstance(args[0], ast.Name) and args[0].id == "self":
            args = args[1:]
        else:
            return
        self.class_.passed = tuple(text_of(a, self) for a in args)
        self.class_.passed_keywords = self._arguments(node)[1]

    def _return(self, node: ast.Return) -> str:
        value = node.value
        if value is None or (
            isinstance(value, ast.Constant) and (value.value is None or value.value is True or value.value == "")
        ):
            self.accepts = True
            return "return"
        self._calls(value)
        if isinstance(value, (ast.Call, ast.Await)):
            self._message_call(node, value)
        if self.function is not None:
            self._returned(node, value, self.function)
        return "return"

    def _returned(self, node: ast.Return, value: ast.expr, function: Function) -> None:
        construction = self._constructed(value, only_exceptions=True)
        if construction is not None:
            function.exceptions.append(construction)
            return
        if isinstance(value, ast.Tuple):
            if messages.is_refusal(value):
                for element in value.elts[1:]:
                    text = text_of(element, self)
                    if text.known:
                        self._message(node, text, "return")
                        break
            return
        if string_like(value) or isinstance(value, (ast.Name, ast.IfExp, ast.Call, ast.Attribute)):
            text = text_of(value, self)
            if text.known or any(isinstance(part, (Call, Reference)) for part in text.general):
                function.returns.append(text)
            if text.known and messages.validates(self.function_name, value):
                self._message(node, text, "verdict")

    # ---- sites ----------------------------------------------------------------------------------

    def _raise(self, node: ast.Raise) -> str:
        if node.exc is None:
            self._omit("raise without an exception")
            return "raise"
        self._calls(node.exc)
        constructions = self._constructions(node.exc)
        if constructions:
            self._site("raise", node, constructions=constructions, own=node.exc)
        else:
            self._omit("raise of an exception that exists already")
        return "raise"

    def _omit(self, why: str) -> None:
        self.report.omitted[why] = self.report.omitted.get(why, 0) + 1

    def _constructions(self, node: ast.expr) -> tuple[Construction, ...]:
        """Return the new exceptions that a raised expression may be; none where it is an existing one."""
        if isinstance(node, ast.IfExp):
            return (*self._constructions(node.body), *self._constructions(node.orelse))
        if isinstance(node, ast.Name) and node.id in self.env:
            bound = self.env[node.id]
            if isinstance(bound, tuple):
                found = [self._constructed(n, only_exceptions=True) for n in bound]
                return tuple(c for c in found if c is not None)
            if not isinstance(bound, str):
                return ()
        construction = self._constructed(node, only_exceptions=False)
        return () if construction is None else (construction,)

    def _constructed(self, node: ast.expr, *, only_exceptions: bool) -> Construction | None:
        """Return the construction that an expression is.

        With `only_exceptions` a call counts only if its name is that of an exception class or of this package.
        """
        if isinstance(node, ast.Await):
            node = node.value
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr == "with_traceback":
                return self._constructed(function.value, only_exceptions=only_exceptions)
            function = self._unaliased(function)
            name = dotted(function).rpartition(".")[2]
            if name in _FUNCTIONS or (only_exceptions and not (name in EXCEPTIONS or _EXCEPTION_NAME.match(name))):
                return None  # `next(...)` hands out an exception that exists
            args, keywords = self._arguments(node)
            return Construction(name or clip(source_of(function), 80), self._resolved(function), args, keywords)
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = dotted(node).rpartition(".")[2]
            is_class = name in EXCEPTIONS or (_CLASS_NAME.match(name) and not name.isupper())
            if is_class and (not only_exceptions or name in EXCEPTIONS or _EXCEPTION_NAME.match(name)):
                return Construction(name, self._resolved(node), called=False)
        return None

    def _unaliased(self, function: ast.expr) -> ast.expr:
        """Return what a local name for an exception class stands for."""
        if isinstance(function, ast.Name):
            bound = self.env.get(function.id)
            if isinstance(bound, tuple) and len(bound) == 1 and isinstance(bound[0], (ast.Name, ast.Attribute)):
                return bound[0]
        return function

    def _assert(self, node: ast.Assert) -> str:
        text = None if node.msg is None else text_of(node.msg, self)
        condition = source_of(node.test)
        construction = Construction("AssertionError", "", () if text is None else (text,))
        never = isinstance(node.test, ast.Constant) and not node.test.value
        if not never:
            self.guards.append(Guard(node.test, True))
        self._site("assert", node, constructions=(construction,), own=node.msg, condition=clip(condition, 2000))
        if not never:
            self.guards.pop()
        return "raise" if never else ""

    def _message_call(self, node: ast.stmt, value: ast.expr) -> None:
        if isinstance(value, ast.Await):
            value = value.value
        if not isinstance(value, ast.Call):
            return
        found = messages.handed_over(value)
        if found is not None:
            self._message(node, text_of(found, self), "call")
            return
        for argument in (*value.args, *(k.value for k in value.keywords)):
            if isinstance(argument, ast.Call):
                found = messages.handed_over(argument)
                if found is not None:
                    self._message(node, text_of(found, self), "call")
                    return

    def _message_parts(self, node: ast.stmt, value: ast.JoinedStr) -> None:
        for part in value.values:
            if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Call):
                self._message_call(node, part.value)

    def _message(self, node: ast.stmt, text: Text, origin: str) -> None:
        if messages.reads_as_sentence(text) or any(isinstance(p, (Call, Reference)) for p in text.general):
            self._site("message", node, text=text, origin=origin)

    def _site(
        self,
        kind: Kind,
        node: ast.stmt,
        *,
        constructions: tuple[Construction, ...] = (),
        text: Text | None = None,
        own: ast.expr | None = None,
        condition: str = "",
        origin: str = "",
    ) -> None:
        end = node.end_lineno or node.lineno
        statement = self.lines[node.lineno - 1].strip()[:500] if node.lineno <= len(self.lines) else ""
        live = [g for g in self.guards if not ((g.leaves or g.repeated) and self._stale(g))]
        guards = chosen(live, words_of(statement) | words_of(condition))
        fields: set[str] = set()
        for guard in guards:
            if guard.node is not None and guard.leaves != "raise":
                if guard.fields is None:
                    guard.fields = self._fields(guard.node)
                fields |= guard.fields
        if own is not None:
            fields |= self._fields(own)
        start, excerpt = self._excerpt(node.lineno, end)
        self.report.drafts.append(
            Draft(
                kind=kind,
                constructions=constructions,
                text=text,
                path=self.report.path,
                function=".".join(self.scope) or "<module>",
                line=node.lineno,
                end_line=end,
                statement=statement,
                condition=condition,
                guards=tuple(dict.fromkeys(guard.text for guard in guards)),
                fields=tuple(sorted(fields)),
                excerpt_line=start,
                excerpt=excerpt,
                origin=origin,
            )
        )

    def _stale(self, guard: Guard) -> bool:
        """Tell whether a name that an early exit or a loop tested was assigned since."""
        latest = self.assigned_at
        return any(latest.get(word, 0) > guard.clock for word in guard.words)

    def _excerpt(self, line: int, end: int) -> tuple[int, str]:
        start = max(line - EXCERPT_BEFORE, self.span[0], 1)
        last = min(end + EXCERPT_AFTER, self.span[1], start + EXCERPT_LINES - 1, len(self.lines))
        text = "\n".join(self.lines[start - 1 : last])
        return start, text[:EXCERPT_CHARACTERS]

    # ---- configuration fields -------------------------------------------------------------------

    def _fields(self, node: ast.expr) -> set[str]:
        """Return the configuration fields that an expression reads."""
        found = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute):
                field = self._field(inner)
                if field:
                    found.add(field)
            elif isinstance(inner, ast.Name):
                bound = self.env.get(inner.id)
                if isinstance(bound, tuple) and len(bound) == 1 and isinstance(bound[0], ast.Attribute):
                    field = self._field(bound[0])
                    if field:
                        found.add(field)
            elif (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Name)
                and inner.func.id == "getattr"
                and len(inner.args) >= 2
                and isinstance(inner.args[1], ast.Constant)
                and isinstance(inner.args[1].value, str)
                and options.holds_arguments(source_of(inner.args[0]))
            ):
                found.add(inner.args[1].value)
        return found

    def _field(self, node: ast.Attribute) -> str:
        """Return the field that an attribute reads ("@field": only if one is declared), "" if none."""
        base = node.value
        if isinstance(base, ast.Name):
            if base.id in ("self", "cls"):
                if self.configures:
                    return node.attr
                return self.accessors.get(f"{self.class_name}.{node.attr}", "")
            bound = self.env.get(base.id)
            if isinstance(bound, tuple) and len(bound) == 1:
                text = _accessor(bound[0])
                if options.is_accessor(text) or _is_view(bound[0]):
                    return "@" + node.attr
                if options.holds_arguments(text):
                    return node.attr
            return node.attr if options.holds_arguments(base.id) else ""
        text = _accessor(base)
        if options.holds_arguments(text):
            return node.attr
        return "@" + node.attr if options.is_accessor(text) else ""

    # ---- calls of raise-helpers -----------------------------------------------------------------

    def _calls(self, node: ast.expr) -> None:
        """Record calls of the helpers that the second pass looks for."""
        if not self.wanted:
            return
        for inner in walk_calls(node):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else dotted(inner.func)
            if name in self.wanted:
                args, keywords = self._arguments(inner)
                where = ".".join(self.scope) or "<module>"
                target = self._resolved(inner.func)
                self.report.passed.append(Passed(target, name, args, keywords, self.report.path, where))


def _accessor(node: ast.expr) -> str:
    """Return `a.b`, `get_x()` or `get_x().group` for the short bases that configuration is read from."""
    groups = ""
    while isinstance(node, ast.Attribute):
        groups = f".{node.attr}{groups}"
        node = node.value
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        name = dotted(node.func)
        return f"{name}(){groups}" if name else ""
    return node.id + groups if isinstance(node, ast.Name) else ""


def _is_view(node: ast.expr) -> bool:
    """Tell whether a call makes a view or copy of parsed arguments (`resolving_view(server_args)`)."""
    return (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and bool(_VIEW.search(dotted(node.func)))
        and options.holds_arguments(_accessor(node.args[0]))
    )


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _may_be_none(annotation: ast.expr) -> bool:
    text = source_of(annotation)
    return "None" in text or "Optional" in text


def _instance_fields(node: ast.ClassDef) -> set[str]:
    """Return the names a class body annotates as fields of its instances: their values are defaults, not constants."""
    annotated = (statement for statement in node.body if isinstance(statement, ast.AnnAssign))
    shared = re.compile(r"(?:typing\.)?(?:ClassVar|Final)\b")
    return set().union(*(_target_names(s.target) for s in annotated if not shared.match(source_of(s.annotation))))


def _assigned(body: Iterable[ast.stmt]) -> set[str]:
    """Return the plain names that statements assign, nested blocks included, functions left out."""
    names: set[str] = set()
    stack: list[ast.stmt] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names |= _target_names(target)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
            names |= _target_names(node.target)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for attribute in ("body", "orelse", "finalbody"):
            stack += getattr(node, attribute, ())
        for handler in getattr(node, "handlers", ()):
            stack += handler.body
        for case in getattr(node, "cases", ()):
            stack += case.body
    return names


def _target_names(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*(_target_names(element) for element in target.elts))
    return _target_names(target.value) if isinstance(target, ast.Starred) else set()
