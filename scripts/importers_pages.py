"""Writes the pages of importers and exporters: docs/import_*.md and exporting.md.

Usage:

    scripts/importers_pages.py    writes them; the tables of operators come from their own tables
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from relaylang.export.onnx.table import RULES as ONNX_RULES
from relaylang.export.relax.table import RULES as RELAX_RULES
from relaylang.export.stablehlo.table import RULES as STABLEHLO_RULES
from relaylang.frontends.caffe.table import REFUSED as CAFFE_REFUSED
from relaylang.frontends.caffe.table import table as caffe_table
from relaylang.frontends.common import Rule, Table
from relaylang.frontends.coreml.table import CONTROL, CONTROL_LAYERS, REFUSED_LAYERS
from relaylang.frontends.coreml.table import REFUSED as COREML_REFUSED
from relaylang.frontends.coreml.table import layer_table as coreml_layers
from relaylang.frontends.coreml.table import table as coreml_table
from relaylang.frontends.darknet.table import REFUSED as DARKNET_REFUSED
from relaylang.frontends.darknet.table import table as darknet_table
from relaylang.frontends.keras.table import REFUSED as KERAS_REFUSED
from relaylang.frontends.keras.table import table as keras_table
from relaylang.frontends.mxnet.table import REFUSED as MXNET_REFUSED
from relaylang.frontends.mxnet.table import table as mxnet_table
from relaylang.frontends.onnx.table import REFUSED as ONNX_REFUSED
from relaylang.frontends.onnx.table import table as onnx_table
from relaylang.frontends.paddle.legacy import rows as paddle_rows
from relaylang.frontends.paddle.table import REFUSED as PADDLE_REFUSED
from relaylang.frontends.paddle.table import table as paddle_table
from relaylang.frontends.stablehlo.table import REFUSED as STABLEHLO_REFUSED
from relaylang.frontends.stablehlo.table import table as stablehlo_table
from relaylang.frontends.tensorflow.table import REFUSED as TENSORFLOW_REFUSED
from relaylang.frontends.tensorflow.table import table as tensorflow_table
from relaylang.frontends.tflite.table import REFUSED as TFLITE_REFUSED
from relaylang.frontends.tflite.table import table as tflite_table
from relaylang.frontends.torch.table import REFUSED as TORCH_REFUSED
from relaylang.frontends.torch.table import table as torch_table
from relaylang.frontends.torch.torchscript.packed import LAYERS as QUANTISED
from relaylang.ops import OPS
from relaylang.rules.qnn_lowering import RULES as LOWERED

DOCS = Path(__file__).resolve().parent.parent / "docs"

ONNX = """# ONNX

`pip install 'relaylang[onnx]'` brings the reader. The command and Python take a file:

    relay import net.onnx --shape image=1x3x224x224 -o net.relay

```text
mod, params = relay.frontend.from_onnx(onnx.load("net.onnx"), {"image": (1, 3, 224, 224)})
```

- The importer takes opsets 7 to 28, functions that the model defines, and external data inside the model's folder.
- Extents with names become `?`, unless `--shape` gives them. Computed shapes keep the extents that are known.
- `If` becomes `if`; `Loop` and `Scan` become recursive functions. A loop of up to eight turns is written out.
- A model in QDQ form keeps `qnn.quantize` and `qnn.dequantize`. The pass `FakeQuantizationToInteger` makes it integer.
- A sequence of known length becomes a tuple. Others become the Prelude's `List`, and optionals become `Option`. Extents
  in which their elements differ are `?`. `--shape xs=?x3` gives the elements of an input their shape.
- Random layers draw from a key that the attribute `seed` gives. A program gives the same numbers at each run, but not those
  of other runtimes.
- A text is a row of bytes: a tensor of texts is one of uint8, whose last axis has UTF-8 and zeros behind it. For an input,
  `--shape name=?x16` gives each text 16 bytes. `relaylang.frontends.onnx.texts` has `encoded` and `decoded` for arrays.
  `StringNormalizer` changes the case of ASCII letters alone.
