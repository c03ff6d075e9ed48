// CUDA C++ 17. Compile it with --fmad=false: then sums of products are rounded as the interpreter rounds them, twice.
#pragma nv_diag_suppress 68    // a negative number as an unsigned one
#pragma nv_diag_suppress 177   // what is never referenced
#pragma nv_diag_suppress 186   // comparisons of unsigned numbers with zero
#pragma nv_diag_suppress 550   // what is set and never used
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define UINT32_C(x) x##U
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#else
#include <stdint.h>
#endif
#define R_INLINE static __device__ __forceinline__
#define R_INF __builtin_bit_cast(float, 0x7f800000)
#define R_NAN __builtin_bit_cast(float, 0x7fc00000)
#define r_bits_f32(x) __float_as_int(x)
#define r_f32_bits(x) __int_as_float(x)
