"""TensorFlow's messages: the public field numbers of those fields that the importer reads.

Source: TensorFlow, core/framework and core/protobuf.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from relaylang.frontends.common.protobuf import messages

_TABLE = """
GraphDef: node 1 NodeDef*; library 2 FunctionDefLibrary; version 3 int32; versions 4 VersionDef
VersionDef: producer 1 int32; min_consumer 2 int32; bad_consumers 3 int32*
NodeDef: name 1 string; op 2 string; input 3 string*; device 4 string; attr 5 {string AttrValue}
AttrValue: s 2 bytes @value; i 3 int64 @value; f 4 float @value; b 5 bool @value; type 6 DataType @value;
    shape 7 TensorShapeProto @value; tensor 8 TensorProto @value; list 1 ListValue @value;
    func 10 NameAttrList @value; placeholder 9 string @value
ListValue: s 2 bytes*; i 3 int64*; f 4 float*; b 5 bool*; type 6 DataType*; shape 7 TensorShapeProto*;
    tensor 8 TensorProto*; func 9 NameAttrList*
NameAttrList: name 1 string; attr 2 {string AttrValue}
TensorShapeProto: dim 2 Dim*; unknown_rank 3 bool
Dim: size 1 int64; name 2 string
TensorProto: dtype 1 DataType; tensor_shape 2 TensorShapeProto; version_number 3 int32; tensor_content 4 bytes;
    half_val 13 int32*; float_val 5 float*; double_val 6 double*; int_val 7 int32*; string_val 8 bytes*;
    scomplex_val 9 float*; int64_val 10 int64*; bool_val 11 bool*; dcomplex_val 12 double*; uint32_val 16 uint32*;
    uint64_val 17 uint64*; float8_val 18 bytes
FunctionDefLibrary: function 1 FunctionDef*
FunctionDef: signature 1 OpDef; attr 5 {string AttrValue}; node_def 3 NodeDef*; ret 4 {string string};
    control_ret 6 {string string}
OpDef: name 1 string; input_arg 2 ArgDef*; output_arg 3 ArgDef*
ArgDef: name 1 string; description 2 string; type 3 DataType; type_attr 4 string; number_attr 5 string;
    type_list_attr 6 string; is_ref 16 bool
SavedModel: saved_model_schema_version 1 int64; meta_graphs 2 MetaGraphDef*
MetaGraphDef: meta_info_def 1 MetaInfoDef; graph_def 2 GraphDef; saver_def 3 SaverDef;
    signature_def 5 {string SignatureDef}; object_graph_def 7 SavedObjectGraph
MetaInfoDef: meta_graph_version 1 string; tags 4 string*; tensorflow_version 5 string
SaverDef: filename_tensor_name 1 string; save_tensor_name 2 string; restore_op_name 3 string
SignatureDef: inputs 1 {string TensorInfo}; outputs 2 {string TensorInfo}; method_name 3 string
TensorInfo: name 1 string @encoding; coo_sparse 4 Other @encoding; composite_tensor 5 Other @encoding;
    dtype 2 DataType; tensor_shape 3 TensorShapeProto
Other: unused 1 bytes
SavedObjectGraph: nodes 1 SavedObject*; concrete_functions 2 {string SavedConcreteFunction}
SavedObject: children 1 ObjectReference*; variable 7 SavedVariable @kind; constant 9 SavedConstant @kind
SavedVariable: dtype 1 DataType; shape 2 TensorShapeProto; trainable 3 bool; name 6 string
SavedConstant: operation 1 string
SavedConcreteFunction: bound_inputs 2 int32*
TrackableObjectGraph: nodes 1 TrackableObject*
TrackableObject: children 1 ObjectReference*; attributes 2 SerializedTensor*
ObjectReference: node_id 1 int32; local_name 2 string
SerializedTensor: name 1 string; full_name 2 string; checkpoint_key 3 string
BundleHeaderProto: num_shards 1 int32; endianness 2 int32; version 3 VersionDef
BundleEntryProto: dtype 1 DataType; shape 2 TensorShapeProto; shard_id 3 int32; offset 4 int64; size 5 int64;
    crc32c 6 fixed32; slices 7 Other*
"""

#: Element types by their numbers. Quantised ones are stored as whole numbers.
_DTYPES = {
    "FLOAT": 1,
    "DOUBLE": 2,
    "INT32": 3,
    "UINT8": 4,
    "INT16": 5,
    "INT8": 6,
    "STRING": 7,
    "COMPLEX64": 8,
    "INT64": 9,
    "BOOL": 10,
    "QINT8": 11,
    "QUINT8": 12,
    "QINT32": 13,
    "BFLOAT16": 14,
    "QINT16": 15,
    "QUINT16": 16,
    "UINT16": 17,
    "COMPLEX128": 18,
    "HALF": 19,
    "RESOURCE": 20,
    "VARIANT": 21,
    "UINT32": 22,
    "UINT64": 23,
    "FLOAT8_E5M2": 24,
    "FLOAT8_E4M3FN": 25,
    "INT4": 29,
    "UINT4": 30,
}
_NUMBERS = "; ".join(f"DT_{name}{end} {number + more}" for more, end in ((0, ""), (100, "_REF")) for name, number in _DTYPES.items())


@cache
def tensorflow() -> dict[str, Any]:
    """The classes of the messages by name. Raises `RelayError` (R0803) where protobuf is missing."""
    return messages(f"{_TABLE}enum DataType: DT_INVALID 0; {_NUMBERS}\n", "relaylang.tensorflow", "tensorflow")


__all__ = ["tensorflow"]
