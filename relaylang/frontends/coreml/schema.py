"""Core ML's messages: the public field numbers of those fields that the importer reads.

Source: coremltools, Model.proto, FeatureTypes.proto, NeuralNetwork.proto and MIL.proto. Messages of equal fields are one here.
Numbers that files pack are `bytes*`: such a field holds the bytes of its numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from relaylang.frontends.common.protobuf import messages

#: The models that are no network, each with its number.
_OTHERS = """
glmRegressor 300; supportVectorRegressor 301; treeEnsembleRegressor 302; bayesianProbitRegressor 304; glmClassifier 400;
supportVectorClassifier 401; treeEnsembleClassifier 402; kNearestNeighborsClassifier 404; itemSimilarityRecommender 501;
customModel 555; linkedModel 556; classConfidenceThresholding 560; oneHotEncoder 600; imputer 601; featureVectorizer 602;
dictVectorizer 603; scaler 604; categoricalMapping 606; normalizer 607; arrayFeatureExtractor 609; nonMaximumSuppression
610; identity 900; textClassifier 2000; wordTagger 2001; visionFeaturePrint 2002; soundAnalysisPreprocessing 2003;
gazetteer 2004; wordEmbedding 2005; audioFeaturePrint 2006; serializedModel 3000
"""

#: The layers of neural networks: each with its number, and the message of its parameters.
_LAYERS = """
convolution 100 Convolution; pooling 120 Pooling; activation 130 Activation; innerProduct 140 InnerProduct; embedding 150
Embedding; batchnorm 160 Batchnorm; mvn 165 MeanVarianceNormalize; l2normalize 170 L2Normalize; softmax 175 Empty; lrn
180 LRN; crop 190 Crop; padding 200 Padding; upsample 210 Upsample; resizeBilinear 211 ResizeBilinear; cropResize 212
CropResize; unary 220 UnaryFunction; add 230 Alpha; multiply 231 Alpha; average 240 Empty; scale 245 Scale; bias 250
Bias; max 260 Empty; min 261 Empty; dot 270 DotProduct; reduce 280 Reduce; loadConstant 290 LoadConstant; reshape 300
Reshape; flatten 301 Mode; permute 310 Permute; concat 320 Concat; split 330 Split; sequenceRepeat 340 SequenceRepeat;
reorganizeData 345 ReorganizeData; slice 350 Slice; simpleRecurrent 400 SimpleRecurrent; gru 410 GRU; uniDirectionalLSTM
420 UniDirectionalLSTM; biDirectionalLSTM 430 BiDirectionalLSTM; custom 500 Custom; copy 600 Empty; branch 605 Branch;
loop 615 Loop; loopBreak 620 Empty; loopContinue 625 Empty; rangeStatic 635 RangeStatic; rangeDynamic 640 RangeDynamic;
clip 660 Clip; ceil 665 Empty; floor 670 Empty; sign 680 Empty; round 685 Empty; exp2 700 Empty; sin 710 Empty; cos 715
Empty; tan 720 Empty; asin 730 Empty; acos 735 Empty; atan 740 Empty; sinh 750 Empty; cosh 755 Empty; tanh 760 Empty;
asinh 770 Empty; acosh 775 Empty; atanh 780 Empty; erf 790 Empty; gelu 795 Mode; equal 815 Alpha; notEqual 820 Alpha;
lessThan 825 SecondAlpha; lessEqual 827 SecondAlpha; greaterThan 830 SecondAlpha; greaterEqual 832 SecondAlpha; logicalOr
840 Empty; logicalXor 845 Empty; logicalNot 850 Empty; logicalAnd 855 Empty; modBroadcastable 865 Empty; minBroadcastable
870 Empty; maxBroadcastable 875 Empty; addBroadcastable 880 Empty; powBroadcastable 885 Empty; divideBroadcastable 890
Empty; floorDivBroadcastable 895 Empty; multiplyBroadcastable 900 Empty; subtractBroadcastable 905 Empty; tile 920 Tile;
stack 925 Axis; gather 930 Axis; scatter 935 Scatter; gatherND 940 Empty; scatterND 945 Mode; softmaxND 950 Axis;
gatherAlongAxis 952 Axis; scatterAlongAxis 954 Scatter; reverse 960 Reverse; reverseSeq 965 ReverseSeq; splitND 975
SplitND; concatND 980 ConcatND; transpose 985 Transpose; sliceStatic 995 SliceStatic; sliceDynamic 1000 SliceDynamic;
slidingWindows 1005 SlidingWindows; topK 1015 TopK; argMin 1020 ArgMax; argMax 1025 ArgMax; embeddingND 1040 EmbeddingND;
batchedMatmul 1045 BatchedMatMul; getShape 1065 Empty; loadConstantND 1070 LoadConstant; fillLike 1080 Fill; fillStatic
1085 FillStatic; fillDynamic 1090 Fill; broadcastToLike 1100 Empty; broadcastToStatic 1105 BroadcastToStatic;
broadcastToDynamic 1110 Empty; squeeze 1120 Squeeze; expandDims 1125 ExpandDims; flattenTo2D 1130 Axis; reshapeLike 1135
Empty; reshapeStatic 1140 RankPreservingReshape; reshapeDynamic 1145 Empty; rankPreservingReshape 1150
RankPreservingReshape; constantPad 1155 ConstantPadding; randomNormalLike 1170 Empty; randomNormalStatic 1175 Empty;
randomNormalDynamic 1180 Empty; randomUniformLike 1190 Empty; randomUniformStatic 1195 Empty; randomUniformDynamic 1200
Empty; randomBernoulliLike 1210 Empty; randomBernoulliStatic 1215 Empty; randomBernoulliDynamic 1220 Empty;
categoricalDistribution 1230 Empty; reduceL1 1250 Axes; reduceL2 1255 Axes; reduceMax 1260 Axes; reduceMin 1265 Axes;
reduceSum 1270 Axes; reduceProd 1275 Axes; reduceMean 1280 Axes; reduceLogSum 1285 Axes; reduceSumSquare 1290 Axes;
reduceLogSumExp 1295 Axes; whereNonZero 1313 Empty; matrixBandPart 1315 MatrixBandPart; lowerTriangular 1320
UpperTriangular; upperTriangular 1325 UpperTriangular; whereBroadcastable 1330 Empty; layerNormalization 1350
LayerNormalization; NonMaximumSuppression 1400 NonMaximumSuppression; oneHot 1450 OneHot; cumSum 1455 CumSum; clampedReLU
1460 AlphaBeta; argSort 1461 ArgSort; pooling3d 1465 Pooling3D; globalPooling3d 1466 GlobalPooling3D; sliceBySize 1470
SliceBySize; convolution3d 1471 Convolution3D
"""

_MODEL = """
Model: specificationVersion 1 int32; description 2 ModelDescription; pipelineClassifier 200 PipelineOf @type;
    pipelineRegressor 201 PipelineOf @type; pipeline 202 Pipeline @type; neuralNetworkRegressor 303 NeuralNetwork @type;
    neuralNetworkClassifier 403 NeuralNetworkClassifier @type; neuralNetwork 500 NeuralNetwork @type; mlProgram 502 Program
    @type; OTHERS
