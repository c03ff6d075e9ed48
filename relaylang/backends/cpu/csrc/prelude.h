//@ prelude
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <math.h>
// A loop whose iterations do not depend on each other. What compilers warn about in code that people write is no news here.
#if defined(__clang__)
#define R_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#define R_KERNEL R_LOCAL
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define R_IVDEP _Pragma("GCC ivdep")
// A function whose callers learn nothing of its body. GCC 12 takes restrict pointers of two functions for apart even where
// both come from one address, and leaves out a call whose results the next one reads.
#define R_KERNEL __attribute__((noipa)) R_LOCAL
#endif
// Functions of a number that loops become vectors with. Compilers leave such calls where a function is long.
#define R_INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"

//@ r_failed
// What a kernel says of its failure becomes what its program says: an error's number below 0, and the number of the site.
static void r_failed(int64_t* status, int64_t error, int64_t first) {
  status[0] = (int64_t)((uint64_t)(first + status[0] - 1) << 32 | (uint32_t)-error);
}

//@ r_said
// Pass on how kernels failed, with the number of their first site. Returns an error's number, `external` for other code's.
static int32_t r_said(int64_t* status, const void* said, int64_t first, int32_t external) {
  memcpy(status, said, 64);
  if ((int32_t)status[0] > 0) return external;
  status[0] += (int64_t)((uint64_t)first << 32);
  return -(int32_t)status[0];
}

//@ r_whole_i32 r_whole_i32_float32 r_whole_i32_float64
// A float cut to a whole number; the least one where it does not fit, as x86's instructions have it. Compilers take a
// conversion that does not fit for anything, so none reaches them. Nor does a fraction: gcc 12 takes a conversion to an
// integer and back for a truncation, which keeps the sign of zero.
R_INLINE int32_t r_whole_i32_float32(float x) { return (int32_t)(__builtin_fabsf(x) < 1 ? 0 : __builtin_fabsf(x) < 0x1p31f ? x : -0x1p31f); }
R_INLINE int32_t r_whole_i32_float64(double x) { return (int32_t)(__builtin_fabs(x) < 1 ? 0 : __builtin_fabs(x) < 0x1p31 ? x : -0x1p31); }

//@ r_whole_i64 r_whole_i64_float32 r_whole_i64_float64
R_INLINE int64_t r_whole_i64_float32(float x) { return (int64_t)(__builtin_fabsf(x) < 1 ? 0 : __builtin_fabsf(x) < 0x1p63f ? x : -0x1p63f); }
R_INLINE int64_t r_whole_i64_float64(double x) { return (int64_t)(__builtin_fabs(x) < 1 ? 0 : __builtin_fabs(x) < 0x1p63 ? x : -0x1p63); }

//@ r_clamp_index
static inline int64_t r_clamp_index(int64_t i, int64_t low, int64_t high) {
  return i < low ? low : i > high ? high : i;
}

//@ r_taps
// How many of `size` places, the first at `at` and each `step` behind the one before, lie in 0..extent; 1 at least.
static inline long r_taps(long at, long step, long size, long extent) {
  long low = at < 0 ? (step - 1 - at) / step : 0;
  long high = extent > at ? (extent - at + step - 1) / step : 0;
  high = high < size ? high : size;
  return high - low > 1 ? high - low : 1;
}

//@ r_bits_f32
R_INLINE int32_t r_bits_f32(float x) { union { float f; int32_t i; } u; u.f = x; return u.i; }

//@ r_f32_bits
R_INLINE float r_f32_bits(int32_t x) { union { float f; int32_t i; } u; u.i = x; return u.f; }

//@ r_bf16_f32: r_f32_bits
R_INLINE float r_bf16_f32(uint16_t x) { return r_f32_bits((int32_t)((uint32_t)x << 16)); }

//@ r_f32_bf16: r_bits_f32
// To the nearest, halves to even; nans stay nans.
R_INLINE uint16_t r_f32_bf16(float x) {
  const uint32_t bits = (uint32_t)r_bits_f32(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)(x != x ? (bits >> 16 & 0x8000) | 0x7fc0 : rounded);
}

//@ r_f16_f32: r_bits_f32 r_f32_bits
// Half precision by the bits, so that loops become vector code everywhere.
R_INLINE float r_f16_f32(uint16_t x) {
  const int32_t sign = (int32_t)((uint32_t)(x & 0x8000) << 16), h = x & 0x7fff;
  const int32_t small = r_bits_f32((float)h * 0x1p-24f), large = (h << 13) + (h >= 0x7c00 ? 0x70000000 : 0x38000000);
  return r_f32_bits((h < 0x400 ? small : large) | sign);
}

