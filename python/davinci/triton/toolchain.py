"""The vendor's compilers, which the extra `triton` installs, run as programs.

`triton-ascend` has the front end of Triton and `triton-adapter-opt`, which makes MLIR of upstream
dialects of a kernel; `ascendnpu-ir` has `bishengir-compile`, which plans memory, inserts flags, and
prints what it made. The last step, a closed compiler of machine code, is not needed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from davinci.errors import CompileError, InputError
from davinci.files import temporary_folder
from davinci.triton.peak import LiveBuffer, listed, live_buffers

VERSIONS = {"triton-ascend": "3.2.0", "ascendnpu-ir": "1.2.0"}
"""Distributions that the extra installs, and the versions whose text is understood."""

INSTALL = "pip install 'davinci-mlir[triton]'"
TARGET = "Ascend910B1"
"""The chip that the machine file describes."""

ADAPTER_PASSES = (
    "--discrete-mask-access-conversion=compile-on-910-95=False force-simt-template=False",
    "--triton-to-annotation",
    "--triton-to-unstructure=compile-on-910-95=False force-simt-template=False",
    "--triton-to-hivm",
    "--triton-to-hfusion",
    "--triton-to-llvm",
    "--bubble-up-operation",
    "--triton-to-linalg=global-kernel=false named-ops=True enable-nd2nz-on-vector=False "
    "enable-select-analysis=False compile-on-910-95=False",
    "--mlir-print-debuginfo",
)
"""Passes from Triton's dialect to upstream ones, as triton-ascend runs them for the 910B."""

COMPILE = (
    f"--target={TARGET}",
    "--enable-hfusion-compile=true",
    "--enable-hivm-compile=true",
    "--enable-triton-kernel-compile=true",
    "--enable-debug-info=true",
    "--mlir-print-ir-before=convert-hivm-to-std",
    "--mlir-print-ir-module-scope",
    "--mlir-print-op-generic",
    "--mlir-print-debuginfo",
    "--mlir-disable-threading",
)
"""What makes `bishengir-compile` print a kernel before it goes to the closed compiler."""

OPTIONS = {
    "multibuffer": "enable-auto-multi-buffer",
    "enable_auto_bind_sub_block": "enable-auto-bind-sub-block",
    "enable_hivm_auto_cv_balance": "enable-hivm-auto-cv-balance",
    "sync_solver": "enable-hivm-graph-sync-solver",
    "unit_flag": "enable-hivm-unit-flag-sync",
    "inject_barrier_all": "enable-hivm-inject-barrier-all-sync",
    "inject_block_all": "enable-hivm-inject-block-all-sync",
    "limit_auto_multi_buffer_only_for_local_buffer": (
        "limit-auto-multi-buffer-only-for-local-buffer"
    ),
    "limit_auto_multi_buffer_of_local_buffer": "limit-auto-multi-buffer-of-local-buffer",
    "set_workspace_multibuffer": "set-workspace-multibuffer",
    "tile_mix_vector_loop": "tile-mix-vector-loop",
    "tile_mix_cube_loop": "tile-mix-cube-loop",
    "disable_auto_inject_block_sync": "disable-auto-inject-block-sync",
}
"""Options of a launch that triton-ascend hands to `bishengir-compile`, and their names there."""

COMPILER = "compiler"
"""The option of a launch that says who compiles a kernel."""

COMPILERS = VENDOR, OURS = ("vendor", "ours")
"""Its values: the vendor's compilers, or our passes from what the vendor's adapter makes."""

DEFAULTS: Mapping[str, object] = {"multibuffer": True, "enable_auto_bind_sub_block": True}

MOST_SECONDS = 300
DUMP = "IR Dump Before"
MIX_MODE = re.compile(r', mix_mode\s*=\s*"[^"]*"')
"""An attribute that triton-ascend takes away before it hands the text on."""

ERROR = re.compile(r"error: (.*)")
OVERFLOW = re.compile(r"(\w+) overflow, requires (\d+) bits while (\d+) bits available")


BEFORE_ADDRESSES = "--mlir-print-ir-before=hivm-plan-memory"
"""What makes the compiler print the buffers of a kernel, also of one that they do not fit in."""

RETRY = re.compile(r"\[NOTE\] \w+ overflow detected; automatically set enable-([\w-]+) to false")
"""A line about an attempt of the compiler's own, without something that takes room."""


class NoRoom(CompileError):
    """The buffers of a kernel do not fit a memory.

    Attributes:
        needed, room: bytes.
        buffers: that are live where most bytes are.
    """

    needed = room = 0
    buffers: Sequence[LiveBuffer] = ()

    def with_hint(self, hint: str) -> NoRoom:
        error = NoRoom(
            self.message, where=self.where, found=self.found, expected=self.expected, hint=hint
        )
        error.needed, error.room, error.buffers = self.needed, self.room, self.buffers
        return error


@dataclass(frozen=True)
class Tools:
    """Paths of the programs."""

    adapter: Path
    compiler: Path
    optimizer: Path


def tools() -> Tools:
    """The installed programs.

    Raises:
        InputError: the extra is not installed, or in another version.
    """
    for name, version in VERSIONS.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise InputError(
                "Triton kernels need the vendor's open compilers", found=f"no {name}", hint=INSTALL
            ) from None
        if found != version:
            raise InputError(
                f"another version of {name}", found=found, expected=version, hint=INSTALL
            )
    adapter = _folder("triton") / "backends" / "ascend" / "triton-adapter-opt"
    programs = _folder("ascendnpuir") / "bin"
    found_tools = Tools(adapter, programs / "bishengir-compile", programs / "bishengir-opt")
    for path in (adapter, found_tools.compiler, found_tools.optimizer):
        if not path.is_file():
            raise InputError("a program is missing", where=str(path), hint=INSTALL)
    return found_tools