Pipeline: models 1 Model*; names 2 string*
PipelineOf: pipeline 1 Pipeline
FeatureDescription: name 1 string; type 3 FeatureType
FunctionDescription: name 1 string; input 2 FeatureDescription*; output 3 FeatureDescription*
ModelDescription: input 1 FeatureDescription*; output 10 FeatureDescription*; predictedFeatureName 11 string;
    predictedProbabilitiesName 12 string; functions 20 FunctionDescription*; defaultFunctionName 21 string
FeatureType: int64Type 1 Empty @type; doubleType 2 Empty @type; stringType 3 Empty @type; imageType 4 ImageFeature @type;
    multiArrayType 5 ArrayFeature @type; dictionaryType 6 Empty @type; sequenceType 7 Empty @type; stateType 8 Empty @type
ImageFeature: width 1 int64; height 2 int64; colorSpace 3 int32
ArrayFeature: shape 1 int64*; dataType 2 int32
"""

_NETWORK = """
Empty:
NeuralNetwork: layers 1 Layer*; preprocessing 2 Preprocessing*; arrayInputShapeMapping 5 int32; imageInputShapeMapping 6
    int32
ImageScaler: channelScale 10 float; blueBias 20 float; greenBias 21 float; redBias 22 float; grayBias 30 float
MeanImage: meanImage 1 bytes*
Preprocessing: featureName 1 string; scaler 10 ImageScaler @preprocessor; meanImage 11 MeanImage @preprocessor
Alpha: alpha 1 float
AlphaBeta: alpha 1 float; beta 2 float
AlphaWeight: alpha 1 WeightParams
AlphaBetaWeights: alpha 1 WeightParams; beta 2 WeightParams
Activation: linear 5 AlphaBeta @kind; ReLU 10 Empty @kind; leakyReLU 15 Alpha @kind; thresholdedReLU 20 Alpha @kind; PReLU 25
    AlphaWeight @kind; tanh 30 Empty @kind; scaledTanh 31 AlphaBeta @kind; sigmoid 40 Empty @kind; sigmoidHard 41 AlphaBeta
    @kind; ELU 50 Alpha @kind; softsign 60 Empty @kind; softplus 70 Empty @kind; parametricSoftplus 71 AlphaBetaWeights @kind
