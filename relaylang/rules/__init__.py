"""One table per transformation, from an operator's name to its rule.

Each module or package here has a mapping `RULES`, and says what a rule gets and returns. The walks that use the tables
stand in `relaylang.passes`. Facts about an operator itself are traits of its record in `relaylang.ops`.

| table | transformation |
|---|---|
| `gradient`, `lazy_gradient` | FirstOrderGradient and Gradient; LazyGradientInit |
| `layout`, `conversions`, `alter_layout` | layouts of operands and results; ConvertLayout; AlterOpLayout |
| `qnn_lowering`, `qnn_legalize`, `fake_quantization` | qnn.CanonicalizeOps; qnn.Legalize; FakeQuantizationToInteger |
| `legalize`, `canonicalize`, `simplify` | Legalize; CanonicalizeOps; SimplifyExpr |
| `precision`, `macs`, `work` | ToMixedPrecision; multiply-accumulates; steps of constant folding |
| `scale_folding`, `padding`, `atrous` | FoldScaleAxis; FoldExplicitPadding; FlattenAtrousConv |
| `inference`, `fast_math`, `div_to_mul` | SimplifyInference; FastMath; DivToMul |
| `decompositions` | operators as others, for backends and exporters |
| `dynamic_to_static`, `static_to_dynamic` | DynamicToStatic; names in attributes, as operands |
| `joining`, `splitting` | CombineParallel...; SplitArgs |
| `placement` | PlanDevices |
| `sparse` | weights in blocks |
| `quantization` | QuantizePartition, QuantizeAnnotate, QuantizeRealize: a table each |
| `slices` | code of the virtual machine for batches of unknown size |
"""
