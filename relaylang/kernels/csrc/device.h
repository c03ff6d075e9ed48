// Functions of the kernels' operations that neither language has. Those of integers have a name for each type.

// Division by zero gives zero, and the least number by -1 wraps.
// By as many bits as there are or more, nothing is left of a number that is shifted.
#define R_INTEGER(T) \
R_INLINE T##_t r_div_##T(T##_t n, T##_t d) { \
  return (T##_t)(d == 0 ? 0 : d < 1 && (T##_t)(d + 1) == 0 ? (T##_t)(0 - (uint64_t)n) : n / d); \
} \
R_INLINE T##_t r_mod_##T(T##_t n, T##_t d) { \
  return (T##_t)(d == 0 || (d < 1 && (T##_t)(d + 1) == 0) ? 0 : n % d); \
} \
R_INLINE T##_t r_floor_div_##T(T##_t x, T##_t y) { \
  const T##_t rest = r_mod_##T(x, y); \
  return (T##_t)(r_div_##T(x, y) - (rest != 0 && (rest < 0) != (y < 0))); \
} \
R_INLINE T##_t r_floor_mod_##T(T##_t x, T##_t y) { \
  const T##_t rest = r_mod_##T(x, y); \
  return (T##_t)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest); \
} \
R_INLINE T##_t r_left_shift_##T(T##_t x, T##_t by) { \
  const uint64_t n = (uint64_t)by; \
  return n < 8 * sizeof(x) ? (T##_t)((uint64_t)x << n) : (T##_t)0; \
} \
R_INLINE T##_t r_right_shift_##T(T##_t x, T##_t by) { \
  const uint64_t n = (uint64_t)by; \
  return (T##_t)(n < 8 * sizeof(x) ? x >> n : x < 0 ? -1 : 0); \
} \
R_INLINE T##_t r_pow_int_##T(T##_t of, T##_t by) { \
  uint64_t x = (uint64_t)of, n = (uint64_t)by, y = 1; \
  if (by < 0) { \
    const bool unit = of == 1 || (of < 0 && of + 1 == 0); \
    n = unit ? n & 1 : 0; \
    y = unit ? 1 : 0; \
  } \
  for (; n > 0; n >>= 1, x *= x) \
    if (n & 1) y *= x; \
  return (T##_t)y; \
}
R_INTEGER(int8) R_INTEGER(int16) R_INTEGER(int32) R_INTEGER(int64)
R_INTEGER(uint8) R_INTEGER(uint16) R_INTEGER(uint32) R_INTEGER(uint64)

// A float cut to a whole number; the least one where it does not fit.
R_INLINE int32_t r_whole_i32_float32(float x) { return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN; }
R_INLINE int64_t r_whole_i64_float32(float x) { return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN; }

R_INLINE int64_t r_clamp_index(int64_t i, int64_t low, int64_t high) { return i < low ? low : i > high ? high : i; }

// How many of `size` places, the first at `at` and each `step` after the one before, lie in 0..extent; 1 at least.
R_INLINE int64_t r_taps(int64_t at, int64_t step, int64_t size, int64_t extent) {
  const int64_t low = at < 0 ? (step - 1 - at) / step : 0;
  const int64_t reach = extent > at ? (extent - at + step - 1) / step : 0, high = reach < size ? reach : size;
  return high - low > 1 ? high - low : 1;
}

// Halves by their bits: rounded to the nearest, in doubt to the even one; nans stay nans.
R_INLINE float r_bf16_f32(uint16_t x) { return r_f32_bits((int32_t)((uint32_t)x << 16)); }
R_INLINE uint16_t r_f32_bf16(float x) {
  const uint32_t bits = (uint32_t)r_bits_f32(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)(x != x ? (bits >> 16 & 0x8000) | 0x7fc0 : rounded);
}
R_INLINE float r_f16_f32(uint16_t x) {
  const int32_t sign = (int32_t)((uint32_t)(x & 0x8000) << 16), h = x & 0x7fff;
  const int32_t small = r_bits_f32((float)h * 0x1p-24f), large = (h << 13) + (h >= 0x7c00 ? 0x70000000 : 0x38000000);
  return r_f32_bits((h < 0x400 ? small : large) | sign);
}
R_INLINE uint16_t r_f32_f16(float x) {
  const int32_t bits = r_bits_f32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size >= 0x47800000) return (uint16_t)((size > 0x7f800000 ? 0x7e00 : 0x7c00) | sign);
  const int32_t small = r_bits_f32(r_f32_bits(size) + 0.5f) - 0x3f000000;
  const int32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  return (uint16_t)((size < 0x38800000 ? small : normal) | sign);
}
R_INLINE float r_round_f16(float x) { return r_f16_f32(r_f32_f16(x)); }