Layer: name 1 string; input 2 string*; output 3 string*; outputTensor 5 Tensor*; LAYERS
Tensor: rank 1 uint32; dimValue 2 int64*
Custom: className 10 string
Branch: ifBranch 1 NeuralNetwork; elseBranch 2 NeuralNetwork
Loop: maxLoopIterations 1 uint64; conditionVar 2 string; conditionNetwork 3 NeuralNetwork; bodyNetwork 4 NeuralNetwork
SecondAlpha: alpha 2 float
EdgeSizes: startEdgeSize 1 uint64; endEdgeSize 2 uint64
BorderAmounts: borderAmounts 10 EdgeSizes*
ValidPadding: paddingAmounts 1 BorderAmounts
SamePadding: asymmetryMode 1 int32
SamplingMode: samplingMethod 1 int32
BoxCoordinatesMode: boxMode 1 int32
WeightParams: floatValue 1 bytes*; float16Value 2 bytes; rawValue 30 bytes; int8RawValue 31 bytes; quantization 40
    QuantizationParams
QuantizationParams: numberOfBits 1 uint64; linearQuantization 101 LinearQuantizationParams @QuantizationType;
    lookupTableQuantization 102 LookUpTableQuantizationParams @QuantizationType
LinearQuantizationParams: scale 1 bytes*; bias 2 bytes*
LookUpTableQuantizationParams: floatValue 1 bytes*
Convolution: outputChannels 1 uint64; kernelChannels 2 uint64; nGroups 10 uint64; kernelSize 20 uint64*; stride 30 uint64*;
    dilationFactor 40 uint64*; valid 50 ValidPadding @ConvolutionPaddingType; same 51 SamePadding @ConvolutionPaddingType;
    isDeconvolution 60 bool; hasBias 70 bool; weights 90 WeightParams; bias 91 WeightParams; outputShape 100 uint64*
Convolution3D: outputChannels 1 int32; inputChannels 2 int32; nGroups 10 int32; kernelDepth 20 int32; kernelHeight 21 int32;
    kernelWidth 22 int32; strideDepth 31 int32; strideHeight 32 int32; strideWidth 33 int32; dilationDepth 40 int32;
    dilationHeight 41 int32; dilationWidth 42 int32; hasBias 50 bool; weights 60 WeightParams; bias 61 WeightParams;
    paddingType 70 int32; customPaddingFront 80 int32; customPaddingBack 81 int32; customPaddingTop 82 int32;
    customPaddingBottom 83 int32; customPaddingLeft 84 int32; customPaddingRight 85 int32; isDeconvolution 86 bool;
    outputShape 87 uint64*