//@ r_f32_f16: r_bits_f32 r_f32_bits
// To the nearest, halves to even; nans stay nans. The sum's bits are those of a number below the least normal one.
R_INLINE uint16_t r_f32_f16(float x) {
  const int32_t bits = r_bits_f32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  const int32_t small = r_bits_f32(r_f32_bits(size) + 0.5f) - 0x3f000000;
  const int32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13, large = size > 0x7f800000 ? 0x7e00 : 0x7c00;
  return (uint16_t)((size < 0x38800000 ? small : size >= 0x47800000 ? large : normal) | sign);
}

//@ r_f64_f16: r_bits_f32 r_f32_bits r_f32_f16
// Through a float whose last bit says that something was cut, so that the half is rounded once.
static inline float r_odd_f32(double x) {
  float f = (float)x;
  if ((double)f == x || x != x) return f;
  int32_t bits = r_bits_f32(f);
  return r_f32_bits((fabs((double)f) > fabs(x) ? bits - 1 : bits) | 1);
}
#define r_f64_f16(x) r_f32_f16(r_odd_f32(x))

//@ r_fma_f32
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)  // clang has no first macro
#define r_fma_f32(x, y, z) __builtin_fmaf((x), (y), (z))
#else
#define r_fma_f32(x, y, z) ((x) * (y) + (z))
#endif

//@ r_exp_f32 r_exp_parts: r_f32_bits r_fma_f32
// exp without branches, so that loops over it become vector code: 2^n * p(r), n and r from Cody and Waite's reduction.
R_INLINE float r_exp_parts(float x, int32_t* e) {
  float n = __builtin_rintf(x * 0x1.715476p+0f);
  float r = r_fma_f32(n, -0x1.7f7d1cp-20f, r_fma_f32(n, -0x1.62e400p-1f, x));
  float p = 0x1.a01a02p-13f;
  p = r_fma_f32(p, r, 0x1.6c16c2p-10f);
  p = r_fma_f32(p, r, 0x1.111112p-7f);
  p = r_fma_f32(p, r, 0x1.555556p-5f);
  p = r_fma_f32(p, r, 0x1.555556p-3f);
  p = r_fma_f32(p, r, 0.5f);
  *e = (int32_t)n;
  return r_fma_f32(p * r, r, r) + 1.0f;
}
R_INLINE float r_exp_f32(float x) {
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  int32_t e, h;
  float p = r_exp_parts(c, &e);
  // The scale is applied in two halves: 2^128 and 2^-149 are no floats of their own.
  h = e >> 1;
  return p * r_f32_bits((h + 127) << 23) * r_f32_bits((e - h + 127) << 23);
}

//@ r_exp_near: r_exp_f32 r_f32_bits
// exp of numbers between -87 and 88.
R_INLINE float r_exp_near(float x) {
  int32_t e;
  float p = r_exp_parts(x, &e);
  return p * r_f32_bits((e + 127) << 23);
}

//@ r_log_f32: r_bits_f32 r_f32_bits r_fma_f32
// log for positive finite numbers by the mantissa's polynomial; zero, infinity and negative numbers by selection.
R_INLINE float r_log_f32(float x) {
  int32_t small = x < 0x1p-126f;
  float y = small ? x * 0x1p24f : x;
  int32_t bits = r_bits_f32(y);
  int32_t e = ((bits - 0x3f3504f3) >> 23);
  float m = r_f32_bits(bits - (int32_t)((uint32_t)e << 23)) - 1.0f;
  float n = (float)(small ? e - 24 : e);
  float s = m / (2.0f + m), z = s * s;
  float p = 0x1.c71c72p-4f;
  p = r_fma_f32(p, z, 0x1.24924ap-3f);
  p = r_fma_f32(p, z, 0x1.99999ap-3f);
  p = r_fma_f32(p, z, 0x1.555556p-2f);
  float f = r_fma_f32(2.0f * s * z, p, 2.0f * s);
  float out = n * 0x1.62e400p-1f + (f + n * 0x1.7f7d1cp-20f);
  out = x == 0.0f ? -__builtin_inff() : out;
  out = x < 0.0f ? __builtin_nanf("") : out;
  return x == __builtin_inff() || x != x ? x : out;
}

