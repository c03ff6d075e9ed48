//@ r_widen r_widen_i8 r_widen_u8 r_widen_i16 r_widen_u16: r_simd
// As many 8-bit or 16-bit numbers as a vector has lanes, from any address. gcc converts such vectors one by one.
#if !defined(__clang__) && defined(__AVX512F__) && R_LANES == 16
typedef char r_bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef short r_shorts __attribute__((vector_size(32), aligned(2), may_alias));
#define r_widen_i8(p) (r_vi)__builtin_ia32_pmovsxbd512_mask(*(const r_bytes*)(p), (r_vi){0}, (unsigned short)-1)
#define r_widen_u8(p) (r_vi)__builtin_ia32_pmovzxbd512_mask(*(const r_bytes*)(p), (r_vi){0}, (unsigned short)-1)
#define r_widen_i16(p) (r_vi)__builtin_ia32_pmovsxwd512_mask(*(const r_shorts*)(p), (r_vi){0}, (unsigned short)-1)
#define r_widen_u16(p) (r_vi)__builtin_ia32_pmovzxwd512_mask(*(const r_shorts*)(p), (r_vi){0}, (unsigned short)-1)
#elif !defined(__clang__) && defined(__AVX2__) && R_LANES == 8
typedef long long r_eight __attribute__((aligned(1), may_alias));
typedef long long r_eights __attribute__((vector_size(16)));
typedef char r_bytes __attribute__((vector_size(16)));
typedef short r_shorts __attribute__((vector_size(16), aligned(2), may_alias));
#define r_widen_i8(p) (r_vi)__builtin_ia32_pmovsxbd256((r_bytes)(r_eights){*(const r_eight*)(p), 0})
#define r_widen_u8(p) (r_vi)__builtin_ia32_pmovzxbd256((r_bytes)(r_eights){*(const r_eight*)(p), 0})
#define r_widen_i16(p) (r_vi)__builtin_ia32_pmovsxwd256(*(const r_shorts*)(p))
#define r_widen_u16(p) (r_vi)__builtin_ia32_pmovzxwd256(*(const r_shorts*)(p))
#elif !defined(__clang__) && defined(__SSE2__) && R_LANES == 4
// Each number beside itself, then shifted back.
typedef char r_bytes __attribute__((vector_size(16)));
typedef short r_shorts __attribute__((vector_size(16)));
typedef int32_t r_four __attribute__((aligned(1), may_alias));
typedef int64_t r_eight __attribute__((aligned(1), may_alias));
typedef int64_t r_eights __attribute__((vector_size(16)));
#define R_TWICE_BYTES(x) ({ const r_bytes b_ = (x); __builtin_shuffle(b_, (r_bytes){0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}); })
#define R_TWICE(x) ({ const r_shorts s_ = (x); (r_vi)__builtin_shuffle(s_, (r_shorts){0, 0, 1, 1, 2, 2, 3, 3}); })
#define R_FOUR(p) (r_shorts)R_TWICE_BYTES((r_bytes)(r_vi){*(const r_four*)(p)})
#define R_EIGHT(p) (r_shorts)(r_eights){*(const r_eight*)(p)}
#define r_widen_i8(p) (R_TWICE(R_FOUR(p)) >> 24)
#define r_widen_u8(p) (R_TWICE(R_FOUR(p)) & 255)
#define r_widen_i16(p) (R_TWICE(R_EIGHT(p)) >> 16)
#define r_widen_u16(p) (R_TWICE(R_EIGHT(p)) & 65535)
#else
#define r_widen_i8(p) __builtin_convertvector(*(const r_vb*)(p), r_vi)
#define r_widen_u8(p) __builtin_convertvector(*(const r_vub*)(p), r_vi)
#define r_widen_i16(p) __builtin_convertvector(*(const r_vh*)(p), r_vi)
#define r_widen_u16(p) __builtin_convertvector(*(const r_vuh*)(p), r_vi)
#endif

