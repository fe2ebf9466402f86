"""A model in a folder, run in this process: a graph for ONNX Runtime, with a tokenizer of Hugging Face's
`tokenizers`. It needs no network and no service, and fetches nothing.

The folder has the layout of model repositories: `tokenizer.json`, and `model.onnx` there or in `onnx/`. Files
of Sentence Transformers beside them say how vectors are made: from which tokens (`1_Pooling`), how many are
read, and which text precedes a question. Loading takes about a second; the first text or question waits for
it. Vectors are stored under the folder's name and a hash of the model, so a replaced model counts as another
one.
"""

from __future__ import annotations

import hashlib
import json
import os
from threading import Lock
from typing import NamedTuple

from fastrpc import UsageError

from .._store import vectors
from .endpoint import ModelUnavailable, TextRefused, check_libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

OPTION = "--embeddings-folder"
LIBRARIES = {"numpy": "NumPy", "onnxruntime": "ONNX Runtime", "tokenizers": "tokenizers"}
GRAPHS = "model.onnx", os.path.join("onnx", "model.onnx")
TOKENIZER = "tokenizer.json"
TOKENS, MOST_TOKENS = 512, 2_048
"""Tokens of a text that are read if the folder does not say how many, and at most."""
TOKENS_AT_ONCE = 4_096
"""Tokens in one run of the graph, with the padding of shorter texts: its memory grows with that."""
THREADS = 2
"""Threads of a run: a model that reads texts in the background leaves the other processors to questions."""


class FolderModel:
    """The model of a folder, loaded at its first use."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = Lock()
        self._loaded: _Loaded | None = None

    def name(self) -> str:
        """Return the name under which its vectors are stored. Raises ModelUnavailable."""
        return self._load().name

    def words(self, reason: str) -> str:
        return f"the model in {OPTION}: {reason}"

    def check(self) -> None:
        """Raise UsageError if the folder has no model, or a library is missing."""
        for name in (TOKENIZER, self._graph()):
            if not os.path.isfile(os.path.join(self.folder, name)):
                raise UsageError(
                    f"{OPTION}: expected a folder with model.onnx and {TOKENIZER}, there is no {name}"
                )
        check_libraries(OPTION, "local-embeddings", LIBRARIES)

    def vectors(self, texts: Sequence[str], *, is_question: bool) -> list[Any]:
        """Return a vector of length 1 for each text. Raises ModelUnavailable."""
        loaded = self._load()
        before = loaded.before_questions if is_question else loaded.before_texts
        found = loaded.run([loaded.tokens(before + each) for each in texts])
        if any(each is None for each in found):
            raise TextRefused(self.words("expected finite numbers, not all of them 0"))
        return found

    def _graph(self) -> str:
        return next((each for each in GRAPHS if os.path.isfile(os.path.join(self.folder, each))), GRAPHS[0])

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = _loaded(self.folder, os.path.join(self.folder, self._graph()))
                except OSError as error:
                    raise ModelUnavailable(self.words(f"it cannot be read: {error.strerror}")) from None
                except Exception as error:  # neither library documents its exceptions
                    raise ModelUnavailable(self.words(f"it cannot be loaded: {_first_line(error)}")) from None
            return self._loaded


class _Loaded(NamedTuple):
    """What a folder's model needs while it runs."""

    name: str
    session: Any
    tokenizer: Any
    inputs: tuple[str, ...]
    by_first_token: bool
    before_questions: str
    before_texts: str

    def tokens(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer.encode(text).ids
        return found

    def run(self, texts: Sequence[list[int]]) -> list[Any]:
        """Return the vector of each text, None for a text of which the graph makes none."""
        found: list[Any] = [None] * len(texts)
        for numbers in _lots([len(each) for each in texts]):
            try:
                made = self._vectors([texts[number] for number in numbers])
            except Exception as error:  # the library's exceptions have no common base
                raise TextRefused(f"the model in {OPTION}: it fails: {_first_line(error)}") from None
            for number, vector in zip(numbers, made, strict=True):
                found[number] = vector
        return found

    def _vectors(self, texts: Sequence[list[int]]) -> Iterator[Any]:
        import numpy

        ids = numpy.zeros((len(texts), max(map(len, texts))), "i8")
        mask = numpy.zeros_like(ids)
        for row, tokens in enumerate(texts):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        (made,) = self.session.run(
            [self.session.get_outputs()[0].name], {name: given[name] for name in self.inputs}
        )
        if made.ndim == 3:
            made = made[:, 0] if self.by_first_token else (made * mask[:, :, None]).sum(1)
        yield from map(vectors.unit, made.astype("f8"))


def _loaded(folder: str, graph: str) -> _Loaded:
    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(THREADS, os.cpu_count() or 1)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    inputs = tuple(each.name for each in session.get_inputs())
    if unknown := set(inputs) - {"input_ids", "attention_mask", "token_type_ids"}:
        raise ValueError(
            f"expected the inputs input_ids and attention_mask, got {', '.join(sorted(unknown))}"
        )
    if (rank := len(session.get_outputs()[0].shape)) not in (2, 3):
        raise ValueError(f"expected an output of a vector for each text or token, got {rank} dimensions")
    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, TOKENIZER))
    given = tokenizer.truncation or {}
    limit = _said(folder, "sentence_bert_config.json").get("max_seq_length") or given.get("max_length")
    tokenizer.enable_truncation(min(int(limit or TOKENS), MOST_TOKENS))
    tokenizer.no_padding()
    prompts = _said(folder, "config_sentence_transformers.json").get("prompts") or {}
    return _Loaded(
        f"{os.path.basename(os.path.abspath(folder))}@{_hash_of(graph, os.path.join(folder, TOKENIZER))}",
        session,
        tokenizer,
        inputs,
        bool(_said(folder, os.path.join("1_Pooling", "config.json")).get("pooling_mode_cls_token")),
        str(prompts.get("query") or ""),
        str(prompts.get("document") or prompts.get("passage") or ""),
    )


def _said(folder: str, name: str) -> dict[str, Any]:
    """Return the JSON of a file of the folder, nothing if it is missing."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{name}: expected a JSON object")
    return found


def _hash_of(*paths: str) -> str:
    whole = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                whole.update(piece)
    return whole.hexdigest()[:12]


def _lots(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield which texts are run together: texts of similar length, without those that have no token."""
    lot: list[int] = []
    for number in sorted((at for at, length in enumerate(lengths) if length), key=lambda at: lengths[at]):
        if lot and (len(lot) + 1) * lengths[number] > TOKENS_AT_ONCE:
            yield lot
            lot = []
        lot.append(number)
    if lot:
        yield lot


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200].rstrip(".") or type(error).__name__


_models: dict[str, FolderModel] = {}


def of_folder(folder: str) -> FolderModel:
    """Return the model of a folder, the same object for all callers."""
    return _models.setdefault(folder, FolderModel(folder))
