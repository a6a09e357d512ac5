"""Errors of other software, made by really running it into them: expressions over what the test environment has.

Every expression is evaluated in a namespace of its own; its traceback is what Python prints.
"""

from __future__ import annotations

import traceback

# setup -> expressions that raise. What a line imports is part of it.
_EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "": (
        "int('twelve')", "float('1.2.3')", "[][3]", "{}['model']", "None.shape", "1 / 0", "'a' + 1", "len(5)",
        "undefined_name", "(1, 2)[5]", "open('/nonexistent/config.json')", "int([1])", "range(1.5)", "iter(3)", "abs('x')",
        "'{} {}'.format(1)", "'%d' % 'x'", "bytes([300])", "chr(-1)", "ord('ab')", "next(iter(()))", "max([])",
        "sorted([1, 'a'])", "{[]: 1}", "setattr(1, 'a', 2)", "getattr(object(), 'weight')", "__import__('no_such_module')",
        "(lambda a: a)()", "(lambda a: a)(1, 2)", "(lambda: 0)(x=1)", "[1, 2].index(9)", "[].pop()", "'abc'.index('z')",
        "b'\\xff'.decode()", "'\\u20ac'.encode('ascii')", "compile('a b', 'f', 'exec')", "eval('1 +')", "float([])",
        "complex('x')", "dict([1])", "zip(1)", "isinstance(1, 1)", "memoryview('a')", "pow(2, -1, 4)", "hash({})",
        "int('9' * 5000)", "(1).missing", "sum(['a'])", "list(None)", "print(1, file=3)", "super().x", "raise_(3)",
        "type('A', (int, str), {})", "[i for i in 3]", "exec('a, b = 1, 2, 3')", "exec('a, b = 1,')", "exec('assert False')",
        "exec('assert 1 == 2, (1, 2)')", "exec('raise NotImplementedError')", "exec('import os.nothing')",
    ),
    "import json": ("json.loads('{')", "json.loads('')", "json.loads('{\"a\": }')", "json.dumps({1, 2})", "json.dumps(object())"),
    "import os, shutil, pathlib, subprocess, socket, signal": (
        "os.listdir('/nonexistent')", "os.kill(2 ** 22, 0)", "os.mkdir('/proc/x')", "os.stat('/nonexistent/weights')",
        "shutil.copy('/nonexistent', '/tmp')", "pathlib.Path('/nonexistent/model.safetensors').read_bytes()",
        "subprocess.run(['/nonexistent/python'])", "subprocess.run(['false'], check=True)",
        "subprocess.run(['sleep', '5'], timeout=0.01)", "socket.create_connection(('127.0.0.1', 1), timeout=1)",
        "socket.gethostbyname('no-such-host.invalid')", "signal.signal(999, None)", "os.environ['CUDA_HOME']",
        "os.sched_setaffinity(0, [9999])", "os.write(999, b'x')",
    ),
    "import asyncio, queue, threading, concurrent.futures as cf": (
        "asyncio.run(asyncio.wait_for(asyncio.sleep(9), 0.001))", "asyncio.run(3)", "queue.Queue().get(timeout=0.001)",
        "cf.Future().result(timeout=0.001)", "threading.Thread(target=print).join()", "threading.Semaphore(-1)",
        "cf.ThreadPoolExecutor(max_workers=0)", "asyncio.get_running_loop()", "threading.Lock().release()",
    ),
    "import argparse, configparser, csv, struct, pickle, zlib, gzip, zipfile, tarfile, io, base64, uuid, enum, decimal": (
        "configparser.ConfigParser().read_string('a=1')", "configparser.ConfigParser().get('a', 'b')",
        "struct.unpack('i', b'abc')", "struct.pack('B', 300)", "pickle.loads(b'nothing')", "pickle.dumps(lambda: 0)",
        "zlib.decompress(b'abc')", "gzip.decompress(b'abc')", "zipfile.ZipFile(io.BytesIO(b'abc'))",
        "tarfile.open(fileobj=io.BytesIO(b'abc'))", "base64.b64decode('abc')", "uuid.UUID('x')",
        "enum.Enum('Backend', 'A B')('C')", "decimal.Decimal('x')", "list(csv.reader([1]))",
        "argparse.ArgumentParser(exit_on_error=False).parse_args(['--tp', '2'])",
        "argparse.ArgumentParser().add_argument('--a', type=3, action='store_true')",
    ),
    "import dataclasses, functools, inspect, importlib, typing, collections, itertools, statistics, math, datetime, re": (
        "dataclasses.fields(3)", "dataclasses.replace(3)", "functools.reduce(max, [])", "inspect.getsource(3)",
        "importlib.import_module('.x')", "importlib.import_module('flash_attn_3')", "typing.get_type_hints(3)",
        "collections.namedtuple('a', 'class')", "statistics.mean([])", "math.sqrt(-1)", "math.factorial(-1)",
        "datetime.date(2024, 13, 1)", "datetime.datetime.strptime('x', '%Y')", "re.compile('(')", "re.compile('a**')",
        "itertools.islice([], -1)", "collections.deque(maxlen=-1)", "datetime.timedelta(days=10 ** 12)",
    ),
    "import sqlite3, ctypes, multiprocessing, logging, tempfile, ssl, urllib.request, http.client, xml.etree.ElementTree as et": (
        "sqlite3.connect(':memory:').execute('SELEC 1')", "sqlite3.connect('/nonexistent/a.db')",
        "ctypes.CDLL('libnvrtc.so.12')", "ctypes.CDLL('libcuda_nothing.so')", "logging.getLogger().setLevel('LOUD')",
        "tempfile.mkdtemp(dir='/nonexistent')", "ssl.create_default_context(cafile='/nonexistent')",
        "urllib.request.urlopen('http://127.0.0.1:1/')", "urllib.request.urlopen('nothing')",
        "http.client.HTTPConnection('127.0.0.1', 1).request('GET', '/')", "et.fromstring('<a>')",
        "multiprocessing.get_context('spoon')", "multiprocessing.shared_memory.SharedMemory('nothing')",
    ),
    "import numpy as np": (
        "np.zeros((2, 3)) @ np.zeros((2, 3))", "np.zeros(3) + np.zeros(4)", "np.zeros(3).reshape(2, 2)", "np.zeros(3)[7]",
        "np.array([[1], [1, 2]], dtype=int)", "np.concatenate([])", "np.stack([np.zeros(1), np.zeros(2)])",
        "np.linalg.inv(np.zeros((2, 2)))", "np.dtype('bfloat17')", "np.zeros(-1)", "np.load('/nonexistent.npy')",
        "np.einsum('ij,jk', np.zeros(2), np.zeros(2))", "np.split(np.zeros(5), 2)", "np.broadcast_to(np.zeros(3), (2, 2))",
        "np.random.default_rng(0).choice(0)", "np.array(['a']).astype(int)", "np.fromstring('abc', dtype='f8')", "np.arange()",
        "np.squeeze(np.zeros((2, 2)), axis=0)", "np.transpose(np.zeros((2, 2)), (0, 0))", "bool(np.zeros(2))",
    ),
    "import pydantic\nclass A(pydantic.BaseModel):\n    n: int\n    s: str = ''": (
        "A()", "A(n='x')", "A(n=1, s=3)", "A.model_validate_json('{')", "A(n=1).missing", "A.model_validate(3)",
        "pydantic.TypeAdapter(int).validate_python('a')", "pydantic.create_model('B', a=3, b=(1, 2, 3))",
    ),
    "import sqlalchemy as sa\ne = sa.create_engine('sqlite://')": (
        "e.connect().execute(sa.text('SELECT * FROM nothing'))", "sa.create_engine('nothing://')", "sa.create_engine('')",
        "e.connect().execute('SELECT 1')", "sa.Table('a', 3)", "e.connect().execute(sa.text('SELECT :a'))",
        "sa.select(sa.column('a')).where(3).compile().params['x']", "sa.inspect(3)", "sa.MetaData().tables['a']",
        "e.connect().execute(sa.text('SELECT 1')).scalar_one().x", "e.connect().execute(sa.text('SELECT 1 WHERE 0')).one()",
    ),
    "import jinja2\nj = jinja2.Environment(undefined=jinja2.StrictUndefined)": (
        "j.from_string('{{ a }}').render()", "j.from_string('{% if %}')", "j.get_template('a')",
        "j.from_string('{{ 1 / 0 }}').render()", "j.from_string('{{ a|nothing }}')", "j.from_string('{{ (1).x }}').render()",
    ),
    "import httpx, requests": (
        "httpx.get('http://127.0.0.1:1/')", "httpx.get('nothing')", "httpx.URL(3)", "httpx.Client(timeout='x')",
        "httpx.Response(503, request=httpx.Request('GET', 'http://x')).raise_for_status()", "httpx.Response(200, text='{').json()",
        "requests.get('http://127.0.0.1:1/v1/models')", "requests.get('nothing')", "requests.Request('GET', '').prepare()",
    ),
    "import orjson, yaml, click, typer, packaging.version as v, packaging.requirements as r, packaging.specifiers as sp": (
        "orjson.loads('{')", "orjson.dumps(object())", "yaml.safe_load('a: [')", "yaml.safe_load('a: b: c')",
        "yaml.safe_load('!!python/object:x {}')", "v.Version('not a version')", "r.Requirement('a >')", "sp.SpecifierSet('>')",
        "click.Choice(['a', 'b']).convert('c', None, None)", "click.IntRange(1, 3).convert('9', None, None)",
        "click.Path(exists=True).convert('/nonexistent', None, None)", "click.Command('x').main(['--y'], standalone_mode=False)",
    ),
    "import fastapi, starlette.routing as sr, starlette.requests as rq, uvicorn, anyio, werkzeug.exceptions as we": (
        "fastapi.APIRouter(prefix='x')", "fastapi.APIRouter(prefix='/x/')", "sr.Route('x', endpoint=print)",
        "sr.Router().url_path_for('a')", "rq.Request({'type': 'websocket'})", "uvicorn.Config('a:b').load()",
        "uvicorn.importer.import_from_string('nothing:app')", "uvicorn.importer.import_from_string('os:app')",
        "anyio.run(print)", "anyio.from_thread.run(print)", "we.abort(404)", "we.abort(999)",
        "fastapi.FastAPI().get('/{a}')(lambda b=fastapi.Body(), *, a: fastapi.Response = 3: 0)",
    ),
    "import rapidfuzz, hypothesis.strategies as st, sortedcontainers, structlog, rich.console, markdown_it": (
        "rapidfuzz.fuzz.ratio(1, 2)", "rapidfuzz.process.extract('a', 3)", "rapidfuzz.distance.Levenshtein.distance(1, 2)",
        "st.integers(3, 1).example()", "st.sampled_from([]).example()", "sortedcontainers.SortedList([1, 'a'])",
        "rich.console.Console().print('[/b]')", "markdown_it.MarkdownIt('nothing')", "markdown_it.MarkdownIt().enable('nothing')",
        "structlog.get_logger().bind(1)", "rich.console.Console(width='a').print('x')",
    ),
    "import attrs, jsonschema_rs, graphql, prometheus_client as pc, alembic.config, alembic.command, pygments.lexers as pl": (
        "jsonschema_rs.validate({'type': 'integer'}, 'a')", "jsonschema_rs.validate({'type': 3}, 1)", "graphql.parse('{')",
        "graphql.build_schema('type A { a: Nothing }')", "pc.Counter('a b', 'x')", "pc.Counter('a', 'x').inc(-1)",
        "alembic.command.upgrade(alembic.config.Config(), 'head')", "pl.get_lexer_by_name('nothing')",
    ),
}  # fmt: skip