//@ r_widen_longs r_widen_long_i8 r_widen_long_u8 r_widen_long_i16 r_widen_long_u16: r_simd
// As many as a vector has numbers of 64 bits.
#define R_WIDEN_LONGS(p, ty) ({ typedef ty r_few __attribute__((vector_size(sizeof(ty) * R_LANES / 2), aligned(sizeof(ty)), may_alias)); \
  __builtin_convertvector(*(const r_few*)(p), r_vl); })
#define r_widen_long_i8(p) R_WIDEN_LONGS(p, int8_t)
#define r_widen_long_u8(p) R_WIDEN_LONGS(p, uint8_t)
#define r_widen_long_i16(p) R_WIDEN_LONGS(p, int16_t)
#define r_widen_long_u16(p) R_WIDEN_LONGS(p, uint16_t)

//@ r_lanes r_greater_vi r_lesser_vi r_greater_vf r_lesser_vf r_number_vf r_quotient_vf r_round_vf r_fixed_vi r_narrow_i8 r_narrow_u8 r_narrow_i16 r_narrow_u16 r_saturated_i8 r_saturated_u8 r_saturated_i16 r_saturated_u16 r_saturated_pair_i8 r_saturated_pair_u8 r_saturated_pair_i16 r_saturated_pair_u16: r_halves r_quotient_f32 r_saturate r_simd
// Vector loops that are written out. The greater and the lesser of x and y, which is y where one of them is a nan.
#if defined(__AVX512F__) && R_LANES == 16 && !defined(__clang__)
#define r_greater_vi(x, y) (r_vi)__builtin_ia32_pmaxsd512_mask((r_vi)(x), (r_vi)(y), (r_vi){0}, (unsigned short)-1)
#define r_lesser_vi(x, y) (r_vi)__builtin_ia32_pminsd512_mask((r_vi)(x), (r_vi)(y), (r_vi){0}, (unsigned short)-1)
#elif defined(__AVX2__) && R_LANES == 8 && !defined(__clang__)
#define r_greater_vi(x, y) (r_vi)__builtin_ia32_pmaxsd256((r_vi)(x), (r_vi)(y))
#define r_lesser_vi(x, y) (r_vi)__builtin_ia32_pminsd256((r_vi)(x), (r_vi)(y))
#elif __has_builtin(__builtin_elementwise_max)
#define r_greater_vi(x, y) __builtin_elementwise_max((r_vi)(x), (r_vi)(y))
#define r_lesser_vi(x, y) __builtin_elementwise_min((r_vi)(x), (r_vi)(y))
#else
#define r_greater_vi(x, y) ({ const r_vi x_ = (x), y_ = (y), m_ = x_ > y_; (x_ & m_) | (y_ & ~m_); })
#define r_lesser_vi(x, y) ({ const r_vi x_ = (x), y_ = (y), m_ = x_ < y_; (x_ & m_) | (y_ & ~m_); })
#endif
#if defined(__AVX512F__) && R_LANES == 16 && !defined(__clang__)
#define r_greater_vf(x, y) (r_vf)__builtin_ia32_maxps512_mask((r_vf)(x), (r_vf)(y), (r_vf){0}, (unsigned short)-1, 4)
#define r_lesser_vf(x, y) (r_vf)__builtin_ia32_minps512_mask((r_vf)(x), (r_vf)(y), (r_vf){0}, (unsigned short)-1, 4)
#elif defined(__AVX512F__) && R_LANES == 16 && __has_builtin(__builtin_ia32_maxps512) && __has_builtin(__builtin_ia32_minps512)
#define r_greater_vf(x, y) (r_vf)__builtin_ia32_maxps512((r_vf)(x), (r_vf)(y), 4)
#define r_lesser_vf(x, y) (r_vf)__builtin_ia32_minps512((r_vf)(x), (r_vf)(y), 4)
#elif defined(__AVX2__) && R_LANES == 8 && R_HAS(__builtin_ia32_maxps256) && R_HAS(__builtin_ia32_minps256)
#define r_greater_vf(x, y) (r_vf)__builtin_ia32_maxps256((r_vf)(x), (r_vf)(y))
#define r_lesser_vf(x, y) (r_vf)__builtin_ia32_minps256((r_vf)(x), (r_vf)(y))
#else
#define r_greater_vf(x, y) ({ const r_vf x_ = (x), y_ = (y); const r_vi m_ = x_ > y_; (r_vf)(((r_vi)x_ & m_) | ((r_vi)y_ & ~m_)); })
#define r_lesser_vf(x, y) ({ const r_vf x_ = (x), y_ = (y); const r_vi m_ = x_ < y_; (r_vf)(((r_vi)x_ & m_) | ((r_vi)y_ & ~m_)); })
#endif
// Another number for a nan.
#define r_number_vf(x, y) ({ const r_vf n_ = (x); const r_vi m_ = n_ == n_; (r_vf)(((r_vi)n_ & m_) | ((r_vi)(y) & ~m_)); })
// As r_quotient_f32.
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)  // clang has no first macro
#define r_quotient_vf(x, divisor, high, low) ({ const r_vf q_ = (x); r_fma_vf(q_, (high), q_ * (low)); })
#else
#define r_quotient_vf(x, divisor, high, low) ((x) / (divisor))
#endif
// To the nearest whole number, halves away from zero: cut, after adding the greatest number below a half.
#if defined(__AVX512F__) && R_LANES == 16 && R_HAS(__builtin_ia32_rndscaleps_mask)
#define r_cut_vf(x) (r_vf)__builtin_ia32_rndscaleps_mask((r_vf)(x), 11, (r_vf){0}, (unsigned short)-1, 4)
#elif defined(__AVX2__) && R_LANES == 8 && R_HAS(__builtin_ia32_roundps256)
#define r_cut_vf(x) (r_vf)__builtin_ia32_roundps256((r_vf)(x), 11)
#elif __has_builtin(__builtin_elementwise_trunc)
#define r_cut_vf(x) __builtin_elementwise_trunc((r_vf)(x))
#else
#define r_cut_vf(x) ({ r_vf c_ = (x); for (int n_ = 0; n_ < R_LANES; n_++) c_[n_] = __builtin_truncf(c_[n_]); c_; })
#endif
#define r_round_vf(x) ({ const r_vf r_ = (x); \
  r_cut_vf(r_ + (r_vf)(((r_vi)r_ & (int32_t)0x80000000) | (r_vi)r_splat_vf(0x1.fffffep-2f))); })
