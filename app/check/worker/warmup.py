"""Load what checks would load late, before the first of them.

Children learn it: each runs one small command and reports the modules it had to import, and the parent
imports those. What then stays alive is put out of the garbage collector's way, so that children share it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from app.check.protocol import Hardware, Json, Model, Outcome, Request, Stage
from app.check.worker.forks import place_models

PACKAGES = ("sglang", "transformers", "torch", "huggingface_hub", "tokenizers", "safetensors", "unittest", "encodings")

_DENSE: dict[str, Json] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
    "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 2, "vocab_size": 1024, "head_dim": 64,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
}  # fmt: skip
_MOE: dict[str, Json] = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 512, "intermediate_size": 1024,
    "moe_intermediate_size": 256, "num_experts": 8, "num_experts_per_tok": 2, "num_attention_heads": 8, "head_dim": 64,
    "num_key_value_heads": 8, "num_hidden_layers": 2, "vocab_size": 1024, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "decoder_sparse_step": 1,
    "mlp_only_layers": [], "norm_topk_prob": True,
}  # fmt: skip
_LATENT: dict[str, Json] = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 512, "vocab_size": 1024,
    "intermediate_size": 1024, "moe_intermediate_size": 256, "n_routed_experts": 8, "n_shared_experts": 1, "n_group": 2,
    "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank": 512,
    "q_lora_rank": 256, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_attention_heads": 8,
    "num_key_value_heads": 8, "num_hidden_layers": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0, "torch_dtype": "bfloat16", "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "topk_method": "noaux_tc", "norm_topk_prob": True, "num_nextn_predict_layers": 1,
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                            "weight_block_size": [128, 128]},
}  # fmt: skip


def requests(hardware: Hardware) -> tuple[Request, ...]:
    """Return small commands over the common paths: dense, experts, latent attention with a draft, and a refusal."""
    models = tuple(
        Model(name, {"config.json": json.dumps(config)})
        for name, config in (("dense", _DENSE), ("moe", _MOE), ("latent", _LATENT))
    )
    lines = (
        "--model-path dense",
        "--model-path moe --tp 2 --enable-hierarchical-cache",
        "--model-path latent --tp 2 --speculative-algorithm EAGLE",
        "--model-path dense --tp 3",
        "--model-path dense --no-such-flag",
    )
    return tuple(Request(tuple(line.split()), hardware, models=models) for line in lines)


Check = Callable[[Request, Callable[[Stage], None], int], Outcome]


def warm(check: Check, commands: tuple[Request, ...]) -> tuple[str, ...]:
    """Import what `commands` import late, and return how each ended."""
    ended: list[str] = []
    for request in commands:
        new, verdict = _learn(check, request)
        ended.append(verdict)
        for name in new:
            if name.partition(".")[0] in PACKAGES and name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
    gc.collect()
    gc.freeze()
    return tuple(ended)


def _learn(check: Check, request: Request) -> tuple[list[str], str]:
    """Return the modules that a child had to import for `request`, and how it ended."""
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory(prefix="errata-warm-") as folder:
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                said = _lesson(check, request, Path(folder))
                with os.fdopen(writer, "w") as stream:
                    json.dump(said, stream)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as stream:
            text = stream.read()
        os.waitpid(pid, 0)
    new, verdict = json.loads(text) if text else ([], "died")
    return new, verdict


def _lesson(check: Check, request: Request, folder: Path) -> tuple[list[str], str]:
    before = set(sys.modules)
    os.chdir(folder)
    try:
        outcome = check(place_models(request, folder), lambda stage: None, 0)
        error = outcome.error
        verdict = outcome.verdict + (f": {error.exception}: {error.message[:200]}" if error else "")
    except BaseException as error:
        verdict = f"broken: {type(error).__name__}: {error}"[:300]
    return [name for name, module in sys.modules.items() if name not in before and module is not None], verdict