def _folder(package: str) -> Path:
    """Where a package is, without importing it."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise InputError("a package is missing", found=package, hint=INSTALL)
    return Path(places[0])


def run(command: Sequence[str], what: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end.

    Raises:
        CompileError: it cannot be run, was killed, or takes minutes.
    """
    folder = str(Path(command[0]).parent)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MOST_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"{what} takes more than {MOST_SECONDS} seconds", where=command[0]
        ) from None
    except OSError as error:
        raise CompileError(f"{what} cannot be run: {error.strerror}", where=command[0]) from None
    if done.returncode < 0:
        raise CompileError(f"{what} died", where=command[0], found=f"signal {-done.returncode}")
    return done


@dataclass(frozen=True)
class VendorTexts:
    """The texts into which the vendor's compilers turn a kernel.

    Attributes:
        ttadapter: text of upstream dialects, as `triton-adapter-opt` prints it.
        hivm: text of AscendNPU-IR, with addresses and flags.
    """

    ttadapter: str
    hivm: str


def to_linalg(ttir: str) -> str:
    """Has the vendor's adapter make text of upstream dialects of a kernel.

    Args:
        ttir: text in Triton's dialect, with locations.

    Raises:
        InputError: the extra is not installed.
        CompileError: the adapter refuses the kernel, or fails.
    """
    found = tools()
    with temporary_folder() as folder:
        source, linalg = Path(folder) / "kernel.ttir.mlir", Path(folder) / "kernel.ttadapter.mlir"
        source.write_text(ttir)
        command = [str(found.adapter), str(source), *ADAPTER_PASSES, "-o", str(linalg)]
        done = run(command, "triton-adapter-opt")
        if done.returncode or not linalg.is_file():
            raise refusal("triton-adapter-opt", done.stderr)
        return linalg.read_text()


def to_hivm(ttir: str, options: Mapping[str, object] | None = None) -> VendorTexts:
    """Has the vendor's compilers compile a kernel.

    Args:
        ttir: text in Triton's dialect, with locations.
        options: of the launch, see `OPTIONS`.

    Raises:
        InputError: the extra is not installed.
        CompileError: one of the programs refuses the kernel, or fails.
    """
    found, adapted = tools(), to_linalg(ttir)
    with temporary_folder() as folder:
        linalg = Path(folder) / "kernel.ttadapter.mlir"
        linalg.write_text(MIX_MODE.sub("", adapted))
        chosen = {**DEFAULTS, **(options or {})}
        flags = [
            f"--{OPTIONS[name]}={spelt(value)}"
            for name, value in chosen.items()
            if name in OPTIONS and value is not None
        ]
        target = str(Path(folder) / "kernel.o")
        command = [str(found.compiler), str(linalg), *COMPILE, *flags, "-o", target]
        done = run(command, "bishengir-compile")
        if overflow := OVERFLOW.search(done.stderr):
            shown = run([*command, BEFORE_ADDRESSES], "bishengir-compile")
            raise no_room(overflow, done.stderr, shown.stderr)
    if DUMP not in done.stderr:
        raise refusal("bishengir-compile", done.stderr)
    return VendorTexts(adapted, done.stderr)


def verify(text: str) -> None:
    """Has `bishengir-opt` read text of AscendNPU-IR and verify its operations.

    Raises:
        InputError: the extra is not installed.
        CompileError: it refuses the text.
    """
    found = tools()
    with temporary_folder() as folder:
        path = Path(folder) / "kernel.mlir"
        path.write_text(text)
        done = run([str(found.optimizer), str(path), "-o", os.devnull], "bishengir-opt")
    if done.returncode:
        raise refusal("bishengir-opt", done.stderr)


def spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refusal(program: str, log: str) -> CompileError:
    """The error about a kernel that a program does not compile: its first error, with its place."""
    found = ERROR.search(log)
    message = found.group(1) if found else (log.strip().splitlines() or ["no message"])[-1]
    place = place_of(log, found.start() if found else 0)
    return CompileError(f"{program} refuses the kernel: {message}", where=place)


def no_room(overflow: re.Match[str], log: str, shown: str) -> NoRoom:
    """The error about a kernel whose buffers do not fit: those that are live at the peak.

    Args:
        log: of the compiler, in which `overflow` is.
        shown: its log with the kernel before addresses are planned.
    """
    space, needed, room = overflow.group(1), int(overflow.group(2)), int(overflow.group(3))
    buffers = live_buffers(shown, space)
    tried = [name.replace("-", " ") for name in dict.fromkeys(RETRY.findall(log))]
    also = f", not even without {' and '.join(tried)}" if tried else ""
    error = NoRoom(
        f"bishengir-compile finds no room for the kernel's buffers in {space.upper()}{also}",
        where=place_of(log, overflow.start()),
        found=f"{needed // 8:,} bytes; live at the peak: {', '.join(listed(buffers))}",
        expected=f"at most {room // 8:,}",
    )
    error.needed, error.room, error.buffers = needed // 8, room // 8, buffers
    return error


def place_of(log: str, index: int) -> str:
    """The file and line that the log's line at `index` begins with, "" if it has none."""
    line = log[log.rfind("\n", 0, index) + 1 : log.find("\n", index)]
    matched = re.search(r'"?([^"\s(]+)"?:(\d+):(\d+)', line)
    return ":".join(matched.groups()) if matched else ""