- `ZipMap` gives its scores, a column for each class.
- A model whose inputs decide extents needs their values at import, where an operator has no form for computed extents.
- `Resize` has onnxruntime's arithmetic: float32 places, whole extents in `align_corners`, truncated sums of integers.
  With `antialias`, its scales must be known.

`relaylang.frontends.onnx.backend` has ONNX's backend interface. `tests/frontends/onnx/gaps.tsv` lists those of ONNX's own
backend tests that do not pass, each with a reason.

## Operators

| operator | domain | versions |
|---|---|---|
"""

MXNET = """# MXNet

The importer reads symbols (`NAME-symbol.json`) of MXNet 0.8 to 1.9, and the parameter files beside them. It needs no MXNet.
`HybridBlock.export` writes such files, and so do `Module.save_checkpoint` and `mx.model.save_checkpoint`.

    relay import net-symbol.json --shape data=1x3x224x224 -o net.relay

```text
mod, params = relay.frontend.from_mxnet("net-symbol.json", {"data": (1, 3, 224, 224)})
mod, params = relay.frontend.from_mxnet(symbol, {"data": (1, 3, 224, 224)}, arg_params=args, aux_params=auxs)
```

- A symbol states no shapes of its inputs, so `--shape` gives them. Labels of losses need none.
- The weights come from `NAME-0000.params`, of the last epoch beside the symbol, or from `--weights FILE`. Parameter files
  of all versions are read. Row-sparse and CSR arrays become dense.
- In Python, `from_mxnet` also takes the JSON, a `Symbol` or a `HybridBlock`. A symbol without values has its weights as
  inputs, whose shapes follow from the layers.
- Attributes of old versions are read by MXNet's rules for upgrades. `BatchNorm` of 0.8 gets its states.
- Dropout does nothing, and `BatchNorm` takes the moving statistics, as in a network that runs.
- `RNN` becomes steps, or a loop for more than 32 of them. `_foreach` and `_while_loop` become recursive functions, `_cond`
  becomes `if`.
- Layers of `mxnet.contrib.quantization` become `qnn` operators, with the scales of MXNet's ranges.
- Results of detection have the order of MXNet: boxes by their score, -1 in the rows that are left out.

## Operators

| operator |
|---|
"""

TFLITE = """# TFLite

`pip install 'relaylang[tflite]'` brings the reader of schema 3.

    relay import net.tflite -o net.relay
    relay import net.tflite --layout NCHW -o net.relay

```text
mod, params = relay.frontend.from_tflite(open("net.tflite", "rb").read())
```

- Programs keep the layout NHWC. `--layout NCHW` converts convolutions and pools.
- Quantised convolutions and dense layers become `qnn` operators, with a scale for each channel where the file has them.
  So do sums, products, means and activations, to the same integers or the next ones. Convolutions of int16 add up in
  64 bits, and give the same integers. Other quantised layers compute with real numbers between `qnn.dequantize` and
  `qnn.quantize`.
- Weights of float16 become float32; sparse weights become dense.
- Layers with real operands and int8 weights round the operands as TFLite does, each element of the batch by itself.
- LSTM and SVDF of int8, with states of int16, compute in fixed point as TFLite's reference kernels do, to the same integers.
  Sigmoid and tanh are tables of 65 536 results, which all layers share.
- `IF` becomes `if`, and `WHILE` a recursive function. A loop of up to 32 known turns is written out. Graphs that are called
  stand in place.
- Variables and the states of recurrent layers are the last parameters and the last results of `@main`. A caller hands the
  results of one call to the next; `@initial_state` gives the values of the first. A variable that only `CALL_ONCE` assigns
  is a constant.
- MediaPipe's custom operators are in the table below, by their own names.

## Operators

| operator |
|---|
"""

TENSORFLOW = """# TensorFlow