//@ r_tanh_f32: r_exp_near r_fma_f32
R_INLINE float r_tanh_f32(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = r_fma_f32(p, z, 2.06390887954e-2f);
  p = r_fma_f32(p, z, -5.37397155531e-2f);
  p = r_fma_f32(p, z, 1.33314422036e-1f);
  p = r_fma_f32(p, z, -3.33332819422e-1f);
  float near = r_fma_f32(x * z, p, x);
  float far = 1.0f - 2.0f / (r_exp_near(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
  return __builtin_copysignf(a < 0.625f ? near : far, x);
}

//@ r_atanh_f32: r_fma_f32 r_log_f32
// atanh by a polynomial up to a half, so that small results keep their digits; by a logarithm beyond.
R_INLINE float r_atanh_f32(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float p = 0x1.753b9ep-3f;
  p = r_fma_f32(p, z, 0x1.506814p-4f);
  p = r_fma_f32(p, z, 0x1.2c8e5cp-3f);
  p = r_fma_f32(p, z, 0x1.992496p-3f);
  p = r_fma_f32(p, z, 0x1.555668p-2f);
  float near = r_fma_f32(x * z, p, x);
  float far = 0.5f * r_log_f32((1.0f + a) / (1.0f - a));
  return a < 0.5f ? near : __builtin_copysignf(far, x);
}

//@ r_erf_f32: r_exp_near r_fma_f32
// erf by polynomials, within two units in the last place: of x near zero; of log(1 - erf) beyond, up to where erf is 1.
R_INLINE float r_erf_f32(float x) {
  float a = __builtin_fabsf(x), z = x * x, t = a > 4.0f ? 4.0f : a;
  float p = -0x1.3bb750p-11f;
  p = r_fma_f32(p, z, 0x1.47a764p-8f);
  p = r_fma_f32(p, z, -0x1.b69ee6p-6f);
  p = r_fma_f32(p, z, 0x1.ce1be0p-4f);
  p = r_fma_f32(p, z, -0x1.8126eep-2f);
  p = r_fma_f32(p, z, 0x1.06eba6p-3f);
  float near = r_fma_f32(p, x, x);
  float q = 0x1.98d53ep-13f;
  q = r_fma_f32(q, t, -0x1.8da1d4p-9f);
  q = r_fma_f32(q, t, 0x1.6b8eacp-6f);
  q = r_fma_f32(q, t, -0x1.a9654ep-4f);
  q = r_fma_f32(q, t, -0x1.4647b2p-1f);
  q = r_fma_f32(q, t, -0x1.20ac30p+0f);
  q = r_fma_f32(q, t, -0x1.b220d8p-13f);
  float far = 1.0f - r_exp_near(q);
  return a < 0.92f ? near : __builtin_copysignf(far, x);
}

//@ r_sigmoid_f32: r_exp_near
// Below -89 it is zero, above 17 one.
R_INLINE float r_sigmoid_f32(float x) {
  float c = x < -89.0f ? -89.0f : x;
  c = c > 17.5f ? 17.5f : c;
  return 1.0f / (1.0f + r_exp_near(-c));
}

//@ r_div
// Division towards zero. By zero it is zero, and the least number by -1 wraps: neither may end the process.
#define r_div(a, b) ({ __typeof__(a) n_ = (a); __typeof__(b) d_ = (b); \
  d_ == 0 ? 0 : (d_ < 1 && d_ + 1 == 0) ? (__typeof__(a))(0 - n_) : n_ / d_; })

//@ r_mod
#define r_mod(a, b) ({ __typeof__(a) n_ = (a); __typeof__(b) d_ = (b); \
  d_ == 0 || (d_ < 1 && d_ + 1 == 0) ? 0 : n_ % d_; })

//@ r_floor_div: r_div r_mod
#define r_floor_div(a, b) ({ __typeof__(a) x_ = (a); __typeof__(b) y_ = (b); __typeof__(a) r_ = r_mod(x_, y_); \
  r_div(x_, y_) - (r_ != 0 && ((r_ < 0) != (y_ < 0))); })

//@ r_floor_mod: r_mod
#define r_floor_mod(a, b) ({ __typeof__(a) x_ = (a); __typeof__(b) y_ = (b); __typeof__(a) r_ = r_mod(x_, y_); \
  r_ != 0 && ((r_ < 0) != (y_ < 0)) ? r_ + y_ : r_; })

//@ r_left_shift
// By as many bits as there are or more, nothing is left; C leaves that open.
#define r_left_shift(a, b) ({ __typeof__(a) x_ = (a); uint64_t n_ = (uint64_t)(b); \
  n_ < 8 * sizeof(x_) ? (__typeof__(a))(x_ << n_) : (__typeof__(a))0; })

//@ r_right_shift
#define r_right_shift(a, b) ({ __typeof__(a) x_ = (a); uint64_t n_ = (uint64_t)(b); \
  n_ < 8 * sizeof(x_) ? (__typeof__(a))(x_ >> n_) : (__typeof__(a))(x_ < 0 ? -1 : 0); })

