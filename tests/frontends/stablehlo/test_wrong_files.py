"""Programs that are damaged, wrong or too large give diagnostics with places."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from relaylang.frontends.stablehlo import import_stablehlo
from tests.frontends.stablehlo.recorded import members

HEAD = "func.func @main(%x: tensor<2x3xf32>, %i: tensor<i32>) -> tensor<2x3xf32> {\n"
END = "\nreturn %0 : tensor<2x3xf32>\n}\n"


def wrong(text: str | bytes, options: Options | None = None) -> list[tuple[str, str, int | None]]:
    """Code, title and line of each error."""
    with pytest.raises(RelayError) as caught:
        import_stablehlo(text.encode() if isinstance(text, str) else text, options or Options(), "net.mlir")
    return [(d.code, d.title, d.span.line if d.span is not None else None) for d in caught.value.diagnostics]


def one(body: str) -> tuple[str, str, int | None]:
    found = wrong(HEAD + body + END)
    assert len(found) == 1, found
    return found[0]


#: Operations -> the code, words of the title, and the line.
BAD = {
    "%0 = stablehlo.add %x, %y : tensor<2x3xf32>": ("R0802", "no operation before this one makes %y", 2),
    "%0 = stablehlo.add %0, %x : tensor<2x3xf32>": ("R0802", "no operation before this one makes %0", 2),
    "%x = stablehlo.add %x, %x : tensor<2x3xf32>": ("R0802", "%x is defined twice", 2),
    "%0 = stablehlo.add %x, %x : tensor<2x3xf": ("R0802", "missing", 2),
    "%0 = stablehlo.add %x, %x : tensor<2x3xf99>": ("R0802", "no element type f99", 2),
    "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2x3xf32>": ("R0802", "2 elements, and its type 6", 2),
    "%0 = stablehlo.constant dense<x> : tensor<2x3xf32>": ("R0802", "no numbers of float32", 2),
    "%0 = stablehlo.add %x, %x : tensor<3x3xf32>": ("R0805", "its result is", 2),
    "%0 = stablehlo.transpose %x, dims = [0, 5] : (tensor<2x3xf32>) -> tensor<2x3xf32>": ("R0805", "different axes of 2", 2),
    "%0 = stablehlo.transpose %x : (tensor<2x3xf32>) -> tensor<2x3xf32>": ("R0805", "permutation is missing", 2),
    "%0 = call @f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>": ("R0805", "no such function", 2),
    "%0 = call @main(%x, %i) : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>": ("R0801", "cannot be converted", 2),
    "%0 = stablehlo.compare XX, %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>": ("R0805", "must be one of", 2),
    "%0 = stablehlo.slice %x [0:9, 0:3] : (tensor<2x3xf32>) -> tensor<9x3xf32>": ("R0805", "whose extent is 2", 2),
    "%0 = stablehlo.slice %x 0:2, 0:3:1] : (tensor<2x3xf32>) -> tensor<2x3xf32>": ("R0802", "the bounds of a slice are wrong", 2),
    "%0 = stablehlo.iota dim = 0 : tensor<1000000x1000000xf32>": ("R0805", "its result is", 1),
    '%0 = "stablehlo.sort"(%x)[^bb1] : (tensor<2x3xf32>) -> tensor<2x3xf32>': ("R0802", "successors", 2),
}


@pytest.mark.parametrize("body", BAD)
def test_a_wrong_operation_has_its_place(body: str) -> None:
    code, words, line = BAD[body]
    found = one(body)
    assert (found[0], found[2]) == (code, line) and words in found[1], found


def test_operators_that_are_not_known_are_listed_at_once() -> None:
    body = "\n".join(
        [
            '%a = "stablehlo.set_dimension_size"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>',
            "%b = my.thing %x : tensor<2x3xf32>",
            "%c = my.thing %b : tensor<2x3xf32>",
            "%d = my.thing %x : tensor<2x3xf32>",
            '%0 = stablehlo.custom_call @lapack(%x) {backend_config = ""} : (tensor<2x3xf32>) -> tensor<2x3xf32>',
        ]
    )
    with pytest.raises(RelayError) as caught:
        import_stablehlo((HEAD + body + END).encode(), file="net.mlir")
    (found,) = caught.value.diagnostics
    assert found.code == "R0801" and found.title == "5 layers of 3 operators cannot be converted"
    said = "\n".join(found.notes)
    assert "3 x my.thing" in said and "first in %b of line 3" in said
    assert "it calls lapack" in said and "bounded extents have no form in Relay" in said
    partial = import_stablehlo((HEAD + body + END).encode(), Options(partial=True))
    assert "extern_my.thing" in str(partial.module) or len(list(partial.module.functions)) > 1


def test_a_file_that_is_cut_ends_with_a_diagnostic() -> None:
    data = members()["lstm.mlir"]
    for end in range(0, len(data) - 3, max(len(data) // 60, 1)):
        found = wrong(data[:end])
        assert {code for code, _, _ in found} <= {"R0802", "R0801", "R0805"}, end


def test_regions_may_not_be_too_deep() -> None:
    body = '%0 = "stablehlo.if"(%t) ({\n' * 200
    ((code, title, _),) = wrong(f"func.func @main(%t: tensor<i1>) -> tensor<i1> {{\n{body}")
    assert code == "R0802"
    nested = "[" * 5000
    ((code, title, _),) = wrong(HEAD + f'%0 = "stablehlo.add"(%x) <{{a = {nested}}}> : () -> ()' + END)
    assert "deep" in title


def test_functions_that_call_each_other_end_at_the_budget() -> None:
    functions = [
        f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32> {{\n"
        f"%0 = call @f{i + 1}(%x) : (tensor<f32>) -> tensor<f32>\n%1 = call @f{i + 1}(%0) : (tensor<f32>) -> tensor<f32>\n"
        "return %1 : tensor<f32>\n}\n"
        for i in range(30)
    ]
    last = "func.func private @f30(%x: tensor<f32>) -> tensor<f32> {\nreturn %x : tensor<f32>\n}\n"
    main = functions[0].replace("private @f0", "@main")
    ((code, _, _),) = wrong(main + "".join(functions) + last)
    assert code == "R0016"


def test_large_constants_take_no_memory() -> None:
    text = HEAD + "%c = stablehlo.constant dense<1.0> : tensor<1000000x1000000xf32>\n%0 = stablehlo.negate %x : tensor<2x3xf32>" + END
    import_stablehlo(text)


def test_inputs_must_fit_the_program() -> None:
    text = HEAD + "%0 = stablehlo.negate %x : tensor<2x3xf32>" + END
    assert wrong(text, Options({"x": (4, 3)}))[0][0] == "R0804"
    assert wrong(text, Options({"y": (4, 3)}))[0][0] == "R0804"
    assert wrong(text, Options({"x": (2, 3, 1)}))[0][0] == "R0804"
    assert wrong(text, Options(dtypes={"x": "int32"}))[0][0] == "R0804"
    complex_ = "func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {\nreturn %x : tensor<2xcomplex<f32>>\n}\n"
    assert "complex numbers" in wrong(complex_)[0][1]


def test_formats_are_known_by_their_contents() -> None:
    assert import_bytes(b"def @main(%x: int64) { %x }", "net.relay") is None
    assert import_bytes(members()["mlp.mlir"], "net.txt") is not None
    with pytest.raises(RelayError) as caught:
        import_bytes(b"ML\xefR\x0dStableHLO_v9.9.9\x00", "net.mlirbc")
    assert caught.value.diagnostics[0].code in ("R0802", "R0803")
