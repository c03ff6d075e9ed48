// OpenCL C 1.2. Sums of products are rounded as the interpreter rounds them, twice.
#pragma OPENCL FP_CONTRACT OFF
#ifdef R_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wunused-parameter"
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-but-set-variable"
#pragma clang diagnostic ignored "-Wtautological-compare"
#endif
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define INT32_MIN INT_MIN
#define INT64_MIN LONG_MIN
#define UINT32_C(x) x##U
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define R_INLINE static inline
#define R_INF INFINITY
#define R_NAN NAN
#define r_bits_f32(x) as_int(x)
#define r_f32_bits(x) as_float(x)
