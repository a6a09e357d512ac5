"""Whose error is it? Packages of frames, and texts by which other software is known."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Collection

from app.match.log import Block

PYTHON = "Python itself"
_INSTALLED = re.compile(r"(?:site|dist)-packages/([\w.\-]+)")
_STANDARD = re.compile(
    r"(?:^|/)lib(?:64)?/python3?[\d.]*t?/(?!site-packages|dist-packages)|^<frozen |/cpython[\w.\-]*/"
)

# Directory or module name -> how the software is called. Only what is met beside SGLang; anything else is named by
# the directory it is installed in.
_KNOWN = {
    "vllm": "vLLM",
    "torch": "PyTorch",
    "torchvision": "torchvision",
    "torchao": "torchao",
    "transformers": "Transformers",
    "tokenizers": "Tokenizers",
    "huggingface_hub": "huggingface_hub",
    "safetensors": "safetensors",
    "diffusers": "Diffusers",
    "flashinfer": "FlashInfer",
    "flash_attn": "FlashAttention",
    "triton": "Triton",
    "tvm": "TVM",
    "tvm_ffi": "TVM FFI",
    "tensorrt_llm": "TensorRT-LLM",
    "sgl_kernel": "sgl-kernel",
    "deep_gemm": "DeepGEMM",
    "deep_ep": "DeepEP",
    "xgrammar": "XGrammar",
    "outlines": "Outlines",
    "llguidance": "llguidance",
    "mooncake": "Mooncake",
    "nixl": "NIXL",
    "ray": "Ray",
    "openai": "the OpenAI client",
    "httpx": "HTTPX",
    "requests": "Requests",
    "aiohttp": "aiohttp",
    "fastapi": "FastAPI",
    "starlette": "Starlette",
    "uvicorn": "Uvicorn",
    "pydantic": "Pydantic",
    "numpy": "NumPy",
    "verl": "verl",
    "slime": "slime",
    "accelerate": "Accelerate",
    "jinja2": "Jinja",
    "peft": "PEFT",
    "bitsandbytes": "bitsandbytes",
    "modelopt": "ModelOpt",
    "compressed_tensors": "compressed-tensors",
    "cutlass": "CUTLASS",
    "aiter": "AITER",
    "zmq": "PyZMQ",
    "cuda": "CUDA",
}
_PATHS = re.compile(r"(?<![\w])(" + "|".join(sorted(_KNOWN, key=len, reverse=True)) + r")/")

# Texts by which other software is recognised when no frame tells. The first that is found wins.
_TEXTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\[?sgl_kernel\]?[ :]|common_ops"), "sgl-kernel"),
    (re.compile(r"flashinfer|TllmGenFmha", re.IGNORECASE), "FlashInfer"),
    (
        re.compile(
            r"gpu[_ ]memory[_ ]utilization|VLLM_|\bvllm\b|max_num_batched_tokens|max_model_len|limit_mm_per_prompt"
            r"|limit-mm-per-prompt|tensor_parallel_size|max_lora_rank|Engine core initialization",
            re.IGNORECASE,
        ),
        "vLLM",
    ),
    (re.compile(r"maximum context length is \S{1,20} tokens\. However, you requested"), "vLLM"),
    (re.compile(r"\bNCCL\b|ncclSystemError|ncclInternalError|ProcessGroupNCCL|DistBackendError"), "NCCL"),
    (re.compile(r"CUDA out of memory|torch\.OutOfMemoryError|torch\.cuda\.OutOfMemoryError"), "PyTorch (CUDA memory)"),
    (re.compile(r"CUDA error|CUDA_LAUNCH_BLOCKING|cudaError|CUBLAS_STATUS|CUDNN_STATUS|device-side assert"), "CUDA"),
    (re.compile(r"No CUDA GPUs are available|re-initialize CUDA in forked"), "PyTorch (CUDA)"),
    (re.compile(r"/aten/src/|pytorch/|\bc10::|torch\._dynamo|torch\.\w+|at::native"), "PyTorch"),
    (
        re.compile(
            r"mat1 and mat2|size of tensor a \(|is invalid for input of size|expected scalar type|Torch not compiled"
            r"|tensors to be on the same device|non-singleton dimension|same number of dimensions|probability tensor"
            r"|(?:server|client) socket has (?:failed|timed out)|Ninja is required|match the broadcast shape|^Index put"
        ),
        "PyTorch",
    ),
    (re.compile(r"tvm\.|tvm::"), "TVM"),
    (re.compile(r"triton\.|OutOfResources: out of resource|PassManager::run failed"), "Triton"),
    (re.compile(r"third_party/gloo|\bgloo::|Connection closed by peer \["), "Gloo"),
    (
        re.compile(r"transformers|AutoConfig|AutoModel|AutoTokenizer|number of image token", re.IGNORECASE),
        "Transformers",
    ),
    (re.compile(r"huggingface\.co|RepositoryNotFoundError|GatedRepoError|LocalEntryNotFoundError"), "huggingface_hub"),
    (re.compile(r"safetensors|SafetensorError"), "safetensors"),
)
_PYTHON_TEXTS = re.compile(
    r"name '[^']{1,200}' is not defined$"
    r"|has no attribute '"
    r"|object (?:is not (?:subscriptable|callable|iterable|an iterator|reversible|awaitable)|does not support)"
    r"|object (?:of type '[^']{1,100}' has no len|cannot be interpreted as an integer)"
    r"|got an unexpected keyword argument|missing \d+ required (?:positional|keyword-only) argument"
    r"|takes (?:from )?\d+ (?:to \d+ )?positional arguments? but|got multiple values for"
    r"|^No module named '|cannot import name '|cannot open shared object file|undefined symbol"
    r"|unsupported operand type|not supported between instances of|can only concatenate|must be str, not"
    r"|index out of range$|^invalid literal for int\(\)|could not convert string to float|could not broadcast"
    r"|too many values to unpack|not enough values to unpack|division by zero|maximum recursion depth exceeded"
    r"|dictionary changed size|local variable '|cannot access local variable|cannot unpack non-iterable"
    r"|Address already in use|\[Errno \d{1,3}\]|Expecting value: line \d|Connection refused|Broken pipe"
    r"|unhashable type|can't pickle|cannot pickle|is not JSON serializable|codec can't (?:de|en)code"
    r"|can't set attribute|is not a valid [A-Z]\w+$|pop from empty|list\.remove\(x\)"
)
_PYTHON_KEY = re.compile(r"^'?[\w.\-/]{1,300}'?$|^\d+$")


def software(name: str) -> str:
    """Return how a package is called."""
    return _KNOWN.get(name, name)


def package_of(path: str, parts: Collection[str], suffixes: Collection[str]) -> str:
    """Return the package that a frame's file belongs to, "" where the path does not tell.

    Shape: `parts` are a known package and what is in it ("sglang/srt"), `suffixes` the last two components of known
    files. A directory that only happens to be called like a package proves nothing: what is installed decides first.
    """
    path = path.replace("\\", "/")
    if installed := _INSTALLED.findall(path):
        return str(installed[-1]).removesuffix(".py")
    if path[:1] == "<" or _STANDARD.search(path):
        return PYTHON
    pieces = path.split("/")
    if len(pieces) < 2:
        return ""
    for one, other in zip(pieces[-2::-1], pieces[:0:-1], strict=True):
        if f"{one}/{other}" in parts:
            return one
    known = next((piece for piece in pieces[:-1] if piece in _KNOWN), "")
    if known:
        return known
    roots = {part.partition("/")[0] for part in parts}
    if "/".join(pieces[-2:]) in suffixes:
        return min(roots, default="")
    # A file that no known release has, or somebody else's under a directory of that name.
    unknown = any(piece in roots for piece in pieces[:-1]) or "..." in path or "…" in path
    return "" if unknown else pieces[-2]


def looks_like(blocks: tuple[Block, ...], text: str, packages: list[str], product: str) -> str:
    """Return a sentence that says whose error the text seems to be, "" where nothing tells.

    Shape: `packages` are those of the blocks' raise frames, in order, "" where unknown.
    """
    for name in packages:
        if name == PYTHON:
            continue
        if name and software(name).lower() != product.lower():
            return _sentence(software(name), product)
    head = text[:20_000]
    for block in blocks:
        if python_says(block):
            return f"This looks like an error of {PYTHON} (a bug or a missing part), not one that {product} raises."
    for pattern, name in _TEXTS:
        if pattern.search(head):
            return _sentence(name, product)
    for block in blocks:
        if owner := _owner_of_class(block.exception):
            return _sentence(owner, product)
    if path := _PATHS.search(head):
        return _sentence(software(path.group(1)), product)
    if PYTHON in packages:
        return _sentence("Python's standard library", product)
    return ""


def _owner_of_class(exception: str) -> str:
    """Return whose class a qualified name is: "jinja2.exceptions.UndefinedError", "" where it does not say."""
    package = exception.partition(".")[0].lstrip("_") if "." in exception else ""
    if package in sys.stdlib_module_names:
        return "Python's standard library"
    return _KNOWN.get(package.removesuffix("_core").removesuffix("_rust"), "")


def python_says(block: Block) -> bool:
    """Return whether the block's message is one that the interpreter itself writes."""
    name = block.exception.rpartition(".")[2]
    message = block.message.partition("\n")[0][:1000]
    if name == "KeyError":
        return bool(_PYTHON_KEY.match(message))
    if name and name not in _BUILTIN:
        return False
    return bool(_PYTHON_TEXTS.search(message))


def is_builtin(name: str) -> bool:
    """Return whether an exception is one of Python's own."""
    return name in _BUILTIN


def _sentence(name: str, product: str) -> str:
    return f"This looks like an error of {name}, not of {product}."


_BUILTIN = frozenset(n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)) | {
    "JSONDecodeError",
    "UnpicklingError",
    "PicklingError",
}
