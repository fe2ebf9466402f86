"""A folder with a small model as `--embeddings-folder` takes it: a table with a vector for each word, the
same for synonyms, as `model_server` has them; its graph is written here.

    folder_with(tmp_path / "model")                       # a vector for each token, whose mean is a text's
    folder_with(tmp_path / "model", pooled=True)          # the graph itself makes the mean
    folder_with(tmp_path / "model", turned=True)          # a model of the same size that means other things
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.model_server import CONCEPTS

OTHERS = ("[UNK]", "[CLS]", "query", "tea", "garage", "blue", "club")
WORDS = (*OTHERS, *sorted(set().union(*CONCEPTS)))
DIMENSIONS = len(OTHERS) + len(CONCEPTS)


def vectors(*, turned: bool = False) -> Any:
    """The table: a row for each word."""
    import numpy

    places = []
    for at, word in enumerate(WORDS):
        concept = next((number for number, each in enumerate(CONCEPTS) if word in each), None)
        if concept is not None and turned:
            concept = (concept + 1) % len(CONCEPTS)
        places.append(at if concept is None else len(OTHERS) + concept)
    table = numpy.eye(DIMENSIONS, dtype="f4")[places]
    table[0] = 0.0
    return table


def folder_with(
    folder: Path,
    *,
    pooled: bool = False,
    turned: bool = False,
    starts: bool = True,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    files: Mapping[str, object] | None = None,
) -> Path:
    """Make the folder, with these files of Sentence Transformers; return it. `starts`: each text begins with
    a separate token, so none is without."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if starts:
        first = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
        made.post_processor = first
    made.save(str(folder / "tokenizer.json"))
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["of_tokens"])]
    output, shape = "of_tokens", ["texts", "tokens", DIMENSIONS]
    if pooled:
        nodes.append(helper.make_node("ReduceMean", ["of_tokens"], ["of_texts"], axes=[1], keepdims=0))
        output, shape = "of_texts", ["texts", DIMENSIONS]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, types.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, types.FLOAT, shape)],
        [onnx.numpy_helper.from_array(vectors(turned=turned), "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    for name, value in (files or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder
