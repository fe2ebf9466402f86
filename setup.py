"""Builds what is compiled: the Cython modules of ``fastrpc/_core`` and the process reaper.

Everything else is in ``pyproject.toml``. Four things happen here that it cannot say: simdjson's two
files are found beside the installed ``pysimdjson`` (nothing is vendored), ``tools/`` is packaged as
``fastrpc.tools``, ``reaper.c`` becomes a small program rather than a module, and the links of README.md
are made absolute for PyPI's page. Environment:
``FASTRPC_DEBUG=1`` builds without optimisation, ``FASTRPC_SANITIZE=1`` with ASan and UBSan
(``tests/fuzz/sanitized.py`` does so in a folder of its own, and runs Python on it);
``FASTRPC_REAPER_CC`` is another compiler for the reaper, since not every C library can be linked statically.
"""

import glob
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import warnings

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

if sys.platform == "win32":
    sys.exit("setup.py: fastrpc runs on Linux and macOS; on Windows, use it inside WSL")

# After every editable install whose packages do not all lie in one folder, as `fastrpc.tools` does not,
# setuptools warns of folders that are named like the package. Here that folder is the package.
warnings.filterwarnings("ignore", message="Editable installation")

DEBUG = os.environ.get("FASTRPC_DEBUG") == "1"
SANITIZE = os.environ.get("FASTRPC_SANITIZE") == "1"
CORE = "fastrpc/_core"
HEADERS = sorted(glob.glob(f"{CORE}/*.h"))

compile_flags = ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]
link_flags = []
if SANITIZE:  # what UBSan finds ends the process, too
    link_flags = ["-fsanitize=address,undefined"]
    compile_flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", *link_flags]
cxx_flags = [*compile_flags, "-std=c++17"]


def simdjson_folder() -> str:
    """Return the folder that holds ``simdjson.h`` and ``simdjson.cpp``: pysimdjson's package."""
    spec = importlib.util.find_spec("simdjson")
    if spec is None or spec.origin is None:
        sys.exit("setup.py: pysimdjson is needed to build fastrpc (it brings simdjson's sources)")
    folder = os.path.dirname(spec.origin)
    for name in ("simdjson.h", "simdjson.cpp"):
        if not os.path.exists(os.path.join(folder, name)):
            sys.exit(f"setup.py: {name} is missing in {folder}; install pysimdjson 7.0.2 or newer")
    return folder


SIMDJSON = simdjson_folder()


def module(name: str) -> Extension:
    return Extension(
        f"fastrpc._core.{name}",
        [f"{CORE}/{name}.pyx"],
        include_dirs=[CORE],
        depends=HEADERS,
        extra_compile_args=compile_flags,
        extra_link_args=link_flags,
    )


extensions = [
    module("framer"),
    Extension(
        "fastrpc._core.message",
        [f"{CORE}/message.pyx"],
        include_dirs=[SIMDJSON, CORE],
        depends=HEADERS,
        language="c++",
        extra_compile_args=cxx_flags,
        extra_link_args=link_flags,
    ),
    module("encoder"),
    module("convert"),
    module("value_types"),
    module("redaction"),
    module("context"),
    module("plan"),
    module("call_info"),
    module("recorder"),
    module("rate_limiter"),
    module("budget_table"),
    module("call_gate"),
    module("audit_lines"),
    module("connection"),
    module("http_body"),
    module("access_buffer"),
    module("stream"),
    module("call_result"),
    module("client_request"),
    module("call_writer"),
    module("client_stream"),
    module("tool_call"),
    module("forwarding"),
    module("signal_pipe"),
    module("task"),
    module("content_blocks"),
    module("pending"),
]


class BuildCore(build_ext):
    """Builds the extensions, simdjson once for all of them, and the reaper beside them."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()  # simdjson takes as long as all the others

    def run(self) -> None:
        super().run()
        folder = CORE if self.inplace else os.path.join(self.build_lib, CORE)
        self.mkpath(folder)
        self.build_reaper(os.path.join(folder, "reaper"))

    def build_extension(self, extension: Extension) -> None:
        if extension.language == "c++":
            extension.extra_objects = [self.simdjson_object()]
        super().build_extension(extension)

    def simdjson_object(self) -> str:
        """Compile simdjson, unless it was: an edit of the parser's module must not cost it again."""
        source = os.path.join(SIMDJSON, "simdjson.cpp")
        target = os.path.join(self.build_temp, "simdjson.o")
        if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
            (compiled,) = self.compiler.compile(
                [source], output_dir=self.build_temp, extra_postargs=cxx_flags
            )
            os.replace(compiled, target)
        return target

    def build_reaper(self, target: str) -> None:
        source = f"{CORE}/reaper.c"
        written = max(map(os.path.getmtime, [source, f"{CORE}/descendants.h"]))
        if os.path.exists(target) and os.path.getmtime(target) > written:
            return
        flags = ["-O2", "-g0", "-Wall", "-Wextra"]
        if compiler := shlex.split(os.environ.get("FASTRPC_REAPER_CC", "")):
            subprocess.run([*compiler, *flags, "-static", "-s", source, "-o", target], check=True)
            return
        objects = self.compiler.compile([source], output_dir=self.build_temp, extra_preargs=flags)
        folder, name = os.path.split(target)
        try:  # a static program starts in half the time of a dynamic one
            self.compiler.link_executable(objects, name, output_dir=folder, extra_postargs=["-static", "-s"])
        except Exception:
            self.compiler.link_executable(objects, name, output_dir=folder, extra_postargs=["-s"])

    def get_outputs(self) -> list[str]:
        outputs: list[str] = super().get_outputs()
        folder = CORE if self.inplace else os.path.join(self.build_lib, CORE)
        return [*outputs, os.path.join(folder, "reaper")]


def long_description() -> str:
    """Return README.md with its relative links made absolute: PyPI has no files beside the text.

    They lead to the tag of this version, so that an old release's page does not show newer documents.
    """
    with open("pyproject.toml", encoding="utf-8") as file:  # tomllib is newer than CPython 3.10
        project = file.read()
    repository = re.search(r'^Repository = "https://github\.com/(.+)"$', project, re.MULTILINE)[1]
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)[1]
    with open("README.md", encoding="utf-8") as file:
        readme = file.read()
    pictures = f"https://raw.githubusercontent.com/{repository}/v{version}/"
    pages = f"https://github.com/{repository}/blob/v{version}/"
    readme = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\g<1>{pictures}", readme)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)", lambda found: found[1] + pages, readme)


packages = [
    *find_packages(include=["fastrpc", "fastrpc.*"]),
    "fastrpc.tools",
    *(f"fastrpc.tools.{name}" for name in find_packages("tools")),
]

setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    packages=packages,
    scripts=["fastrpc/cli/fastrpc", "fastrpc/cli/fastrpc-mcp"],
    package_dir={"fastrpc.tools": "tools"},
    package_data={
        "fastrpc": ["py.typed", "_core/*.pyi"],
        "fastrpc.dashboard": ["templates/*.*", "static/*", "texts/*/*.json"],
        "fastrpc.tools.agent": ["_built_in_skills/*/SKILL.md"],
        "fastrpc.tools.contracts": [
            "programs.lock.json",
            "skills/*/SKILL.md",
            "_embedded/*.js",
            "_embedded/forge_std/*.sol",
        ],
    },
    ext_modules=cythonize(
        extensions,
        build_dir="build/cython",
        annotate=False,
        compiler_directives={
            "language_level": 3,
            "auto_pickle": False,  # none of what is compiled is pickled: two methods less in each class
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "freethreading_compatible": False,
        },
    ),
    cmdclass={"build_ext": BuildCore},
)