InnerProduct: inputChannels 1 uint64; outputChannels 2 uint64; hasBias 10 bool; weights 20 WeightParams; bias 21
    WeightParams; int8DynamicQuantize 22 bool
Embedding: inputDim 1 uint64; outputChannels 2 uint64; hasBias 10 bool; weights 20 WeightParams; bias 21 WeightParams
EmbeddingND: vocabSize 1 uint64; embeddingSize 2 uint64; hasBias 3 bool; weights 20 WeightParams; bias 21 WeightParams
Batchnorm: channels 1 uint64; computeMeanVar 5 bool; instanceNormalization 6 bool; epsilon 10 float; gamma 15 WeightParams;
    beta 16 WeightParams; mean 17 WeightParams; variance 18 WeightParams
ValidCompletePadding: paddingAmounts 10 uint64*
Pooling: type 1 int32; kernelSize 10 uint64*; stride 20 uint64*; valid 30 ValidPadding @PoolingPaddingType; same 31
    SamePadding @PoolingPaddingType; includeLastPixel 32 ValidCompletePadding @PoolingPaddingType; avgPoolExcludePadding 50
    bool; globalPooling 60 bool
Pooling3D: type 1 int32; kernelDepth 2 int32; kernelHeight 3 int32; kernelWidth 4 int32; strideDepth 5 int32; strideHeight 6
    int32; strideWidth 7 int32; paddingType 15 int32; customPaddingFront 8 int32; customPaddingBack 9 int32; customPaddingTop
    10 int32; customPaddingBottom 11 int32; customPaddingLeft 12 int32; customPaddingRight 13 int32; countExcludePadding 14
    bool
GlobalPooling3D: type 1 int32
Fill: value 1 float
Padding: constant 1 Fill @PaddingType; reflection 2 Empty @PaddingType; replication 3 Empty @PaddingType; paddingAmounts 10
    BorderAmounts
Concat: sequenceConcat 100 bool
LRN: alpha 1 float; beta 2 float; localSize 3 uint64; k 4 float
Split: nOutputs 1 uint64
UnaryFunction: type 1 int32; alpha 2 float; epsilon 3 float; shift 4 float; scale 5 float
Upsample: scalingFactor 1 uint64*; fractionalScalingFactor 7 bytes*; mode 5 int32; linearUpsampleMode 6 int32
ResizeBilinear: targetSize 1 uint64*; mode 2 SamplingMode
CropResize: targetSize 1 uint64*; normalizedCoordinates 2 bool; mode 3 SamplingMode; boxIndicesMode 4 BoxCoordinatesMode;
    spatialScale 5 float
Bias: shape 1 uint64*; bias 2 WeightParams
Scale: shapeScale 1 uint64*; scale 2 WeightParams; hasBias 3 bool; shapeBias 4 uint64*; bias 5 WeightParams
LoadConstant: shape 1 uint64*; data 2 WeightParams
L2Normalize: epsilon 1 float
Mode: mode 1 int32
Reshape: targetShape 1 int64*; mode 2 int32
Permute: axis 1 uint64*
ReorganizeData: mode 1 int32; blockSize 2 uint64
Slice: startIndex 1 int64; endIndex 2 int64; stride 3 uint64; axis 4 int32
Reduce: mode 1 int32; epsilon 2 float; axis 3 int32
Crop: cropAmounts 1 BorderAmounts; offset 5 uint64*
DotProduct: cosineSimilarity 1 bool
MeanVarianceNormalize: acrossChannels 1 bool; normalizeVariance 2 bool; epsilon 3 float
SequenceRepeat: nRepetitions 1 uint64
SimpleRecurrent: inputVectorSize 1 uint64; outputVectorSize 2 uint64; activation 10 Activation; sequenceOutput 15 bool;
    hasBiasVector 20 bool; weightMatrix 30 WeightParams; recursionMatrix 31 WeightParams; biasVector 32 WeightParams;
    reverseInput 100 bool