// The upper 32 bits of the products of numbers. Those of y that are odd are the even ones of `next`.
#if R_LANES == 16
#define r_odd_vi(x, y) r_mix_vi((x), (y), 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#elif R_LANES == 8
#define r_odd_vi(x, y) r_mix_vi((x), (y), 1, 9, 3, 11, 5, 13, 7, 15)
#endif
typedef uint64_t r_vul __attribute__((vector_size(4 * R_LANES)));
typedef long long r_longs __attribute__((vector_size(4 * R_LANES)));
#if defined(__AVX512F__) && R_LANES == 16 && !defined(__clang__)
#define r_even_products(x, y) (r_vi)__builtin_ia32_pmuldq512_mask((r_vi)(x), (r_vi)(y), (r_longs){0}, (unsigned char)-1)
#elif defined(__AVX512F__) && R_LANES == 16 && __has_builtin(__builtin_ia32_pmuldq512)
#define r_even_products(x, y) (r_vi)__builtin_ia32_pmuldq512((r_vi)(x), (r_vi)(y))
#elif defined(__AVX2__) && R_LANES == 8 && __has_builtin(__builtin_ia32_pmuldq256)
#define r_even_products(x, y) (r_vi)__builtin_ia32_pmuldq256((r_vi)(x), (r_vi)(y))
#endif
#ifdef r_even_products
#define r_high_vi(x, y, next) ({ const r_vi x_ = (x), y_ = (y); \
  r_odd_vi(r_even_products(x_, y_), r_even_products((r_vul)x_ >> 32, next)); })