// An int32 as a shorter integer, the nearest that there is.
R_INLINE int8_t r_saturate_i8(int32_t x) { return (int8_t)(x < -128 ? -128 : x > 127 ? 127 : x); }
R_INLINE uint8_t r_saturate_u8(int32_t x) { return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x); }
R_INLINE int16_t r_saturate_i16(int32_t x) { return (int16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x); }
R_INLINE uint16_t r_saturate_u16(int32_t x) { return (uint16_t)(x < 0 ? 0 : x > 65535 ? 65535 : x); }

// Fixed point: a number times significand * 2^(shift - 31).
R_INLINE int32_t r_fixed(int32_t x, int64_t significand, int64_t half_, int64_t right) {
  return (int32_t)((x * significand + half_) >> right);
}
R_INLINE int64_t r_fixed_places(int64_t shift) { return shift > 0 ? 31 : shift > -32 ? 31 - shift : 63; }
R_INLINE int64_t r_fixed_product(int64_t x, int64_t significand, int64_t shift) {
  return (int64_t)((uint64_t)x << (shift < 0 ? 0 : shift < 63 ? shift : 63)) * significand;
}
R_INLINE int32_t r_fixed_multiply(int64_t x, int64_t significand, int64_t shift) {
  const int64_t right = r_fixed_places(shift);
  return (int32_t)((r_fixed_product(x, significand, shift) + (INT64_C(1) << (right - 1))) >> right);
}
R_INLINE int32_t r_fixed_multiply_nearest(int32_t x, int64_t significand, int64_t shift) {
  const int64_t right = r_fixed_places(shift), product = r_fixed_product(x, significand, shift);
  return (int32_t)((product + (INT64_C(1) << (right - 1)) - (product < 0)) >> right);
}

#ifdef R_DOUBLE
R_INLINE int32_t r_whole_i32_float64(double x) { return x >= -0x1p31 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }
R_INLINE int64_t r_whole_i64_float64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }

// Through a float whose last bit says that something was cut, so that the half is rounded once.
R_INLINE uint16_t r_f64_f16(double x) {
  const float f = (float)x;
  const bool exact = (double)f == x || x != x;
  const int32_t bits = r_bits_f32(f);
  return r_f32_f16(exact ? f : r_f32_bits((fabs((double)f) > fabs(x) ? bits - 1 : bits) | 1));
}

// The parts of a factor in fixed point; halves are rounded away from zero.
R_INLINE int64_t r_fixed_significand(double m) {
  int shift;
  const int64_t s = (int64_t)round(frexp(m, &shift) * 2147483648.0);
  return s == INT64_C(2147483648) ? s / 2 : s;
}
R_INLINE int64_t r_fixed_shift(double m) {
  int shift;
  return (int64_t)round(frexp(m, &shift) * 2147483648.0) == INT64_C(2147483648) ? shift + 1 : shift;
}
R_INLINE int64_t r_fixed_right(double m) {
  const int64_t shift = r_fixed_shift(m);
  return shift > 30 ? 0 : shift > -32 ? 31 - shift : 63;
}
R_INLINE int32_t r_fixed_low(double m) {
  const int64_t more = r_fixed_shift(m) - 31;
  return (int32_t)(uint32_t)((uint64_t)r_fixed_significand(m) << (more < 0 ? 0 : more < 32 ? more : 32));
}
#endif
