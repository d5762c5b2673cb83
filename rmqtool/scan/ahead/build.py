"""Compiles the kernels into a shared library beside this module: `python -m rmqtool.scan.ahead.build`.

The wheel's build and an editable installation run it (`hatch_build.py`); in a checkout it is run again when
a kernel has changed. numba makes LLVM's code of every kernel, with what it calls and its paths for errors.
Here all of it becomes one module, in which only the kernels of `signatures` can be called from outside, so
that LLVM sees every call: what cannot happen falls away, and with it all that needs numba at run time. If
anything of that is left, a kernel could allocate or raise, and nothing is built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import Any

from rmqtool.scan.ahead import target
from rmqtool.scan.ahead.signatures import BUS_ERROR, CRC32, MAPPINGS, SIGNATURES, Array, Signature, flat
from rmqtool.scan.crc import ISAL_SYMBOL

MODULE = "rmqtool.scan.ahead.build"
LIBC = {"bcmp", "memcmp", "memcpy", "memmove", "memset", "mmap", "sigaction"}
"""what compiled code may call besides itself; every process has them"""

LINKERS = "ld", "ld.lld"
LINKING = ("-shared", "-s", "--build-id=none", "-z", "now", "-z", "relro", "-z", "noexecstack")

_BOUND = f"""
@{MAPPINGS} = global i64 0
@{CRC32} = global ptr null
define i32 @{ISAL_SYMBOL}(i32 %start, i64 %address, i64 %length) alwaysinline {{
  %function = load ptr, ptr @{CRC32}
  %value = tail call i32 %function(i32 %start, i64 %address, i64 %length)
  ret i32 %value
}}
"""
"""variables that whoever loads the library sets, and ISA-L's function through one of them"""


def main() -> int:
    """Builds, unless what lies there is right, in a process whose compiler is set to that processor."""
    if not target.supported():
        return _refuse("only for 64-bit Linux on x86")
    if os.environ.get("NUMBA_CPU_NAME") == target.PROCESSOR:
        return build()
    with suppress(ImportError):
        target.usable()
        return 0
    settings = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    settings |= {"NUMBA_CPU_NAME": target.PROCESSOR, "NUMBA_CPU_FEATURES": "", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as place:
        settings["XDG_CACHE_HOME"] = place  # nothing that was compiled before is taken
        return subprocess.run([sys.executable, "-m", MODULE], env=settings, check=False).returncode


def build() -> int:
    """Compiles and links; only then an earlier library is replaced."""
    linker = next(filter(None, map(which, LINKERS)), None)
    if linker is None:
        return _refuse(f"no linker ({' or '.join(LINKERS)})")
    module = whole()
    machine = optimise(module)
    left = needs(module)
    if left:
        return _refuse(f"a kernel may raise or allocate: {', '.join(sorted(left))}")
    target.write(_linked(linker, machine.emit_object(module)))
    return 0


def _refuse(why: str) -> int:
    sys.stderr.write(f"rmqtool: kernels are not compiled ahead: {why}\n")
    return 1


def whole() -> Any:
    """All kernels as one module, the others of its functions not to be called from outside."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(_BOUND)
    module.triple = llvm.get_process_triple()
    names = {MAPPINGS: MAPPINGS, CRC32: CRC32}
    for room, kernels in SIGNATURES.items():
        compiled = import_module(f"rmqtool.scan.kernels.{room}")
        for name, signature in kernels.items():
            add(module, callable_from_c(getattr(compiled, name), signature), name, names)
    add(module, import_module("rmqtool.scan.kernels.faulting").on_bus_error, BUS_ERROR, names)
    hide(module, names)
    return module


def add(module: Any, compiled: Any, name: str, names: dict[str, str]) -> None:
    """Adds a `cfunc` and what it calls. names: numba's name of it → its name in the library."""
    import llvmlite.binding as llvm

    module.link_in(llvm.parse_assembly(compiled.inspect_llvm()))
    names[compiled.native_name] = name


def hide(module: Any, names: dict[str, str]) -> None:
    """Leaves to the outside what has a name there."""
    for one in (*module.functions, *module.global_variables):
        if one.name in names:
            one.name = names[one.name]
            one.linkage = "external"
        elif not one.is_declaration:
            one.linkage = "internal"


def callable_from_c(kernel: Any, signature: Signature) -> Any:
    """A `cfunc` around a kernel: addresses, lengths and numbers, last the place of what it answers."""
    from numba import carray, cfunc, types  # type: ignore[attr-defined]

    taken, kinds, given = [], [], []
    for number, one in enumerate(flat(signature.arguments)):
        taken.append(f"a{number}")
        if isinstance(one, Array):
            lengths = [f"n{number}_{k}" for k in range(one.dimensions)]
            taken += lengths
            kinds += [types.CPointer(getattr(types, one.dtype)), *[types.int64] * one.dimensions]
            given.append(f"carray(a{number}, ({', '.join(lengths)},))")
        else:
            kinds.append(types.int64)
            given.append(f"a{number}")
    rest = iter(given)
    passed = ", ".join(
        f"({', '.join(next(rest) for _ in one)},)" if type(one) is tuple else next(rest)
        for one in signature.arguments
    )
    places = [f"answer[{k}]" for k in range(signature.answers)]
    body = f"{', '.join(places)} = kernel({passed})" if places else f"kernel({passed})"
    scope: dict[str, Any] = {"kernel": kernel, "carray": carray}
    exec(f"def call({', '.join([*taken, 'answer'])}):\n    {body}\n", scope)  # noqa: S102 - of our own table
    return cfunc(types.void(*kinds, types.CPointer(types.int64)))(scope["call"])


def optimise(module: Any) -> Any:
    """Optimises a module; what makes its machine code."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(module.triple).create_target_machine(
        cpu=target.PROCESSOR, opt=3, reloc="pic", codemodel="default"
    )
    module.data_layout = str(machine.target_data)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return machine


def needs(module: Any) -> set[str]:
    """What a module would have to be given: all but what any process has."""
    named = {one.name for one in (*module.functions, *module.global_variables) if one.is_declaration}
    return {name for name in named if not name.startswith("llvm.")} - LIBC


def _linked(linker: str, compiled: bytes) -> bytes:
    """A shared library of one object."""
    with tempfile.TemporaryDirectory() as place:
        source, library = Path(place, "kernels.o"), Path(place, "kernels.so")
        source.write_bytes(compiled)
        subprocess.run([linker, *LINKING, "-o", library, source], check=True)
        return library.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