`pip install 'relaylang[tensorflow]'` brings protobuf. TensorFlow itself is not needed.

    relay import net.pb --shape x=1x224x224x3 -o net.relay
    relay import saved_model_folder -o net.relay

```text
mod, params = relay.frontend.from_tensorflow("net.pb", shape={"x": (1, 224, 224, 3)}, outputs=["softmax"])
mod, params = relay.frontend.from_tensorflow(TFParser("saved_model_folder").parse())
```

- The importer takes a frozen graph (`.pb`, or `.pbtxt` in protobuf's text format). It takes the folder of a SavedModel of
  TensorFlow 1 or 2. It reads the variables of the folder itself. No code of a file runs.
- A SavedModel gives what the signature `serving_default` says, or its only signature. Inputs have the signature's names.
  Results are in the order of their names, `result_9` before `result_10`.
- A graph gives the nodes that no other takes. Those that TensorFlow 2 calls `Identity`, `Identity_1` come alone.
  `from_tensorflow` gives the last node, as in TVM, unless `outputs` names others.
- A `PlaceholderWithDefault` has its default value, unless `--shape` or `--value` names it.
- Programs keep the layout NHWC, or NCHW where that is `data_format`. `--layout NCHW` converts convolutions and pools.
- Functions stand in place. `If`, `Case` and the `Merge` of a condition become `if`; a condition that is known leaves one branch.
- `While` and the frames of `Enter` and `Exit` become recursive functions. A loop of up to 32 known turns is written out.
- TensorArrays and TensorLists become tensors with a further first axis. In loops that are written out, they are
  single tensors. Their elements must have one known shape.
- Variables are constants, or parameters with `--no-freeze`. A program that assigns variables computes with the values in
  the file at each call. A warning says how many assignments are left out.
- `FakeQuant` layers round real numbers as TensorFlow does. `QuantizeV2` and `Dequantize` need constant ranges.
- `ResizeBicubic` computes its weights exactly; TensorFlow rounds places to 1/1024 of an element.
- Texts, tables of keys, complex numbers, random numbers, and the sums of `QuantizedConv2D` and its like are refused.

## Operators

| operator |
|---|
"""

TORCH = """# PyTorch

Export a module, and import the file. The importer reads `.pt2` files and TorchScript archives without torch.

```text
program = torch.export.export(module.eval(), (example,))
torch.export.save(program, "net.pt2")
```

    relay import net.pt2 -o net.relay

```text
mod, params = relay.frontend.from_pytorch(program)
```

- Programs may be decomposed (`program.run_decompositions()`) or not.
- Extents that `dynamic_shapes` leaves open become `?`.
- The names of modules become the places of diagnostics: `layer1.0.conv1`.
- New values of buffers and of inputs that the module writes are further results, behind those of the module.
- Operators that write, such as `add_`, change all views of the same memory, as in PyTorch.
- `torch.cond` becomes `if`; `while_loop`, `scan` and `map` become recursive functions. A scan of up to eight turns is
  written out.
- `quantized_decomposed` operators become `qnn.quantize` and `qnn.dequantize`. The pass `FakeQuantizationToInteger` makes
  the program integer. Computed scales stay arithmetic.
- Complex tensors become pairs of real ones. Complex inputs, weights and results have a last axis of extent 2, as in
  `torch.view_as_real`. STFT and Fourier transforms become `stft` and `dft`.
- Inverses, solutions, determinants and factors (LU, Cholesky, QR) of matrices with known extents are LAPACK's, signs and
  pivots too. More than four steps are a loop. A matrix without an inverse gives infinite numbers or NaN, and no error.
- Operators that give random numbers are refused, and dropout and normalisation are those of the exported mode.
- `custom_convert_map` has conversions for operators of your own, by names such as `mylib::blur`. Each is called with the
  arguments and their types, and gives an expression, or a list of them.
- No code of a file runs, and no pickle of it is loaded.

## TorchScript

`torch.jit.save` writes archives, of traced or scripted modules. They state no shapes, so inputs need them:

    relay import net.pt --shape x=1x3x224x224 -o net.relay

```text
mod, params = relay.frontend.from_pytorch(script_module, [("x", (1, 3, 224, 224))])
```

- The importer parses the sources in the archive and evaluates them. Loops of known length are written out. An `if` on data
  becomes `if`, and a loop of unknown length becomes a recursive function.
- Its own reader of pickles makes tensors, records, lists, dicts, numbers and texts. Any other name in a pickle is an error.
- `--dtype x=complex64` gives an input complex numbers. `--shape` tells its shape without the last axis of parts.
- `--value sr=16000` gives an input that is a number its value. An input with a default value needs nothing.
- A tuple `h` of tensors becomes the inputs `h.0`, `h.1`. Results in tuples and dicts are results of their own.
- New values of tensors in modules are further results, by the order of their names. Such a tensor becomes an input where
  `--shape` names it.
- Quantised layers become `qnn` operators as in TVM. Parameters have the names `features.0.0_weight` and
  `features.0.0_bias`. They are real numbers that the program quantises, unless `keep_quantized_weight` is set.
- Trace the detection networks of torchvision. `torch.jit.script` is possible for SSD, RetinaNet and FCOS. `torch.export`
  refuses all of them, because the number of boxes depends on data. So only the interpreter and the VM run them.
- A branch that raises an error is left out where its condition depends on data.

## Operators

| operator |
|---|
"""

KERAS = """# Keras

`pip install 'relaylang[keras]'` brings h5py, which reads the weights. Keras itself is not needed. The command takes whole
models: `.h5` files of Keras 1 to 3, and `.keras` archives.

    relay import net.keras -o net.relay
    relay import net.h5 --shape input_1=1x224x224x3 -o net.relay

```text
mod, params = relay.frontend.from_keras(model, {"input_1": (1, 3, 224, 224)})
```

`from_keras` takes a model object of Keras, the bytes of a file, or its path.

- Sequential and functional models are read, and models in models. Layers and models may be called several times.
- Programs keep the layout of the network, which is NHWC by default. `--layout NCHW` converts convolutions and pools.
- As in TVM, `from_keras` has the layout NCHW by default. Then inputs and outputs of four axes are NCHW, too. `layout="NHWC"`
  keeps them.
- The batch of all inputs is the named extent `batch` where the file leaves it open; `--shape batch=4` gives it a number.
  Other open extents are `?`.
- A model without an input layer has the input `NAME_input`, where `NAME` is its first layer.
- Masks of `Masking` and `Embedding` go where Keras takes them: to recurrent layers, attention, means and sums.
- Short recurrences are written out, others become loops. A warning names stateful layers, which begin each call with zeros.
- Layers that act in training alone, such as dropout, give their operand. A layer of Keras 2 that is called for training is
  refused.
- `hard_sigmoid`, `UnitNormalization` and masks of sums differ between Keras 2 and 3. The version in the file decides.
- Layers compute in the element type of their policy; `mixed_float16` computes in float16.
- Nothing in a file is executed. `Lambda` layers are Python code, so they are refused. Links to other files are, too.
- Files that hold weights alone have no network. Save the whole model: `model.save("net.keras")`.

## Layers

| layer |
|---|
"""

COREML = """# Core ML

`pip install 'relaylang[coreml]'` brings protobuf. coremltools is not needed, nor is macOS.

    relay import net.mlmodel -o net.relay
    relay import net.mlpackage -o net.relay

```text
mod, params = relay.frontend.from_coreml("net.mlmodel", {"image": (1, 3, 224, 224)})
mod, params = relay.frontend.from_coreml(coremltools.models.MLModel("net.mlpackage"))
```

- A `.mlmodel` has a neural network, a classifier, a regressor, or a pipeline. A `.mlpackage` is a folder with an ML program
  and its weights, or a zip archive of that folder.
- Inputs have the shapes of the file, `?` where an ML program leaves an extent open. `--shape` gives others.
- A picture is (1, channels, rows, columns) of numbers from 0 to 255, its channels in the order that the file states. The
  file's own scales and colours are a part of the program.
- A classifier gives its probabilities. Names of classes are texts, which have no form in Relay.
- Networks of the older rule for axes have arrays of five axes. Sequence and batch are one axis here, and results without
  rows and columns are (n, channels), as in TVM. Layers that count axes need the newer rule.
- All arrays of neural networks are real numbers in Core ML. Here comparisons give bool, and places give int32.
- ML programs of halves stay float16. Palettised, quantised and sparse weights become real numbers at import. With
  `keep_quantized` and without `freeze`, weights of `constexpr_affine_dequantize` stay whole.
- Recurrent operators become steps, or a loop for more than 32 of them. `branch`, `cond`, `loop` and `while_loop` become `if`
  and recursive functions.
- A state is an input, and its last value is a further result.
- Boxes of `non_maximum_suppression` are those of all classes together.

## Operators of ML programs

| operator |
|---|
"""

CAFFE = """# Caffe

`pip install 'relaylang[caffe]'` brings protobuf. Caffe itself is not needed. The command takes the `.prototxt`, and finds
the `.caffemodel` of the same name beside it, or the only one there.

    relay import deploy.prototxt -o net.relay
    relay import deploy.prototxt --weights net.caffemodel -o net.relay

```text
mod, params = relay.frontend.from_caffe("net.caffemodel", "deploy.prototxt")
mod, params = relay.frontend.from_caffe(init_net, predict_net, {"data": (1, 3, 224, 224)})
```

- Layers of all three forms of Caffe's files are read. `from_caffe` takes names of files, their contents, or messages.
- A `.caffemodel` alone also has its network. Where a `.prototxt` of the same name is beside it, that one counts.
- The network is that of the phase `TEST`: rules of `include` and `exclude` select its layers.
- Inputs have the shapes of the file; `--shape` gives those of layers that read a database, which state none.
- The results are those that no layer uses, in the order of their layers, as in TVM. Caffe sorts them by name.
- `SoftmaxWithLoss` gives the shares, and `SigmoidCrossEntropyLoss` the sigmoid. Other losses and `Accuracy` are left out.
- Pools round the number of their places up, and means count padding as Caffe does. Such extents must be known.
- `BatchNorm` takes the moving statistics, and a `Scale` behind it becomes a part of `nn.batch_norm`.
- `LSTM` and `RNN` become steps, or a loop for more than 32 of them. Caffe keeps their states from call to call. Here each
  call begins with zeros, unless `expose_hidden` makes states operands.
- `DetectionOutput` has a fixed number of rows, `keep_top_k` for each picture. Rows without a box are -1. Caffe gives as many
  rows as there are boxes.
- `PriorBox` cuts its sizes off to whole numbers, as Caffe's branch for SSD does.
- Weights of half precision, as NVIDIA's branch writes them, become float32.

## Layers

| layer |
|---|
"""

PADDLE = """# PaddlePaddle

`pip install 'relaylang[paddle]'` brings protobuf. PaddlePaddle itself is not needed. The command takes a `.pdmodel`, a
`.json` of PaddlePaddle 3 or a `__model__`, and finds the weights beside it.

    relay import inference.pdmodel -o net.relay
    relay import inference.json --weights inference.pdiparams --shape x=1x3x224x224 -o net.relay

```text
mod, params = relay.frontend.from_paddle("inference.json", {"x": (1, 3, 224, 224)})
mod, params = relay.frontend.from_paddle(program, shape_dict, scope)
```

- Weights are in one `.pdiparams` file, or each in a file of its own name. `--weights` names the file or the folder.
- `from_paddle` takes names of files, their bytes, a `Program` or a `TranslatedLayer`. `scope` may also be arrays by name.
- Operators of PaddlePaddle 2 are read under their names of PaddlePaddle 3, as the table shows.
- Extents that the file leaves open become `?`, unless `--shape` gives them.
- `while` and `conditional_block` become loops and branches. Arrays of tensors that grow in loops become lists of the Prelude.
- `rnn` becomes steps, or a loop for more than 32 of them.
- `multiclass_nms3`, `matrix_nms` and `generate_proposals` give as many rows as they choose boxes. Those of classes are in the
  order of classes and scores.
- `quantize_linear` and `dequantize_linear` become `qnn` operators of 8 bits, in the files of versions 2 and 3.
- Places of the largest elements of pools are not computed. `unique` compares single elements alone.

## Operators

| operator | of PaddlePaddle 2 |
|---|---|
"""

DARKNET = """# Darknet

The command takes the `.cfg` file, and finds the `.weights` of the same name beside it.

    relay import yolov3.cfg -o yolov3.relay

```text
mod, params = relay.frontend.from_darknet(("yolov3.cfg", "yolov3.weights"))
```

- The input has the name `data` and the layout NCHW, with a batch of 1. `--shape data=1x3x320x320` changes it.
- The results are those of all layers with boxes, in their order, and that of the last layer.
- `from_darknet` has the results of TVM. That of the last layer comes first, then masks, anchors and attributes of layers
  with boxes. `tvm.relay.testing.yolo_detection` makes boxes of them.
- Scripts for TVM run without Darknet's library: `__darknetffi__.dlopen(...).load_network` reads both files.
- A `shortcut` adds the first channels of a layer with more of them, as Darknet does.
- Darknet adds its epsilon to the deviation in a normalisation. Versions with YOLO v4 add another one to the variance. The
  header of the weights decides.
- `region` layers have the result of Darknet's first author. Versions with YOLO v4 order it otherwise.

## Layers

| section |
|---|
"""

STABLEHLO = """# StableHLO

JAX writes its programs as StableHLO. The importer reads MLIR's text without JAX:

```text
open("net.mlir", "w").write(jax.jit(net).lower(params, x).as_text())
```

    relay import net.mlir -o net.relay
    relay import net.mlirbc --shape arg0=8x224x224x3 -o net.relay

```text
mod, params = relay.frontend.from_stablehlo(jax.jit(net).lower(params, x))
```

- The text has the dialects stablehlo, chlo, func and vhlo, in the generic form or the pretty one.
- `jax.export.export(jax.jit(net))(x).mlir_module_serialized` is a portable artifact. jaxlib reads it:
  `pip install 'relaylang[stablehlo]'`.
- `from_stablehlo` takes a text, bytes, a path, or an object of JAX: what `lower` gives, or an `Exported`.
- Inputs have the names of the text: `arg0`, `arg1`. Weights that JAX captures are constants, those of `params` are inputs.
- Extents that `jax.export.symbolic_shape("b, t")` leaves open keep their names: `@main[b, t](%arg0: Tensor[(2 * b, t), float32])`.
  `--shape b=4` gives one a number; so does `--shape arg0=8x16`. Other programs have names of places, such as `arg0_1` for the
  second axis of `arg0`, where they read an extent; else `?` stays.
- Assertions that two extents are equal become types, which a run checks. Other checks of shapes are left out.
- Functions that are called stand in place. `case` and `if` become `if`, `while` becomes a recursive function. A loop of
  up to 32 known turns is written out.
- Reductions and windows of `add`, `multiply`, `maximum` and `minimum` become Relay's reductions and pools. Other regions
  of arithmetic join neighbours, until one element is left.
- A sort needs a region that compares elements of operands. The importer tries all orders of values, so any form fits.
- Quantised operands compute with real numbers between `qnn.dequantize` and `qnn.quantize`.
- Complex numbers become pairs of real ones inside the program; inputs and results must be real.
- `Sharding` and its like give their operands; other calls of `custom_call` are refused by name.
- Random numbers of JAX's default generator are arithmetic, and have JAX's bits.

## Operators

| operator |
|---|
"""

EXPORT = """# Exporting programs

`relay export` writes a program for another tool:

    relay export net.relay -o net.onnx
    relay export net.relay -o net.mlir
    relay export net.relay -o net.py --constants net_constants.npz

| format | ending | read by |
|---|---|---|
| ONNX, opset 21 | `.onnx` | onnxruntime, `relay import` and others; `pip install 'relaylang[onnx]'` writes it |
| StableHLO, MLIR text | `.mlir` | IREE, XLA |
| Relax, TVMScript | `.py` | TVM 0.20 and later: `tvm.script.from_source` |

`--format onnx`, `stablehlo` or `relax` chooses where the ending does not. `--params FILE` makes constants of parameters.
The input can be a network, too:

    relay export net.tflite -o net.onnx

In Python, `relaylang.export.export(mod, "onnx")` gives the bytes. `export_onnx`, `export_stablehlo` and `export_relax` give
a model or text.

## What to know

- Layers have the names of the imported network, or of the program's variables.
- A `requantize` behind `qnn.conv2d` or `qnn.dense` gives `QLinearConv` or `QLinearMatMul`. Other operators of the qnn dialect
  stand between `DequantizeLinear` and `QuantizeLinear`. ONNX rounds halves to even, Relay upwards, so results can be 1 apart.
- In StableHLO and Relax text, quantised operators are integer arithmetic, equal to the last bit.
- An ONNX file holds 2 GiB. `--constants net.onnx.data` puts large constants into a file below the model's folder.
- ONNX models keep open extents. The other formats need known shapes; `--shape` gives them to a network.
- `if` becomes the format's own. A function that calls itself last becomes a loop in ONNX and StableHLO. Other recursion,
  references and algebraic data types have no form there.
- Functions that are called are written in place.
- LSTM, GRU and RNN become one layer of ONNX each, in one direction or both, with lengths, first states and peepholes. They may
  be imported, or a function of yours that calls itself for each step, whatever the order of its gates and parameters.
  Gates are `sigmoid` or a hard sigmoid, new values `tanh`, `nn.relu` or `nn.leaky_relu`. The element type is float32 or float16,
  for which onnxruntime has kernels. Recurrences with projections, masks other than lengths, or clipped cells stay steps or a
  loop; so do those of which another operator uses an inner value.
- Element types that onnxruntime has no kernel for are cast around a layer where this changes no number. What it refuses
  otherwise is reported: data without elements in a pool, convolutions of real numbers to integers.
- Relax text holds scalars only. Its other constants are parameters behind the inputs, and `--constants` takes their values.
  `relax.transform.BindParams` puts them back.

What a format lacks is listed whole (R0806), and nothing is written.

## Operators

| operator | ONNX | StableHLO | Relax |
|---|---|---|---|
"""


def export_rows() -> list[str]:
    """A row per operator that a format has. The qnn dialect is lowered for StableHLO and Relax."""
    formats = (ONNX_RULES, STABLEHLO_RULES, RELAX_RULES)
    rows = []
    for name in OPS:
        marks = ["yes" if name in rules else "lowered" if name in LOWERED and rules is not ONNX_RULES else "" for rules in formats]
        if any(marks):
            rows.append(f"| {name} | {' | '.join(marks)} |")
    return rows


def versions(rule: Rule) -> str:
    """`7 to 12`, or `13 and later`."""
    if rule.until is None:
        return f"{rule.since} and later" if rule.since > 1 else "all"
    return f"{rule.since} to {rule.until}" if rule.until > rule.since else str(rule.since)


def onnx_rows(rules: Iterable[Rule]) -> list[str]:
    """A row per operator; the versions of one operator stand together."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        found.setdefault((rule.domain, rule.name), []).append(versions(rule))
    return [f"| {name} | {domain or 'ai.onnx'} | {', '.join(said)} |" for (domain, name), said in sorted(found.items())]


def rows_with_refused(table: Table, refused: Mapping[str, str]) -> list[str]:
    """A row per operator, then those that are refused, with reasons."""
    rows = [f"| {name} |" for name in table.names()]
    rows += ["", "## Operators without a form in Relay", "", "| operator | reason |", "|---|---|"]
    return [*rows, *[f"| {name} | {reason} |" for name, reason in sorted(refused.items())]]


def refused_rows(reasons: Mapping[str, str]) -> list[str]:
    """The layers that are refused, with reasons."""
    head = ["", "## Layers without a form in Relay", "", "| layer | reason |", "|---|---|"]
    return [*head, *[f"| {name} | {reason} |" for name, reason in sorted(reasons.items())]]


def coreml_rows() -> list[str]:
    """A row per operator of programs, then the layers of networks, each with those that are refused."""
    head = ["", "## Layers of neural networks", "", "| layer |", "|---|"]
    layers = [f"| {name} |" for name in sorted([*coreml_layers().names(), *CONTROL_LAYERS])]
    operators = [f"| {name} |" for name in sorted([*coreml_table().names(), *CONTROL])]
    return [*operators, *head, *layers, *refused_rows({**COREML_REFUSED, **REFUSED_LAYERS})]


def paddle_page() -> list[str]:
    """A row per operator with its older names, then the operators that are refused."""
    old: dict[str, list[str]] = {}
    for name, row in paddle_rows().items():
        if name != row.name:
            old.setdefault(row.name, []).append(name)
    rows = [f"| {name} | {', '.join(sorted(old.get(name, ())))} |" for name in paddle_table().names()]
    return [*rows, *refused_rows(PADDLE_REFUSED)]


def keras_rows() -> list[str]:
    """A row per layer, then the operations of Keras 3, then the layers that are refused."""
    layers = sorted({rule.name for rule in keras_table() if not rule.domain})
    operations = sorted({rule.name for rule in keras_table() if rule.domain == "ops"})
    more = ["", "## Operations of Keras 3", "", "| operation |", "|---|", *[f"| {name} |" for name in operations]]
    return [*[f"| {name} |" for name in layers], *more, *refused_rows(KERAS_REFUSED)]


def pages() -> dict[str, str]:
    """Each page's name and text."""
    quantised = [f"quantized.{name}" for name in QUANTISED]
    tables = {
        "import_mxnet.md": (MXNET, rows_with_refused(mxnet_table(), MXNET_REFUSED)),
        "import_caffe.md": (CAFFE, [*[f"| {n} |" for n in caffe_table().names()], *refused_rows(CAFFE_REFUSED)]),
        "import_coreml.md": (COREML, coreml_rows()),
        "import_paddle.md": (PADDLE, paddle_page()),
        "import_darknet.md": (DARKNET, [*[f"| `{n}` |" for n in darknet_table().names()], *refused_rows(DARKNET_REFUSED)]),
        "import_keras.md": (KERAS, keras_rows()),
        "import_stablehlo.md": (STABLEHLO, rows_with_refused(stablehlo_table(), STABLEHLO_REFUSED)),
        "import_onnx.md": (ONNX, [*onnx_rows(onnx_table()), *refused_rows(ONNX_REFUSED)]),
        "import_tflite.md": (TFLITE, rows_with_refused(tflite_table(), TFLITE_REFUSED)),
        "import_tensorflow.md": (TENSORFLOW, rows_with_refused(tensorflow_table(), TENSORFLOW_REFUSED)),
        "import_pytorch.md": (
            TORCH,
            [*[f"| `{name}` |" for name in sorted({*torch_table().names(), *quantised})], *refused_rows(TORCH_REFUSED)],
        ),
    }
    tables["exporting.md"] = (EXPORT, export_rows())
    return {name: text + "\n".join(rows) + "\n" for name, (text, rows) in tables.items()}


def main() -> None:
    for name, text in pages().items():
        (DOCS / name).write_text(text)


if __name__ == "__main__":
    main()
