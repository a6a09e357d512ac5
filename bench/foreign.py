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


# Last lines of software that is not installed here, as it prints them: what stands beside SGLang in a log.
SAID = (
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (41360). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
    'ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5. You can use float16 instead by explicitly setting the `dtype` flag in CLI, for example: --dtype=half.',
    'ValueError: Total number of attention heads (32) must be divisible by tensor parallel size (3).',
    'RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}',
    'vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.',
    'ValueError: Free memory on device (7.2/23.5 GiB) on startup is less than desired GPU memory utilization (0.9, 21.1 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.',
    'ValueError: LoRA rank 64 is greater than max_lora_rank 16.',
    'AssertionError: please set tensor_parallel_size (4) to less than max local gpu count (2)',
    "ValueError: User-specified max_model_len (32768) is greater than the derived max_model_len (max_position_embeddings=8192 or model_max_length=None in model's config.json). This may lead to incorrect model outputs or CUDA errors. To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    'ValueError: The prompt (total length 40000) is too long to fit into the model (context length 32768). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.',
    'ValueError: The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.',
    'ValueError: As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the tokenizer does not define one.',
    'NotImplementedError: Speculative decoding with draft model is not supported yet. Please consider using other speculative decoding methods such as ngram, medusa, eagle, or deepseek_mtp.',
    "ValueError: This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
    'ValueError: `limit_mm_per_prompt` is only supported for multimodal models.',
    'ValueError: At most 1 image(s) may be provided in one request.',
    'ValueError: You set image=1 (or defaulted to 1) in `--limit-mm-per-prompt`, but passed 2 image items in the same prompt.',
    'ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (8192). This effectively limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. Please increase max_num_batched_tokens or decrease max_model_len.',
    'ValueError: Pipeline parallelism is not supported for this model. Supported models implement the `SupportsPP` interface.',
    'ValueError: Marlin does not support weight_bits = uint4b8. Only types = [] are supported (for group_size = 128, min_capability = 75, zp = False).',
    "RuntimeError: Worker failed with error 'CUDA out of memory', please check the stack trace above for the root cause",
    'ValueError: Torch.compile is not supported with this backend',
    'RuntimeError: Failed to allocate memory for batch_prefill_tmp_v with size 805306368 and alignment 16 in AlignedAllocator',
    'ValueError: The dtype of q torch.float16 does not match the q_data_type torch.bfloat16 specified in plan function.',
    "RuntimeError: Error in function 'aligned_alloc' at /data/include/flashinfer/allocator.h:49: Buffer overflow when allocating memory for batch_prefill_tmp_v with size 435847168 and alignment 16, but only 402653184 bytes available in AlignedAllocator. Increase the workspace buffer size.",
    'ValueError: The checkpoint you are trying to load has model type `qwen4` but Transformers does not recognize this architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.',
    "ValueError: Unrecognized configuration class <class 'transformers_modules.x.Config'> for this kind of AutoModel: AutoModel.",
    "OSError: meta-llama/Llama-9 is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
    'ValueError: Unrecognized model in /models/x. Should have a `model_type` key in its config.json, or contain one of the following strings in its name: albert, align',
    'ValueError: The repository for /models/x contains custom code which must be executed to correctly load the model. You can inspect the repository content at https://hf.co/x. Please pass the argument `trust_remote_code=True` to allow custom code to be run.',
    "ImportError: Using `bitsandbytes` 4-bit quantization requires Accelerate: `pip install 'accelerate>=0.26.0'`",
    'triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.',
    'RuntimeError: PassManager::run failed',
    "[Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use",
    "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
    'RuntimeError: No CUDA GPUs are available',
    'RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x4096 and 5120x5120)',
    'RuntimeError: The size of tensor a (4096) must match the size of tensor b (5120) at non-singleton dimension 1',
    "RuntimeError: shape '[1, 2]' is invalid for input of size 3",
    'RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!',
    'RuntimeError: expected scalar type Half but found BFloat16',
    'AssertionError: Torch not compiled with CUDA enabled',
    'RuntimeError: CUDA error: an illegal memory access was encountered',
    'RuntimeError: CUDA error: no kernel image is available for execution on the device',
    'RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98',
    'torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 20000).',
    'torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2',
    'torch._dynamo.exc.Unsupported: call_function BuiltinVariable(print) [ConstantVariable()] {}',
    'RuntimeError: Ninja is required to load C++ extensions',
    'RuntimeError: Tensors must have same number of dimensions: got 2 and 3',
    "RuntimeError: output with shape [1] doesn't match the broadcast shape [2]",
    'RuntimeError: Index put requires the source and destination dtypes match, got BFloat16 for the destination and Half for the source.',
    'RuntimeError: probability tensor contains either `inf`, `nan` or element < 0',
    "ModuleNotFoundError: No module named 'sgl_kernel'",
    "ImportError: cannot import name 'fused_moe' from 'vllm.model_executor.layers'",
    'ImportError: libcudart.so.12: cannot open shared object file: No such file or directory',
    'pydantic_core._pydantic_core.ValidationError: 1 validation error for ChatCompletionRequest',
    'httpx.ConnectError: [Errno 111] Connection refused',
    'openai.APIConnectionError: Connection error.',
    'openai.BadRequestError: Error code: 400 - {\'error\': {\'message\': "Invalid \'messages[0].content\': expected a string", \'type\': \'invalid_request_error\'}}',
    'requests.exceptions.HTTPError: 404 Client Error: Not Found for url: http://127.0.0.1:30000/v1/chat',
    'huggingface_hub.errors.GatedRepoError: 401 Client Error. Access to model meta-llama/Llama-3.1-8B is restricted. You must have access to it and be authenticated to access it. Please log in.',
    'ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.',
    "jinja2.exceptions.UndefinedError: 'dict object' has no attribute 'role'",
    'jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user/assistant/...',
    'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)',
    'safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer',
    "TypeError: LlamaForCausalLM.forward() got an unexpected keyword argument 'input_embeds'",
    "AttributeError: 'Qwen2Config' object has no attribute 'rope_theta'",
    "AttributeError: module 'torch' has no attribute 'float8_e8m0fnu'",
    "KeyError: 'model.layers.0.mlp.experts.w13_weight'",
    "TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'",
    'RuntimeError: DeepGEMM requires SM90 or higher',
    'RuntimeError: Assertion error (/deep_gemm/csrc/jit/compiler.hpp:120): nvcc not found',
    'nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND',
    'RuntimeError: Check failed: (status == cudaSuccess) is false: SinglePrefillWithKVCache failed',
    "terminate called after throwing an instance of 'c10::Error'",
    'Fatal Python error: Segmentation fault',
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 12.88 MiB is free. Process 12345 has 79.09 GiB memory in use.',
    'ValueError: Tokenizer class Qwen9Tokenizer does not exist or is not currently imported.',
    "ValueError: Could not load model with any of the following classes: (<class 'x'>,)",
    'AssertionError: invalid bank id',
    'ValueError: A lmdeploy turbomind engine needs session_len > 0',
    'RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Invalid tensor parallel size 3',
    'ValueError: tensor_parallel_size 3 must divide num_attention_heads 32',
    'RuntimeError: Unable to find a valid cuDNN algorithm to run convolution',
    'RuntimeError: cutlass_scaled_mm failed, unsupported architecture',
    'RuntimeError: Failed to initialize the TMA descriptor 700',
    'concurrent.futures._base.TimeoutError',
    'asyncio.exceptions.CancelledError',
    'multiprocessing.context.AuthenticationError: digest received was wrong',
    'OSError: [Errno 28] No space left on device',
    "PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'",
    "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:30001')",
)  # fmt: skip


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