GRU: inputVectorSize 1 uint64; outputVectorSize 2 uint64; activations 10 Activation*; sequenceOutput 15 bool; hasBiasVectors
    20 bool; updateGateWeightMatrix 30 WeightParams; resetGateWeightMatrix 31 WeightParams; outputGateWeightMatrix 32
    WeightParams; updateGateRecursionMatrix 50 WeightParams; resetGateRecursionMatrix 51 WeightParams;
    outputGateRecursionMatrix 52 WeightParams; updateGateBiasVector 70 WeightParams; resetGateBiasVector 71 WeightParams;
    outputGateBiasVector 72 WeightParams; reverseInput 100 bool
LSTMParams: sequenceOutput 10 bool; hasBiasVectors 20 bool; forgetBias 30 bool; hasPeepholeVectors 40 bool;
    coupledInputAndForgetGate 50 bool; cellClipThreshold 60 float
LSTMWeightParams: inputGateWeightMatrix 1 WeightParams; forgetGateWeightMatrix 2 WeightParams; blockInputWeightMatrix 3
    WeightParams; outputGateWeightMatrix 4 WeightParams; inputGateRecursionMatrix 20 WeightParams; forgetGateRecursionMatrix
    21 WeightParams; blockInputRecursionMatrix 22 WeightParams; outputGateRecursionMatrix 23 WeightParams;
    inputGateBiasVector 40 WeightParams; forgetGateBiasVector 41 WeightParams; blockInputBiasVector 42 WeightParams;
    outputGateBiasVector 43 WeightParams; inputGatePeepholeVector 60 WeightParams; forgetGatePeepholeVector 61 WeightParams;
    outputGatePeepholeVector 62 WeightParams
UniDirectionalLSTM: inputVectorSize 1 uint64; outputVectorSize 2 uint64; activations 10 Activation*; params 15 LSTMParams;
    weightParams 20 LSTMWeightParams; reverseInput 100 bool
BiDirectionalLSTM: inputVectorSize 1 uint64; outputVectorSize 2 uint64; activationsForwardLSTM 10 Activation*;
    activationsBackwardLSTM 11 Activation*; params 15 LSTMParams; weightParams 20 LSTMWeightParams*
Transpose: axes 1 uint64*
BatchedMatMul: transposeA 1 bool; transposeB 2 bool; weightMatrixFirstDimension 5 uint64; weightMatrixSecondDimension 6
    uint64; hasBias 7 bool; weights 8 WeightParams; bias 9 WeightParams; int8DynamicQuantize 10 bool
ConcatND: axis 1 int64; interleave 2 bool
Axis: axis 1 int64
Reverse: reverseDim 1 bool*
ReverseSeq: batchAxis 1 int64; sequenceAxis 2 int64
FillStatic: value 1 float; targetShape 2 uint64*
MatrixBandPart: numLower 1 int64; numUpper 2 int64
UpperTriangular: k 1 int64
BroadcastToStatic: targetShape 1 uint64*
Scatter: axis 1 int64; mode 2 int32
RankPreservingReshape: targetShape 1 int64*
ConstantPadding: value 1 float; padAmounts 2 uint64*; padToGivenOutputSizeMode 3 bool
Axes: axes 1 int64*; keepDims 2 bool; reduceAll 3 bool
ExpandDims: axes 1 int64*
Squeeze: axes 1 int64*; squeezeAll 2 bool
TopK: axis 1 int64; K 2 uint64; useBottomK 3 bool
ArgMax: axis 1 int64; removeDim 2 bool
SplitND: axis 1 int64; numSplits 2 uint64; splitSizes 3 uint64*
Clip: minVal 1 float; maxVal 2 float
SliceStatic: beginIds 1 int64*; beginMasks 2 bool*; endIds 3 int64*; endMasks 4 bool*; strides 5 int64*; squeezeMasks 6 bool*
SliceDynamic: beginMasks 2 bool*; endIds 3 int64*; endMasks 4 bool*; strides 5 int64*; squeezeMasks 6 bool*
Tile: reps 1 uint64*
RangeStatic: endValue 1 float; startValue 2 float; stepSizeValue 3 float
RangeDynamic: startValue 2 float; stepSizeValue 3 float
SlidingWindows: axis 1 int64; windowSize 2 uint64; step 3 uint64
LayerNormalization: normalizedShape 1 int64*; eps 2 float; gamma 3 WeightParams; beta 4 WeightParams
NonMaximumSuppression: iouThreshold 1 float; scoreThreshold 2 float; maxBoxes 3 uint64; perClassSuppression 4 bool
ArgSort: axis 1 int64; descending 2 bool
SliceBySize: size 2 int64; axis 3 int64
NeuralNetworkClassifier: layers 1 Layer*; preprocessing 2 Preprocessing*; arrayInputShapeMapping 5 int32;
    imageInputShapeMapping 6 int32; labelProbabilityLayerName 200 string
