"""relaylang: the toolchain of the Relay text language.

    import relaylang as relay

    mod = relay.parse("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    relay.transform.InferType()(mod)
    print(relay.astext(mod))
    relay.create_executor("debug", mod).evaluate()(x)

The names are those of TVM's `tvm.relay`. They are found when they are first used, so that `import relaylang` costs
next to nothing and loads no backend.
"""

from __future__ import annotations

from relaylang._start import begin

begin()  # before the imports: they take most of the time of a short call

import importlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import typing as _typing  # noqa: E402

from relaylang._names import ALIASES, FOLDERS, NAMES, OPERATOR_MODULES, OPERATORS, PACKAGES, SERVICES, is_module, operators  # noqa: E402
from relaylang.aliases import FINDER, Aliases  # noqa: E402
from relaylang.services import provide  # noqa: E402

# In a checkout three packages stand beside this one; an installation has them inside (see pyproject.toml).
_beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.isfile(os.path.join(_beside, "interpreter", "__init__.py")) and os.path.isfile(os.path.join(_beside, "pyproject.toml")):
    __path__.append(_beside)

provide(SERVICES, FOLDERS)
FINDER.loaders["relaylang"] = Aliases(ALIASES, OPERATOR_MODULES, f"{OPERATORS}.namespace")
sys.meta_path.insert(0, FINDER)  # type: ignore[arg-type]


def __getattr__(name: str) -> _typing.Any:
    if name == "__version__":
        from importlib.metadata import version

        value: _typing.Any = version("relaylang")
    elif name in NAMES:
        value = getattr(importlib.import_module(NAMES[name]), name)
    elif name in PACKAGES:
        value = importlib.import_module(PACKAGES[name])
    elif not name.startswith("_") and not is_module(name, __path__) and name in operators():
        value = getattr(importlib.import_module(OPERATORS), name)
    else:
        raise AttributeError(f"module 'relaylang' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES, *PACKAGES, *operators(), "__version__"})