#else
static inline r_vi r_high_vi(r_vi x, r_vi y, r_vi next) {
  for (int n = 0; n < R_LANES; n++) x[n] = (int32_t)((int64_t)x[n] * y[n] >> 32);
  return x;
}
#endif
// Numbers times a significand, shifted to the right by 32 and `right`, with a half for rounding in units of 2^32.
#define r_fixed_vi(x, significand, next, half, right) ((r_high_vi(x, significand, next) + (half)) >> (right))
// Write numbers as short ones: cut to their bits, or the nearest that there are.
#if defined(__AVX512F__) && R_LANES == 16 && R_HAS(__builtin_ia32_pmovdb512_mask) && R_HAS(__builtin_ia32_pmovusdw512_mask)
typedef char r_octets __attribute__((vector_size(16)));
typedef char r_octetsu __attribute__((vector_size(16), aligned(1), may_alias));
typedef short r_words16 __attribute__((vector_size(32)));
typedef short r_words16u __attribute__((vector_size(32), aligned(2), may_alias));
#define R_OCTETS(p, how, x) (void)(*(r_octetsu*)(p) = (r_octetsu)__builtin_ia32_pmov##how##512_mask((r_vi)(x), (r_octets){0}, (unsigned short)-1))
#define R_WORDS(p, how, x) (void)(*(r_words16u*)(p) = (r_words16u)__builtin_ia32_pmov##how##512_mask((r_vi)(x), (r_words16){0}, (unsigned short)-1))
#define r_narrow_i8(p, x) R_OCTETS(p, db, x)
#define r_narrow_u8(p, x) R_OCTETS(p, db, x)
#define r_narrow_i16(p, x) R_WORDS(p, dw, x)
#define r_narrow_u16(p, x) R_WORDS(p, dw, x)
#define r_saturated_i8(p, x) R_OCTETS(p, sdb, x)
#define r_saturated_u8(p, x) R_OCTETS(p, usdb, r_greater_vi(x, (r_vi){0}))
#define r_saturated_i16(p, x) R_WORDS(p, sdw, x)
#define r_saturated_u16(p, x) R_WORDS(p, usdw, r_greater_vi(x, (r_vi){0}))
#elif defined(__AVX2__) && R_LANES == 8 && __has_builtin(__builtin_ia32_extract128i256) && \
  __has_builtin(__builtin_ia32_packssdw128) && __has_builtin(__builtin_ia32_pshufd)
typedef int32_t r_quarter __attribute__((vector_size(16)));
typedef int64_t r_halves __attribute__((vector_size(16)));
typedef short r_words8 __attribute__((vector_size(16)));
typedef short r_words16 __attribute__((vector_size(32)));
typedef short r_words8u __attribute__((vector_size(16), aligned(2), may_alias));
typedef int64_t r_eightu __attribute__((aligned(1), may_alias));
#define R_HALF(x, n) (r_quarter)__builtin_ia32_extract128i256((r_longs)(x), n)
#define R_WORDS(x, how) ({ const r_vi w_ = (x); (r_words8)__builtin_ia32_pack##how##dw128(R_HALF(w_, 0), R_HALF(w_, 1)); })
#define R_OCTETS(p, x, how) ({ const r_words8 o_ = R_WORDS(x, ss); \
  (void)(*(r_eightu*)(p) = ((r_halves)__builtin_ia32_pack##how##wb128(o_, o_))[0]); })
#define r_saturated_i8(p, x) R_OCTETS(p, x, ss)
#define r_saturated_u8(p, x) R_OCTETS(p, x, us)
#define r_saturated_i16(p, x) (void)(*(r_words8u*)(p) = (r_words8u)R_WORDS(x, ss))
// Two vectors of them at once.
typedef int32_t r_quarteru __attribute__((vector_size(16), aligned(1), may_alias));
#define R_PAIR(p, x, y, how) ({ const r_words16 w_ = (r_words16)__builtin_ia32_packssdw256((r_vi)(x), (r_vi)(y)); \
  const r_quarter b_ = (r_quarter)__builtin_ia32_pack##how##wb128((r_words8)R_HALF(w_, 0), (r_words8)R_HALF(w_, 1)); \
  (void)(*(r_quarteru*)(p) = (r_quarteru)__builtin_ia32_pshufd(b_, 0xd8)); })