//@ r_round_f32
// To the nearest whole number, halves away from zero; without branches.
R_INLINE float r_round_f32(float x) {
  float whole = __builtin_truncf(x);
  return __builtin_fabsf(x - whole) >= 0.5f ? whole + __builtin_copysignf(1.0f, x) : whole;
}

//@ r_pow_int
// A negative power is the quotient of 1 by a positive one: of 1 and -1 alone it is not zero.
#define r_pow_int(a, b) ({ const __typeof__(a) of_ = (a), by_ = (b); uint64_t x_ = (uint64_t)of_, n_ = (uint64_t)by_, y_ = 1; \
  if (by_ < 0) n_ = of_ == 1 || (of_ < 0 && of_ + 1 == 0) ? n_ & 1 : (y_ = 0); \
  for (; n_ > 0; n_ >>= 1, x_ *= x_) if (n_ & 1) y_ *= x_; \
  (__typeof__(a))y_; })

//@ r_quotient_f32
// A quotient whose nearest whole number counts, by the two parts of the divisor's reciprocal.
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)  // clang has no first macro
R_INLINE float r_quotient_f32(float x, float divisor, float high, float low) { return __builtin_fmaf(x, high, x * low); }
#else
R_INLINE float r_quotient_f32(float x, float divisor, float high, float low) { return x / divisor; }
#endif

//@ r_fixed
// A number times a significand, shifted to the right, with a half for rounding.
R_INLINE int32_t r_fixed(int32_t x, int64_t significand, int64_t half, int64_t right) {
  return (int32_t)((x * significand + half) >> right);
}

//@ r_saturate r_saturate_i8 r_saturate_u8 r_saturate_i16 r_saturate_u16
// A number as a shorter one, the nearest that there is.
R_INLINE int8_t r_saturate_i8(int32_t x) { x = x < -128 ? -128 : x; return (int8_t)(x > 127 ? 127 : x); }
R_INLINE uint8_t r_saturate_u8(int32_t x) { x = x < 0 ? 0 : x; return (uint8_t)(x > 255 ? 255 : x); }
R_INLINE int16_t r_saturate_i16(int32_t x) { x = x < -32768 ? -32768 : x; return (int16_t)(x > 32767 ? 32767 : x); }
R_INLINE uint16_t r_saturate_u16(int32_t x) { x = x < 0 ? 0 : x; return (uint16_t)(x > 65535 ? 65535 : x); }

//@ r_fixed_significand
// A real number as significand * 2^(shift - 31), halves rounded away from zero.
static inline int64_t r_fixed_significand(double m) {
  int shift;
  int64_t s = (int64_t)round(frexp(m, &shift) * 2147483648.0);
  return s == INT64_C(2147483648) ? s / 2 : s;
}

//@ r_fixed_shift
static inline int64_t r_fixed_shift(double m) {
  int shift;
  int64_t s = (int64_t)round(frexp(m, &shift) * 2147483648.0);
  return s == INT64_C(2147483648) ? shift + 1 : shift;
}

//@ r_fixed_right: r_fixed_shift
// How far a product with the significand is shifted to the right. A shift to the left makes that less; beyond it, it is
// part of the significand (r_fixed_low), of which the low 32 bits count.
static inline int64_t r_fixed_right(double m) {
  const int64_t shift = r_fixed_shift(m);
  return shift > 30 ? 0 : shift > -32 ? 31 - shift : 63;
}

//@ r_fixed_low: r_fixed_shift r_fixed_significand
static inline int32_t r_fixed_low(double m) {
  const int64_t more = r_fixed_shift(m) - 31;
  return (int32_t)(uint32_t)((uint64_t)r_fixed_significand(m) << (more < 0 ? 0 : more < 32 ? more : 32));
}

//@ r_fixed_multiply
static inline int32_t r_fixed_multiply(int64_t x, int64_t significand, int64_t shift) {
  int64_t left = shift > 0 ? (shift < 63 ? shift : 63) : 0;
  int64_t right = shift > 0 ? 31 : shift > -32 ? 31 - shift : 63;  // beyond that nothing is left
  int64_t product = (int64_t)((uint64_t)x << left) * significand;
  return (int32_t)((product + (INT64_C(1) << (right - 1))) >> right);
}

//@ r_fixed_multiply_nearest
static inline int32_t r_fixed_multiply_nearest(int32_t x, int64_t significand, int64_t shift) {
  int64_t left = shift > 0 ? (shift < 63 ? shift : 63) : 0;
  int64_t right = shift > 0 ? 31 : shift > -32 ? 31 - shift : 63;  // beyond that nothing is left
  int64_t product = (int64_t)((uint64_t)(int64_t)x << left) * significand;
  int64_t half = INT64_C(1) << (right - 1);
  return (int32_t)((product + (product >= 0 ? half : half - 1)) >> right);
}
