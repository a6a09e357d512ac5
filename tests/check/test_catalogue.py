"""The catalogue of models: its files, the names it answers to, and the folding of long lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.check.catalogue import (
    MODELS,
    Catalogue,
    Json,
    Model,
    Near,
    catalogue,
    fold,
    fold_names,
    load,
    read,
    unfold,
    unfold_name,
)
from app.errors import Broken

CONFIG: dict[str, Json] = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
ENTRY = {
    "hub_id": "acme/Model-1B",
    "role": "target",
    "source": "here",
    "provenance": "published file",
    "config": CONFIG,
}


def found(name: str) -> Model:
    model = catalogue().find(name)
    assert isinstance(model, Model), model
    return model


def written(folder: Path, **changes: object) -> Path:
    path = folder / "acme--Model-1B.json"
    path.write_text(json.dumps({**ENTRY, **changes}))
    return path


def test_it_holds_150_targets_and_the_draft_heads() -> None:
    roles = [model.role for model in catalogue()]

    assert roles.count("target") >= 150
    assert roles.count("draft") >= 40


def test_every_family_of_pools_is_there() -> None:
    architectures = {model.architecture for model in catalogue()}

    assert architectures >= {
        "LlamaForCausalLM", "Qwen3ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM",
        "DeepseekV4ForCausalLM",
        "GptOssForCausalLM", "Llama4ForConditionalGeneration", "Qwen3NextForCausalLM", "KimiLinearForCausalLM",
        "NemotronHForCausalLM", "FalconH1ForCausalLM", "MiniMaxM3SparseForConditionalGeneration",
        "Qwen3VLForConditionalGeneration", "Gemma4ForConditionalGeneration", "Qwen3MoeForCausalLM",
    }  # fmt: skip


def test_every_entry_says_where_it_was_read() -> None:
    assert [model.hub_id for model in catalogue() if len(model.source) < 10 or not model.provenance] == []


def test_the_folder_stays_small() -> None:
    assert sum(path.stat().st_size for path in MODELS.iterdir()) < 3_000_000


def test_a_hub_id_is_found_whatever_its_case() -> None:
    assert found("qwen/qwen3-8b").hub_id == "Qwen/Qwen3-8B"
    assert found("Qwen/Qwen3-8B").caveats() == ()


@pytest.mark.parametrize(
    "path",
    [
        "/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c",
        "/data/Qwen/Qwen3-8B/",
        "/models/Qwen3-8B",
        "./qwen3-8b",
        "Qwen3-8B",
    ],
)
def test_a_folder_named_as_a_model_is_taken_for_it_and_says_so(path: str) -> None:
    model = found(path)

    assert model.hub_id == "Qwen/Qwen3-8B"
    assert "its files were not seen" in model.caveats()[0]


@pytest.mark.parametrize(
    "name", ["someone-else/Qwen3-8B", "/models/Qwen3-8B-finetuned", "Qwen/Qwen3-9B", "", "/", ".."]
)
def test_another_name_is_never_taken_for_a_model(name: str) -> None:
    assert isinstance(catalogue().find(name), Near)


def test_an_unknown_name_gives_the_names_like_it_best_first() -> None:
    near = catalogue().find("Qwen/Qwen3-8BB")

    assert isinstance(near, Near)
    assert near.names[0] == "Qwen/Qwen3-8B"
    assert len(near.names) <= 5
    assert "Paste its config.json" in near.reason


def test_nothing_looks_like_nonsense() -> None:
    assert catalogue().near("zzzzqqqq/000000") == ()


def test_a_folder_name_that_two_models_have_is_not_decided() -> None:
    two = Catalogue([Model(f"{owner}/Same", "target", "s", "p", CONFIG) for owner in ("a", "b")])

    assert isinstance(two.find("/models/Same"), Near)


def test_an_alias_carries_its_evidence(tmp_path: Path) -> None:
    written(tmp_path, same_as=[{"hub_id": "acme/Model-1B-Chat", "evidence": "both files are equal"}])

    model = load(tmp_path).find("acme/model-1b-chat")

    assert isinstance(model, Model)
    assert model.hub_id == "acme/Model-1B"
    assert "both files are equal" in model.caveats()[0]


def test_two_models_cannot_answer_to_one_name(tmp_path: Path) -> None:
    written(tmp_path, same_as=[{"hub_id": "ACME/model-1b", "evidence": "none"}])

    with pytest.raises(Broken, match="two models answer"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"colour": "red"}, "no such field: colour"),
        ({"hub_id": "acme/Model-2B"}, "does not fit the file's name"),
        ({"role": "helper"}, "neither 'target' nor 'draft'"),
        ({"config": {"model_type": "llama"}}, "config needs"),
        ({"source": ""}, "source is no text"),
        ({"incomplete": "x"}, "incomplete is no list"),
        ({"same_as": [{"hub_id": "acme/Other"}]}, "hub_id and evidence"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    with pytest.raises(Broken, match=says):
        read(written(tmp_path, **changes))


def test_a_trial_of_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "trials.tsv").write_text("acme/Gone\t0.5.18\th100-80gb\t1\t\tpass\t\t\n")

    with pytest.raises(Broken, match="acme/Gone"):
        load(tmp_path)


def test_an_incomplete_configuration_says_which_fields_were_not_found() -> None:
    assert "rope_theta" in " ".join(found("HuggingFaceTB/SmolLM3-3B").caveats())


def test_a_class_of_the_repository_is_said_to_be_stood_in_for() -> None:
    assert found("XiaomiMiMo/MiMo-V2-Flash").stand_in
    assert "generic one" in " ".join(found("XiaomiMiMo/MiMo-V2-Flash").caveats())


def test_the_stand_in_is_named_by_the_configuration_as_a_repository_names_its_own() -> None:
    files = found("XiaomiMiMo/MiMo-V2-Flash").files()

    assert json.loads(files["config.json"])["auto_map"] == {"AutoConfig": "configuration_stand_in.StandInConfig"}
    compile(files["configuration_stand_in.py"], "configuration_stand_in.py", "exec")
    assert 'model_type = "mimo_v2_flash"' in files["configuration_stand_in.py"]


def test_the_files_are_those_of_a_model_folder() -> None:
    files = found("nvidia/MiniMax-M3-NVFP4").files()

    assert set(files) == {"config.json", "hf_quant_config.json", "configuration_stand_in.py"}
    layers = json.loads(files["hf_quant_config.json"])["quantization"]["quantized_layers"]
    assert len(layers) > 500
    assert layers["language_model.model.layers.0.mlp.down_proj"] == {"quant_algo": "MXFP8"}


def test_folding_shows_ranges() -> None:
    names = [f"layers.{i}.experts.{j}.w" for i in (0, 1, 2, 5) for j in range(8)] + ["lm_head"]

    assert fold_names(names) == ["layers.[0-2,5].experts.[0-7].w", "lm_head"]


NAMES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b.c", ""]), st.integers(0, 12), st.sampled_from([".x", ""]), st.integers(0, 3)
    ).map(lambda parts: f"{parts[0]}{parts[1]}{parts[2]}.{parts[3]}"),
    unique=True,
    max_size=60,
)


@given(NAMES)
def test_folding_loses_and_adds_nothing(names: list[str]) -> None:
    unfolded = [name for pattern in fold_names(names) for name in unfold_name(pattern)]

    assert sorted(unfolded) == sorted(names)


@given(NAMES, NAMES)
def test_a_folded_value_unfolds_to_itself(names: list[str], keys: list[str]) -> None:
    value = {
        "names": names,
        "keys": {key: {"bits": len(key) % 2} for key in keys},
        "other": [1, [2.5, None], {"a": True}],
    }

    back = unfold(fold(value))  # type: ignore[arg-type]

    assert isinstance(back, dict)
    assert sorted(back.pop("names")) == sorted(value.pop("names"))  # type: ignore[type-var]
    assert back == value


@pytest.mark.parametrize("name", ["a.[1]", "a.01.b", "$names"])
def test_names_that_a_pattern_could_not_spell_are_kept_as_they_are(name: str) -> None:
    names = [name, *(f"a.{i}.c" for i in range(2, 40))]

    assert fold(names) == names  # type: ignore[arg-type]
