"""Pages on names: R02xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

PAGES = (
    Page(
        "R0201",
        "unknown variable",
        """Nothing binds this variable here. A function of a module binds all its variables. Parameters, `let`, graph
        bindings (`%0 = ...;`) and patterns bind them. A fragment, a text without definitions, may leave variables
        free.""",
        "def @main(%image: Tensor[(1, 3), float32]) {\n  nn.relu(%imgae)\n}",
        "def @main(%image: Tensor[(1, 3), float32]) {\n  nn.relu(%image)\n}",
    ),
    Page(
        "R0202",
        "unknown operator or constructor",
        """A bare name is an operator (`add`, `nn.conv2d`) or a constructor that the text defines. This one is neither.
        The message gives the Relay names of operators of other frameworks. `:doc NAME` in `relay repl` shows an
        operator.""",
        "def @main(%x: Tensor[(1, 3), float32]) {\n  relu(%x)\n}",
        "def @main(%x: Tensor[(1, 3), float32]) {\n  nn.relu(%x)\n}",
    ),
    Page(
        "R0203",
        "unknown attribute",
        """The operator has no attribute of this name. The note lists those that it has.""",
        "nn.conv2d(%x, %w, stride=[2, 2])",
        "nn.conv2d(%x, %w, strides=[2, 2])",
    ),
    Page(
        "R0204",
        "a graph binding is used outside its block",
        """A binding `%y = ...;` is known to the end of its block. The bindings of a branch mean nothing in the other
        branch. A number such as `%0` names a value for its whole function, as TVM prints shared values. The value's
        own operands must be known at each use. Bind what both branches need in front of the `if`.""",
        "def @main(%c: bool) {\n  if (%c) {\n    let %a = 1;\n    %0 = add(%a, 2);\n    %0\n  } else {\n    %0\n  }\n}",
        "def @main(%c: bool) {\n  let %a = 1;\n  if (%c) {\n    %0 = add(%a, 2);\n    %0\n  } else {\n    %0\n  }\n}",
    ),
    Page(
        "R0205",
        "defined twice",
        """Two definitions of one kind have the same name in one place. They may be functions, types, constructors,
        parameters, attributes or graph bindings. Both places are shown. (TVM took the first of two in silence.)""",
        "def @main(%x: int32, %x: int32) {\n  %x\n}",
        "def @main(%x: int32, %y: int32) {\n  add(%x, %y)\n}",
    ),
    Page(
        "R0206",
        "unknown function",
        """No function of this name is defined in the text. Functions may be used above their definition.""",
        "def @main() {\n  @helpr()\n}\n\ndef @helper() {\n  1\n}",
        "def @main() {\n  @helper()\n}\n\ndef @helper() {\n  1\n}",
    ),
    Page(
        "R0207",
        "unknown type",
        """The name is no element type, no type that the text defines and no type parameter. In a shape, a name must be a
        parameter, `def @f[n](%x: Tensor[(n), float32])`; an extent that is not known is `?`.""",
        "def @main(%x: flaot32) {\n  %x\n}",
        "def @main(%x: float32) {\n  %x\n}",
    ),
    Page(
        "R0208",
        "an attribute is missing",
        """The operator has attributes without a default, and the call does not give one of them.""",
        "cast(%x)",
        'cast(%x, dtype="int8")',
    ),
    Page(
        "R0209",
        "a variable is used in its own value",
        """A `let` binds its variable before its value is known, so that functions can call themselves. Anything else cannot
        use it in its own value.""",
        "def @main(%x: int32) {\n  let %y = add(%y, 1);\n  %y\n}",
        "def @main(%x: int32) {\n  let %y = add(%x, 1);\n  %y\n}",
    ),
    Page(
        "R0210",
        "unknown constructor",
        """A pattern names a constructor that no type of the text has.""",
        "type Num { One, Two }\n\ndef @main(%n: Num[]) {\n  match (%n) {\n    One => 1,\n    Tow => 2,\n  }\n}",
        "type Num { One, Two }\n\ndef @main(%n: Num[]) {\n  match (%n) {\n    One => 1,\n    Two => 2,\n  }\n}",
    ),
    Page(
        "R0219",
        "an operator cannot be added",
        """`relaylang.op.register` takes a record, a kernel and a lowering. The name of the record is not one of the
        language's own.""",
        'import relaylang as relay\nrelay.op.register("my.scale")',
        "import relaylang as relay\nfrom relaylang.ops.record import Op, tensor\n\n"
        'relay.op.register(Op("my.negated", ("data",), None, lambda types, attrs, ctx: tensor(types, 0, ctx)),\n'
        "                  kernel=lambda attrs, data: -data)",
        "python",
    ),
    Page(
        "R0220",
        "a definition of the library has the name of another one",
        """The program uses a function of the Prelude. That function needs a type or a function whose name the module
        gives to another one. Rename the module's own.""",
        "type List[A] { Other(A) }\n\ndef @main() {\n  @hd\n}",
        "type MyList[A] { Other(A) }\n\ndef @main() {\n  @hd\n}",
        "text",
    ),
    Page(
        "R0221",
        "no such library",
        """`import_from_std` takes the name of one of the library's files; the note lists them.""",
        'from relaylang.prelude import import_from_std\nimport_from_std(mod, "preude.rly")',
        'from relaylang.prelude import import_from_std\nimport_from_std(mod, "prelude.rly")',
        "text",
    ),
)
