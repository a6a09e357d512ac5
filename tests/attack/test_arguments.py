"""Launch commands as attacks, sent to the real API with a real engine behind it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.check.install import Engines
from app.check.pool import Bounds
from app.cli.engine import folder
from app.settings import Settings
from app.store import migrate
from app.store.engine import Store
from app.web.app import create_app
from app.web.checks import Checks
from app.web.parts import Parts
from tests.attack.conftest import RESULTS, Watch, wait_until_alone

pytestmark = pytest.mark.engine

SERVE = "sglang serve Qwen/Qwen3-0.6B "
LAUNCH = "python -m sglang.launch_server --model-path Qwen/Qwen3-0.6B "
CONFIG = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 4,
          "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 3072, "vocab_size": 1000,
          "max_position_embeddings": 4096}  # fmt: skip
EVIL_CODE = {"auto_map": {"AutoConfig": "evil.EvilConfig", "AutoModelForCausalLM": "evil.Evil"}}
DEEP = '{"a":' * 50_000 + "1" + "}" * 50_000

# In each, {secret} is a file that must not be read, {folder} one that must not be written to, {port} one that listens.
COMMANDS: dict[str, str] = {
    "config file": "sglang serve --config {folder}/secret.yaml",
    "config file beside a model": SERVE + "--config {folder}/secret.yaml",
    "config file of the system": SERVE + "--config /etc/passwd",
    "chat template": SERVE + "--chat-template {secret}",
    "completion template": SERVE + "--completion-template {secret}",
    "model path is a folder": "sglang serve {folder}",
    "model path is a file": "sglang serve {secret}",
    "model path is the system": "sglang serve /etc",
    "model path climbs": "sglang serve ../../../../../..{folder}",
    "model path in /proc": "sglang serve /proc/self/root{folder}",
    "model path is a descriptor": "sglang serve /proc/self/fd/0",
    "model folder with code": "sglang serve {folder}/model --trust-remote-code",
    "GGUF file": "sglang serve {secret} --load-format gguf",
    "tokenizer path": SERVE + "--tokenizer-path {folder}",
    "draft path": SERVE + "--speculative-algorithm EAGLE --speculative-draft-model-path {folder}",
    "draft path is a file": SERVE + "--speculative-algorithm EAGLE3 --speculative-draft-model-path {secret}",
    "token map": SERVE + "--speculative-algorithm EAGLE --speculative-token-map {secret}",
    "quantization parameters": SERVE + "--kv-cache-dtype fp8_e4m3 --quantization-param-path {folder}/secret.json",
    "adaptive speculation": SERVE + "--speculative-adaptive-config {folder}/secret.json",
    "decrypted config": SERVE + "--decrypted-config-file {folder}/secret.json",
    "LoRA folder": SERVE + "--enable-lora --lora-paths x={folder}",
    "HiCache configuration": SERVE + "--enable-hierarchical-cache --hicache-storage-backend file "
    "--hicache-storage-backend-extra-config @{folder}/secret.json",
    "DeepEP configuration": SERVE + "--deepep-config {folder}/secret.json",
    "LMCache configuration": SERVE + "--enable-lmcache --lmcache-config-file {folder}/secret.yaml",
    "expert location": SERVE + "--init-expert-location {folder}/secret.json",
    "TLS key": SERVE + "--ssl-keyfile {secret} --ssl-certfile {secret}",
    "dLLM configuration": SERVE + "--dllm-algorithm-config {folder}/secret.yaml",
    "PD-mux configuration": SERVE + "--enable-pdmux --pdmux-config-path {folder}/secret.yaml",
    "tensor dump input": SERVE + "--debug-tensor-dump-input-file {secret}",
    "ModelOpt checkpoint (a pickle)": SERVE + "--modelopt-checkpoint-restore-path {secret}",
    "KTransformers weights": SERVE + "--kt-weight-path {folder}",
    "n-gram corpus": SERVE + "--speculative-algorithm NGRAM --speculative-ngram-external-corpus-path {secret}",
    "expert distribution": SERVE + "--enable-eplb --expert-distribution-recorder-mode stat",
    "custom weight loader": SERVE + "--custom-weight-loader os.system",
    "weight loader and load format": SERVE + "--load-format remote --custom-weight-loader subprocess.run",
    "forward hooks": SERVE + """--forward-hooks '[{{"name":"x","target_modules":["*"],"hook_factory":"os:system"}}]'""",
    "radix cache backend": SERVE + "--radix-cache-backend os.system",
    "HiCache module": SERVE + "--enable-hierarchical-cache --hicache-storage-backend dynamic "
    """--hicache-storage-backend-extra-config '{{"backend_name":"x","module_path":"os","class_name":"system"}}'""",
    "logit processors": SERVE + "--enable-custom-logit-processor",
    "model config parser": SERVE + "--model-config-parser os.system",
    "remote code in an override": SERVE + """--trust-remote-code --json-model-override-args
    '{{"auto_map":{{"AutoConfig":"evil.EvilConfig"}},"_name_or_path":"{folder}/model"}}'""",
    "model implementation": SERVE + "--trust-remote-code --model-impl transformers",
    "loader configuration": SERVE + """--model-loader-extra-config '{{"path":"{secret}"}}'""",
    "request log": SERVE + "--log-requests --log-requests-target {folder}",
    "crash dumps": SERVE + "--crash-dump-folder {folder}",
    "metrics files": SERVE + "--export-metrics-to-file --export-metrics-to-file-dir {folder}",
    "tensor dumps": SERVE + "--debug-tensor-dump-output-folder {folder}",
    "file storage": SERVE + "--file-storage-path {folder}",
    "ModelOpt export": SERVE + "--quantization modelopt_fp8 --modelopt-export-path {folder}",
    "download folder": SERVE + "--download-dir {folder}",
    "trace folder": SERVE + "--spec-trace-dir {folder}",
    "NCCL address": SERVE + "--nccl-init-addr 127.0.0.1:{port} --tp 2",
    "distributed address": SERVE + "--dist-init-addr 127.0.0.1:{port} --nnodes 2 --node-rank 1 --tp 2",
    "encoder addresses": SERVE + "--language-only --encoder-urls http://127.0.0.1:{port}",
    "OpenTelemetry": SERVE + "--enable-trace --otlp-traces-endpoint 127.0.0.1:{port}",
    "KV events": SERVE + """--kv-events-config '{{"publisher":"zmq","endpoint":"tcp://127.0.0.1:{port}"}}'""",
    "S3 model": "sglang serve s3://127.0.0.1:{port}/m",
    "HTTP model": "sglang serve http://127.0.0.1:{port}/model",
    "remote instance": SERVE + "--load-format remote_instance --remote-instance-weight-loader-seed-instance-ip "
    "127.0.0.1 --remote-instance-weight-loader-seed-instance-service-port {port}",
    "disaggregation": SERVE + "--disaggregation-mode prefill --disaggregation-bootstrap-port {port}",
    "server address": SERVE + "--host 127.0.0.1 --port {port}",
    "Unix socket": SERVE + "--host unix://{folder}/socket",
    "model hub": "sglang serve someone/unknown-model",
    "ModelScope": "SGLANG_USE_MODELSCOPE=1 sglang serve someone/unknown-model",
    "preloaded library": f"LD_PRELOAD={{secret}} PYTHONPATH={{folder}}/model {LAUNCH}",
    "start-up file of Python": f"PYTHONSTARTUP={{secret}} PYTHONINSPECT=1 {LAUNCH}",
    "external models": f"SGLANG_EXTERNAL_MODEL_PACKAGE=antigravity {LAUNCH}",
    "plugins": f"SGLANG_PLUGINS=evil SGLANG_PLATFORM_PLUGIN=evil {LAUNCH}",
    "profiler folder": f"SGLANG_TORCH_PROFILER_DIR={{folder}} {LAUNCH}",
    "log configuration": f"SGLANG_LOGGING_CONFIG_PATH={{folder}}/secret.json {LAUNCH}",
    "shell: semicolon": SERVE + "; touch /tmp/errata-attack-shell",
    "shell: substitution": SERVE + "$(touch /tmp/errata-attack-shell)",
    "shell: backticks": SERVE + "`touch /tmp/errata-attack-shell`",
    "shell: redirection": SERVE + "> /tmp/errata-attack-shell",
    "shell: pipe": SERVE + "| tee /tmp/errata-attack-shell",
    "shell: here document": "cat > /tmp/errata-attack-shell <<EOF\n" + SERVE + "\nEOF",
    "variable of the server": SERVE + "--served-model-name $NOT_FOR_CHECKS ${{HOME}}",
    "tensor parallel of a thousand million": SERVE + "--tp 1000000000",
    "data parallel of a million": SERVE + "--dp 1000000 --enable-dp-attention --tp 1000000",
    "a number of 5,000 digits": SERVE + "--context-length " + "9" * 5_000,
    "context of 10^18": SERVE + "--context-length 1000000000000000000",
    "page size of 10^18": SERVE + "--page-size 1000000000000000000",
    "requests of 10^12": SERVE + "--max-running-requests 1000000000000",
    "CUDA graphs up to 10^9": SERVE + "--cuda-graph-max-bs 1000000000",
    "draft tokens of 10^9": SERVE + "--speculative-algorithm NGRAM --speculative-num-draft-tokens 1000000000",
    "host cache of 10^9 GB": SERVE + "--enable-hierarchical-cache --hicache-size 1000000000",
    "10^8 layers": SERVE + """--json-model-override-args '{{"num_hidden_layers": 100000000}}'""",
    "10^6 experts": SERVE + """--json-model-override-args '{{"num_experts": 1000000, "num_hidden_layers": 100000}}'""",
    "a width of 10^15": SERVE + """--json-model-override-args '{{"hidden_size": 1000000000000000}}'""",
    "deep JSON in an override": SERVE + "--json-model-override-args '" + "[" * 30_000 + "'",
    "a long value for a regular expression": SERVE + "--served-model-name " + "a" * 60_000 + "!",
    "a long value that is a size": SERVE + "--mem-fraction-static " + "1" * 30_000 + "x",
    "a thousand options": SERVE + "--tp 1 " * 1_000,
    "regular expression in an option": SERVE + "--forward-hooks '[{{\"target_modules\":[\"(a+)+$\"]}}]'",
    "aliases in YAML": "command: [sglang, serve]\na0: &a0 [x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 60)),
    "variables that double": "A=xx;" + "A=$A$A;" * 60 + SERVE + "$A",
}  # fmt: skip

BODIES: dict[str, Any] = {
    "a command of 1 MB": {"command": SERVE + "--x " * 250_000},
    "a number of 10^6 digits": {"command": SERVE + "--tp " + "9" * 1_000_000},
    "a number of 10^6 digits in JSON": b'{"command": "sglang serve x", "gpus": ' + b"9" * 1_000_000 + b"}",
    "deep JSON": DEEP.encode(),
    "deep JSON as a configuration": {"command": SERVE, "model_config": DEEP},
    "a body of 10 MB": {"command": SERVE, "model_config": "x" * (10 << 20)},
    "code in a configuration": {
        "command": "sglang serve a/b --trust-remote-code", "model_config": {**CONFIG, **EVIL_CODE},
    },
    "code of another folder in a configuration": {
        "command": "sglang serve a/b --trust-remote-code",
        "model_config": {**CONFIG, "auto_map": {"AutoConfig": "/tmp/evil--evil.EvilConfig"}},
    },
    "a configuration of 10^8 layers": {
        "command": "sglang serve a/b", "model_config": {**CONFIG, "num_hidden_layers": 10**8},
    },
    "a configuration with huge lists": {
        "command": "sglang serve a/b", "model_config": {**CONFIG, "layer_types": ["full_attention"] * 90_000},
    },
    "a model name that climbs": {"command": "sglang serve ../../../tmp/errata-attack-model", "model_config": CONFIG},
    "an absolute model name": {"command": "sglang serve /tmp/errata-attack-model", "model_config": CONFIG},
    "a model name that is an option": {
        "command": "sglang serve --model-path --trust-remote-code", "model_config": CONFIG,
    },
    "an engine that is a path": {"command": SERVE, "engine": "../../../../etc"},
    "hardware that is a path": {"command": SERVE, "hardware": "../../../../etc/passwd"},
    "a package that is a path": {"command": SERVE, "packages": {"../../etc/passwd": "1"}},
    "packages without end": {"command": SERVE, "packages": {f"p{i}": "1" for i in range(1000)}},
    "GPUs without end": {"command": SERVE, "gpus": 10**12},
}  # fmt: skip


class Api:
    """The API with a real engine, in a loop of its own."""

    def __init__(self, store: Store) -> None:
        chosen = Settings.from_environment()
        engines = Engines(folder(chosen), chosen.check_engine)
        if not engines.installed():
            pytest.skip("no engine is installed: errata engine install 0.5.18")
        usual = Bounds()
        bounds = replace(usual, limits=replace(usual.limits, memory_bytes=4 << 30))
        self.loop = asyncio.new_event_loop()
        self.checks = Checks(store, engines, bounds, linked=False)
        app = create_app(Parts(store, checks=self.checks))
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", timeout=400)

    def post(self, body: Any) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.loop.run_until_complete(self._client.post("/api/check", content=content))

    def close(self) -> None:
        self.loop.run_until_complete(self.checks.close())
        self.loop.run_until_complete(self._client.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('attack') / 'errata.db'}")
    migrate.upgrade(store)
    made = Api(store)
    assert made.post({"command": SERVE}).json()["verdict"] == "pass"
    yield made
    made.close()
    store.close()


def _attack(api: Api, watch: Watch, name: str, body: Any) -> None:
    watch.begin()
    answer = api.post(body)

    assert answer.status_code in (200, 413, 422, 504), answer.text[:500]
    watch.check(answer.text)
    assert len(answer.content) < 4 << 20
    value = answer.json()
    if answer.status_code == 200:
        assert value["verdict"] in ("pass", "fail", "unknown")
    wait_until_alone(os.getpid())
    said = value.get("detail") or value.get("reason") or (value.get("error") or {}).get("message") or "starts"
    told = f"{answer.status_code} {value.get('verdict', '')} {said}"
    RESULTS.append(("argument", name, " ".join(told.split())))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_reaches_out(name: str, api: Api, watch: Watch) -> None:
    text = COMMANDS[name].format(secret=watch.secret, folder=watch.folder, port=watch.port)

    _attack(api, watch, name, {"command": text})


@pytest.mark.parametrize("name", BODIES)
def test_no_body_reaches_out(name: str, api: Api, watch: Watch) -> None:
    _attack(api, watch, name, BODIES[name])


def test_the_service_is_as_before(api: Api) -> None:
    """Last in the file: after all of the above a plain check still starts."""
    assert api.post({"command": SERVE + "--port 1"}).json()["verdict"] == "pass"
