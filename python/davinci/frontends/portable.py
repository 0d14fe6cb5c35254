"""MLIR bytecode, and StableHLO's portable artifacts (VHLO), which are bytecode of one producer.

Damaged bytecode may abort the process that reads it. So `read` lets a process of its own,
`python -m davinci.frontends.portable`, read it and write it anew, as the bytecode of this version.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from davinci.bytecode import MAGIC, varint
from davinci.diagnostics import first_diagnostic
from davinci.errors import InputError
from davinci.mlir import MLIRError, ir, make_context, stablehlo

PRODUCER = b"StableHLO_v"
"""What the producer of a portable artifact begins with; its version follows."""

ERROR = "error: "
"""What MLIR writes before the reason when it rejects an artifact."""


def read(data: bytes, context: ir.Context, where: str) -> ir.Module:
    """Returns the `ir.Module` of bytecode or of a portable artifact.

    Raises:
        InputError: `data` is damaged, or of a newer version of StableHLO.
    """
    command = [sys.executable, "-m", "davinci.frontends.portable"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode == 0:
        return ir.Module.parse(done.stdout, context)
    lines = done.stderr.decode(errors="replace").splitlines()
    reasons = [line.partition(ERROR)[2] for line in lines if ERROR in line]
    version = producer(data)
    raise InputError(
        f"cannot be read as {'a portable artifact' if is_artifact(data) else 'MLIR bytecode'}: "
        f"{reasons[0] if reasons else 'the reader ended without a reason'}",
        where=where,
        found=f"{len(data)} bytes, written by {version!r}",
        expected=f"a whole file, of StableHLO {stablehlo.get_current_version()} or older",
    )


def is_bytecode(data: bytes) -> bool:
    return data.startswith(MAGIC)


def is_bytecode_file(path: Path) -> bool:
    """Whether `path` is a file that begins as bytecode does."""
    try:
        with path.open("rb") as file:
            return is_bytecode(file.read(len(MAGIC)))
    except OSError:
        return False


def is_artifact(data: bytes) -> bool:
    return producer(data).encode().startswith(PRODUCER)


def producer(data: bytes) -> str:
    """The name in the header of bytecode: magic number, version, and this text up to a zero."""
    view = memoryview(data[:256] + bytes(16))
    _, position = varint(view, len(MAGIC))
    return bytes(view[position:]).partition(b"\0")[0].decode(errors="replace")


def rewrite(data: bytes) -> bytes:
    """The module in `data` as bytecode of this version; may abort."""
    context = make_context()
    if is_artifact(data):
        module = stablehlo.deserialize_portable_artifact(context, data)
    else:
        module = ir.Module.parse(data, context)
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def main() -> int:
    """Rewrites standard input to standard output; returns the exit status."""
    try:
        rewritten = rewrite(sys.stdin.buffer.read())
    except MLIRError as error:
        print(f"{ERROR}{first_diagnostic(error)}", file=sys.stderr)
        return 1
    except ValueError:  # MLIR has written the reason
        return 1
    sys.stdout.buffer.write(rewritten)
    return 0


if __name__ == "__main__":
    sys.exit(main())