def tracebacks(*, limit: int = 200) -> list[str]:
    """Return what Python prints for each expression that raises here, at most `limit`."""
    found: list[str] = []
    for setup, expressions in _EXPRESSIONS.items():
        for expression in expressions:
            printed = _run(setup, expression)
            if printed:
                found.append(printed)
    step = max(1.0, len(found) / limit)
    return [found[int(n * step)] for n in range(min(limit, len(found)))]


def _run(setup: str, expression: str) -> str:
    namespace: dict[str, object] = {}
    for line in setup.split("\nclass ")[:1]:
        for part in _parts(line):
            try:
                exec(part, namespace)
            except ImportError:
                continue
    if "\nclass " in setup:
        exec("class " + setup.split("\nclass ")[1], namespace)
    try:
        eval(compile(expression, "/home/user/app/main.py", "eval"), namespace)
    except (Exception, SystemExit):
        printed = traceback.format_exc()
        # The first frame is this file's; a user's paste has a script of their own there.
        _, _, rest = printed.partition('  File "/home/user')
        return "Traceback (most recent call last):\n" + '  File "/home/user' + rest if rest else printed
    return ""


def _parts(line: str) -> list[str]:
    """Return a line of imports as one import each, so that a missing package costs only its own expressions."""
    parts: list[str] = []
    for statement in line.split("\n"):
        if statement.startswith("import "):
            parts += ["import " + name.strip() for name in statement.removeprefix("import ").split(",")]
        elif statement:
            parts.append(statement)
    return parts


if __name__ == "__main__":
    for text in tracebacks():
        print(text)