#define r_saturated_pair_i8(p, x, y) R_PAIR(p, x, y, ss)
#define r_saturated_pair_u8(p, x, y) R_PAIR(p, x, y, us)
#define r_saturated_u16(p, x) (void)(*(r_words8u*)(p) = (r_words8u)R_WORDS(x, us))
#define r_narrow_i8(p, x) r_saturated_i8(p, (x) << 24 >> 24)
#define r_narrow_u8(p, x) r_saturated_u8(p, (x) & 255)
#define r_narrow_i16(p, x) r_saturated_i16(p, (x) << 16 >> 16)
#define r_narrow_u16(p, x) r_saturated_u16(p, (x) & 65535)
#else
#define R_EACH(p, x, value) ({ const r_vi v_ = (x); for (int n_ = 0; n_ < R_LANES; n_++) (p)[n_] = value(v_[n_]); })
#define r_narrow_i8(p, x) R_EACH(p, x, (int8_t))
#define r_narrow_u8(p, x) R_EACH(p, x, (uint8_t))
#define r_narrow_i16(p, x) R_EACH(p, x, (int16_t))
#define r_narrow_u16(p, x) R_EACH(p, x, (uint16_t))
#define r_saturated_i8(p, x) R_EACH(p, x, r_saturate_i8)
#define r_saturated_u8(p, x) R_EACH(p, x, r_saturate_u8)
#define r_saturated_i16(p, x) R_EACH(p, x, r_saturate_i16)
#define r_saturated_u16(p, x) R_EACH(p, x, r_saturate_u16)
#endif

#ifndef r_saturated_pair_u8
#define r_saturated_pair_i8(p, x, y) ({ r_saturated_i8(p, x); r_saturated_i8((p) + R_LANES, y); })
#define r_saturated_pair_u8(p, x, y) ({ r_saturated_u8(p, x); r_saturated_u8((p) + R_LANES, y); })
#endif

//@ r_peak_vf: r_simd
// The greater of x and y, or a nan among them.
#if defined(__AVX512F__) && R_LANES == 16 && __has_builtin(__builtin_ia32_blendmps_512_mask)
#define r_peak_vf(x, y) (r_vf)__builtin_ia32_blendmps_512_mask( \
  __builtin_ia32_maxps512_mask((x), (y), (r_vf){0}, (unsigned short)-1, 4), (x), \
  __builtin_ia32_cmpps512_mask((x), (x), 3, (unsigned short)-1, 4))
#elif defined(__AVX2__) && R_LANES == 8 && __has_builtin(__builtin_ia32_blendvps256)
#define r_peak_vf(x, y) (r_vf)__builtin_ia32_blendvps256( \
  __builtin_ia32_maxps256((x), (y)), (x), __builtin_ia32_cmpps256((x), (x), 3))
#else
#define r_peak_vf(x, y) ({ const r_vi m_ = ((x) > (y)) | ((x) != (x)); (r_vf)((m_ & (r_vi)(x)) | (~m_ & (r_vi)(y))); })
#endif