OneHot: oneHotVectorSize 1 uint64; axis 2 int64; onValue 3 float; offValue 4 float
CumSum: axis 1 int64; excludeFinalSum 2 bool; reverse 3 bool
"""

#: The model intermediate language of ML programs.
_PROGRAM = """
Program: version 1 int64; functions 2 {string Function}
Function: inputs 1 NamedValueType*; opset 2 string; block_specializations 3 {string Block}
Block: inputs 1 NamedValueType*; outputs 2 string*; operations 3 Operation*
Binding: name 1 string @binding; value 2 Value @binding
Argument: arguments 1 Binding*
Operation: type 1 string; inputs 2 {string Argument}; outputs 3 NamedValueType*; blocks 4 Block*; attributes 5 {string Value}
NamedValueType: name 1 string; type 2 ValueType
ValueType: tensorType 1 TensorType @type; listType 2 ListType @type; tupleType 3 TupleType @type; dictionaryType 4
    DictionaryType @type; stateType 5 StateType @type
TensorType: dataType 1 int32; rank 2 int64; dimensions 3 Dimension*
TupleType: types 1 ValueType*
ListType: type 1 ValueType; length 2 Dimension
DictionaryType: keyType 1 ValueType; valueType 2 ValueType
StateType: wrappedType 1 ValueType
ConstantDimension: size 1 uint64
UnknownDimension: variadic 1 bool
Dimension: constant 1 ConstantDimension @dimension; unknown 2 UnknownDimension @dimension
ImmediateValue: tensor 1 TensorValue @value; tuple 2 TupleValue @value; list 3 TupleValue @value; dictionary 4 Empty @value
BlobFileValue: fileName 1 string; offset 2 uint64
Value: type 2 ValueType; immediateValue 3 ImmediateValue @value; blobFileValue 5 BlobFileValue @value
RepeatedFloats: values 1 bytes*
RepeatedDoubles: values 1 bytes*
RepeatedInts: values 1 int32*
RepeatedLongInts: values 1 int64*
RepeatedBools: values 1 bool*
RepeatedStrings: values 1 string*
RepeatedBytes: values 1 bytes
TensorValue: floats 1 RepeatedFloats @value; ints 2 RepeatedInts @value; bools 3 RepeatedBools @value; strings 4
    RepeatedStrings @value; longInts 5 RepeatedLongInts @value; doubles 6 RepeatedDoubles @value; bytes 7 RepeatedBytes
    @value
TupleValue: values 1 Value*
"""


def _table() -> str:
    """The whole table, with the alternatives of models and layers in their places."""
    others = "; ".join(f"{item.strip()} Empty @type" for item in _OTHERS.replace("\n", " ").split(";"))
    layers = "; ".join(f"{item.strip()} @layer" for item in _LAYERS.replace("\n", " ").split(";"))
    return _MODEL.replace("; OTHERS\n", f"; {others}\n") + _NETWORK.replace("; LAYERS\n", f"; {layers}\n") + _PROGRAM


@cache
def coreml() -> dict[str, Any]:
    """The classes of the messages by name. Raises `RelayError` (R0803) where protobuf is missing."""
    return messages(_table(), "relaylang.coreml", "coreml")


__all__ = ["coreml"]