//@ r_peak_bytes r_peak_vq r_peak_vuq r_splat_vq r_splat_vuq: r_dots
// The greater of bytes.
#define r_splat_vq(x) ((int8_t)(x) - (r_vq){0})
#define r_splat_vuq(x) ((uint8_t)(x) - (r_vuq){0})
typedef char r_chars __attribute__((vector_size(4 * R_LANES), may_alias));
#if __has_builtin(__builtin_elementwise_max)
#define r_peak_vq(x, y) __builtin_elementwise_max((r_vq)(x), (r_vq)(y))
#define r_peak_vuq(x, y) __builtin_elementwise_max((r_vuq)(x), (r_vuq)(y))
#elif defined(__AVX512BW__) && R_LANES == 16 && !defined(__clang__)
#define r_peak_vq(x, y) (r_vq)__builtin_ia32_pmaxsb512_mask((r_chars)(x), (r_chars)(y), (r_chars){0}, -1ULL)
#define r_peak_vuq(x, y) (r_vuq)__builtin_ia32_pmaxub512_mask((r_chars)(x), (r_chars)(y), (r_chars){0}, -1ULL)
#elif defined(__AVX2__) && R_LANES == 8 && !defined(__clang__)
#define r_peak_vq(x, y) (r_vq)__builtin_ia32_pmaxsb256((r_chars)(x), (r_chars)(y))
#define r_peak_vuq(x, y) (r_vuq)__builtin_ia32_pmaxub256((r_chars)(x), (r_chars)(y))
#else
#define r_peak_vq(x, y) ({ const r_vq x_ = (x), y_ = (y), m_ = (r_vq)(x_ > y_); (r_vq)((x_ & m_) | (y_ & ~m_)); })
#define r_peak_vuq(x, y) ({ const r_vuq x_ = (x), y_ = (y), m_ = (r_vuq)(x_ > y_); (r_vuq)((x_ & m_) | (y_ & ~m_)); })
#endif

//@ r_round_f16: r_bits_f32 r_f32_bits
// A float that float16 has, the nearest one.
R_INLINE float r_round_f16(float x) {
  const int32_t bits = r_bits_f32(x), size = bits & 0x7fffffff;
  const float small = r_f32_bits(size) + 0.5f;
  const int32_t normal = (size + 0xfff + (size >> 13 & 1)) & ~0x1fff, large = size > 0x7f800000 ? size : 0x7f800000;
  // (By the size: the sum of a nan with all bits set is negative.)
  const int32_t held = size >= 0x477ff000 ? large : normal;
  return r_f32_bits((size < 0x38800000 ? r_bits_f32(small - 0.5f) : held) | (bits & INT32_MIN));
}

//@ r_halves r_read_halves r_write_halves: r_f16_f32 r_f32_f16 r_simd
// Rows of float16 as floats, and back. The last vector reaches back over numbers that are done. The pointers are not
// restrict: GCC 12 leaves out calls where such pointers of two functions come from one address.
#define R_HALVES(n, width, one, vector) \
  if ((n) >= (width)) { \
    for (long i = 0; i + (width) <= (n); i += (width)) vector; \
    if ((n) % (width)) { const long i = (n) - (width); vector; } \
  } else for (long i = 0; i < (n); i++) one
#if defined(__AVX512F__) && R_LANES == 16 && __has_builtin(__builtin_ia32_vcvtps2ph512_mask) && \
  __has_builtin(__builtin_ia32_vcvtph2ps512_mask)
typedef short r_vhalf __attribute__((vector_size(32), aligned(2), may_alias));
#define r_read_half(p) (r_vf)__builtin_ia32_vcvtph2ps512_mask(*(const r_vhalf*)(p), (r_vf){0}, (unsigned short)-1, 4)
#define r_write_half(p, v) \
  *(r_vhalf*)(p) = (r_vhalf)__builtin_ia32_vcvtps2ph512_mask((v), 0, (r_vhalf){0}, (unsigned short)-1)
#elif defined(__F16C__) && R_LANES == 8 && __has_builtin(__builtin_ia32_vcvtps2ph256)
typedef short r_vhalf __attribute__((vector_size(16), aligned(2), may_alias));
#if R_HAS(__builtin_ia32_vcvtph2ps256)
#define r_read_half(p) (r_vf)__builtin_ia32_vcvtph2ps256(*(const r_vhalf*)(p))
#else
typedef __fp16 r_vfp16 __attribute__((vector_size(16), aligned(2), may_alias));
#define r_read_half(p) __builtin_convertvector(*(const r_vfp16*)(p), r_vf)
#endif
#define r_write_half(p, v) *(r_vhalf*)(p) = (r_vhalf)__builtin_ia32_vcvtps2ph256((v), 0)
#elif defined(__aarch64__) && R_LANES == 4
#include <arm_neon.h>
#define r_read_half(p) (r_vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
#define r_write_half(p, v) vst1_u16((p), vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)(v))))
#endif
static void r_read_halves(float* to, const uint16_t* from, long n) {
#ifdef r_read_half
  R_HALVES(n, R_LANES, to[i] = r_f16_f32(from[i]), *(r_vfu*)(to + i) = r_read_half(from + i));
#else
  R_IVDEP
  for (long i = 0; i < n; i++) to[i] = r_f16_f32(from[i]);
#endif
}
static void r_write_halves(uint16_t* to, const float* from, long n) {
#ifdef r_write_half
  R_HALVES(n, R_LANES, to[i] = r_f32_f16(from[i]), r_write_half(to + i, *(const r_vfu*)(from + i)));
#else
  R_IVDEP
  for (long i = 0; i < n; i++) to[i] = r_f32_f16(from[i]);
#endif
}

//@ r_madd_vi: r_simd
// z plus the products of lower and of upper halves, as numbers of 16 bits.
typedef short r_vhh __attribute__((vector_size(4 * R_LANES)));
#if defined(__AVX512VNNI__) && R_LANES == 16 && __has_builtin(__builtin_ia32_vpdpwssd_v16si)
#define r_madd_vi(x, y, z) (r_vi)__builtin_ia32_vpdpwssd_v16si((z), (x), (y))
#elif defined(__AVX512BW__) && R_LANES == 16 && __has_builtin(__builtin_ia32_pmaddwd512_mask)
#define r_madd_vi(x, y, z) ((z) + (r_vi)__builtin_ia32_pmaddwd512_mask((r_vhh)(x), (r_vhh)(y), (r_vi){0}, (unsigned short)-1))
#elif defined(__AVX512BW__) && R_LANES == 16 && __has_builtin(__builtin_ia32_pmaddwd512)
#define r_madd_vi(x, y, z) ((z) + (r_vi)__builtin_ia32_pmaddwd512((r_vhh)(x), (r_vhh)(y)))
#elif defined(__AVX2__) && R_LANES == 8 && __has_builtin(__builtin_ia32_pmaddwd256)
#define r_madd_vi(x, y, z) ((z) + (r_vi)__builtin_ia32_pmaddwd256((r_vhh)(x), (r_vhh)(y)))
#else
#define r_madd_vi(x, y, z) ((z) + (((x) << 16) >> 16) * (((y) << 16) >> 16) + ((x) >> 16) * ((y) >> 16))
#endif

//@ r_sum_vf: r_simd
static inline float r_sum_vf(r_vf v) {
  float lanes[R_LANES];
  memcpy(lanes, &v, sizeof v);
  for (int n = R_LANES / 2; n > 0; n /= 2) for (int l = 0; l < n; l++) lanes[l] += lanes[l + n];
  return lanes[0];
}

//@ r_exp_vf: r_exp_f32 r_simd
// exp of numbers up to zero, by the polynomial of r_exp_f32. Below -86.5 it is zero.
static inline r_vf r_exp_vf(r_vf x) {
  // The sum's lowest bits are the exponent.
  const r_vf shift = r_splat_vf(0x1.8p23f), sum = r_fma_vf(x, r_splat_vf(0x1.715476p+0f), shift), n = sum - shift;
  const r_vf r = r_fma_vf(n, r_splat_vf(-0x1.7f7d1cp-20f), r_fma_vf(n, r_splat_vf(-0x1.62e400p-1f), x));
  r_vf p = r_splat_vf(0x1.a01a02p-13f);
  p = r_fma_vf(p, r, r_splat_vf(0x1.6c16c2p-10f));
  p = r_fma_vf(p, r, r_splat_vf(0x1.111112p-7f));
  p = r_fma_vf(p, r, r_splat_vf(0x1.555556p-5f));
  p = r_fma_vf(p, r, r_splat_vf(0x1.555556p-3f));
  p = r_fma_vf(p, r, r_splat_vf(0.5f));
  p = r_fma_vf(p * r, r, r) + 1.0f;
  const r_vi small = x < -86.5f;
  return (r_vf)(((r_vi)p + ((r_vi)sum << 23)) & ~small);
}
