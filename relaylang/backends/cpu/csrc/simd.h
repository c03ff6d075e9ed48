//@ r_simd r_vf r_vi r_vfu r_viu r_fma_vf r_fma_vi r_splat_vf r_splat_vi r_mix_vf r_mix_vi r_vd r_vdu r_fma_vd r_splat_vd r_mix_vd r_vl r_vlu r_fma_vl r_splat_vl r_mix_vl r_vb r_vub r_vh r_vuh
// Vectors of R_LANES 32-bit numbers, and x * y + z on them.
#ifndef R_LANES
#define R_LANES 4
#endif
typedef float r_vf __attribute__((vector_size(4 * R_LANES)));
typedef int32_t r_vi __attribute__((vector_size(4 * R_LANES)));
typedef float r_vfu __attribute__((vector_size(4 * R_LANES), aligned(4)));
typedef double r_vd __attribute__((vector_size(4 * R_LANES)));
typedef double r_vdu __attribute__((vector_size(4 * R_LANES), aligned(8)));
typedef int64_t r_vl __attribute__((vector_size(4 * R_LANES)));
typedef int64_t r_vlu __attribute__((vector_size(4 * R_LANES), aligned(8)));
typedef int32_t r_viu __attribute__((vector_size(4 * R_LANES), aligned(4)));
// As many short integers as a vector has 32-bit numbers, at any address.
typedef int8_t r_vb __attribute__((vector_size(R_LANES), aligned(1)));
typedef uint8_t r_vub __attribute__((vector_size(R_LANES), aligned(1)));
typedef int16_t r_vh __attribute__((vector_size(2 * R_LANES), aligned(2)));
typedef uint16_t r_vuh __attribute__((vector_size(2 * R_LANES), aligned(2)));
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif
// Clang drops names of instructions that it can express in another way; gcc keeps them, and before gcc 10 cannot be asked.
#ifdef __clang__
#define R_HAS(name) __has_builtin(name)
#else
#define R_HAS(name) 1
#endif
#if __has_builtin(__builtin_elementwise_fma)
#define r_fma_vf(x, y, z) __builtin_elementwise_fma((x), (y), (z))
#elif defined(__AVX512F__) && R_LANES == 16 && R_HAS(__builtin_ia32_vfmaddps512_mask)
#define r_fma_vf(x, y, z) (r_vf)__builtin_ia32_vfmaddps512_mask((x), (y), (z), (unsigned short)-1, 4)
#elif defined(__FMA__) && R_LANES == 8 && R_HAS(__builtin_ia32_vfmaddps256)
#define r_fma_vf(x, y, z) (r_vf)__builtin_ia32_vfmaddps256((x), (y), (z))
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define r_fma_vf(x, y, z) (r_vf)vfmaq_f32((float32x4_t)(z), (float32x4_t)(x), (float32x4_t)(y))
#else
#define r_fma_vf(x, y, z) ((x) * (y) + (z))
#endif
#define r_fma_vi(x, y, z) ((x) * (y) + (z))
#define r_fma_vd(x, y, z) ((x) * (y) + (z))
#define r_fma_vl(x, y, z) ((x) * (y) + (z))
#define r_splat_vf(x) ((x) - (r_vf){0})
#define r_splat_vi(x) ((x) - (r_vi){0})
#define r_splat_vd(x) ((x) - (r_vd){0})
#define r_splat_vl(x) ((x) - (r_vl){0})
#if defined(__clang__) || __GNUC__ >= 12
#define r_mix_vf(a, b, ...) __builtin_shufflevector((a), (b), __VA_ARGS__)
#else
#define r_mix_vf(a, b, ...) __builtin_shuffle((a), (b), (r_vi){__VA_ARGS__})
#endif
#define r_mix_vi r_mix_vf
#if defined(__clang__) || __GNUC__ >= 12
#define r_mix_vd r_mix_vf
#else
#define r_mix_vd(a, b, ...) __builtin_shuffle((a), (b), (r_vl){__VA_ARGS__})
#endif
#define r_mix_vl r_mix_vd

//@ r_dots r_splat_pair_vs r_splat_quad_vuq r_splat_quad_vq r_dot_pair_vi r_dot_halves_vi r_dot_quad_vi r_dot_signed_vi r_vs r_vq r_vuq r_vqu r_vuqu r_lane: r_simd
// Sums of products of neighbours in each 32-bit lane: pairs of int16, or four bytes, the second ones signed.
typedef int32_t r_lane __attribute__((aligned(1), may_alias));
typedef int16_t r_vs __attribute__((vector_size(4 * R_LANES), may_alias));
typedef int8_t r_vq __attribute__((vector_size(4 * R_LANES), may_alias));
typedef uint8_t r_vuq __attribute__((vector_size(4 * R_LANES), may_alias));
typedef int16_t r_vsu __attribute__((vector_size(4 * R_LANES), may_alias, aligned(2)));
typedef int8_t r_vqu __attribute__((vector_size(4 * R_LANES), may_alias, aligned(1)));
typedef uint8_t r_vuqu __attribute__((vector_size(4 * R_LANES), may_alias, aligned(1)));
#if defined(__AVX2__) && R_LANES >= 8 && !defined(__clang__)
// gcc would keep such vectors for later steps that have the same, which needs more registers than there are.
#define r_splat_lane(p) ({ r_vi a_; __asm__ volatile("vpbroadcastd %1, %0" : "=v"(a_) : "m"(*(const r_lane*)(p))); a_; })
#else
#define r_splat_lane(p) (*(const r_lane*)(p) - (r_vi){0})
#endif
#define r_splat_pair_vs(p) (r_vs)r_splat_lane(p)
#define r_splat_quad_vuq(p) (r_vuq)r_splat_lane(p)
#define r_splat_quad_vq(p) (r_vq)r_splat_lane(p)
#if defined(__AVX512VNNI__) && R_LANES == 16 && defined(__clang__) && \
  __has_builtin(__builtin_ia32_vpdpbusd512) && __has_builtin(__builtin_ia32_vpdpwssd512)
#define r_dot_quad_vi(x, y, z) (r_vi)__builtin_ia32_vpdpbusd512((r_vi)(z), (r_vi)(x), (r_vi)(y))
#define r_dot_pair_vi(x, y, z) (r_vi)__builtin_ia32_vpdpwssd512((r_vi)(z), (r_vi)(x), (r_vi)(y))
#elif defined(__AVX512VNNI__) && R_LANES == 16 && !defined(__clang__)
#define r_dot_quad_vi(x, y, z) (r_vi)__builtin_ia32_vpdpbusd_v16si((r_vi)(z), (r_vi)(x), (r_vi)(y))
#define r_dot_pair_vi(x, y, z) (r_vi)__builtin_ia32_vpdpwssd_v16si((r_vi)(z), (r_vi)(x), (r_vi)(y))
#elif defined(__AVX512BW__) && R_LANES == 16 && defined(__clang__) && __has_builtin(__builtin_ia32_pmaddwd512)
#define r_products(x, y) (r_vi)__builtin_ia32_pmaddwd512((r_vs)(x), (r_vs)(y))
#elif defined(__AVX512BW__) && R_LANES == 16 && !defined(__clang__)
#define r_products(x, y) (r_vi)__builtin_ia32_pmaddwd512_mask((r_vs)(x), (r_vs)(y), (r_vi){0}, (unsigned short)-1)
#elif defined(__AVX2__) && R_LANES == 8
#if defined(__AVXVNNI__) && defined(__clang__) && __has_builtin(__builtin_ia32_vpdpbusd256)
#define r_dot_quad_vi(x, y, z) (r_vi)__builtin_ia32_vpdpbusd256((r_vi)(z), (r_vi)(x), (r_vi)(y))
#elif defined(__AVXVNNI__) && !defined(__clang__)
#define r_dot_quad_vi(x, y, z) (r_vi)__builtin_ia32_vpdpbusd_v8si((r_vi)(z), (r_vi)(x), (r_vi)(y))
#endif
#if R_HAS(__builtin_ia32_pmaddwd256)
#define r_products(x, y) (r_vi)__builtin_ia32_pmaddwd256((r_vs)(x), (r_vs)(y))
#endif
#endif
#if defined(__ARM_FEATURE_DOTPROD) && R_LANES == 4
#include <arm_neon.h>
#define r_dot_signed_vi(x, y, z) (r_vi)vdotq_s32((int32x4_t)(z), (int8x16_t)(x), (int8x16_t)(y))
#endif
#if defined(__AVX2__) && R_LANES == 8 && !defined(__clang__)
// One statement: gcc would reorder sums, which needs more registers than there are.
#define r_dot_pair_vi(x, y, z) ({ r_vi r_ = (z), p_; \
  __asm__("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" : "+v"(r_), "=&v"(p_) : "v"((r_vs)(y)), "v"((r_vs)(x))); r_; })
#elif defined(r_products)
// The empty statement keeps gcc from reordering the sums, which would need more registers than there are.
#define r_dot_pair_vi(x, y, z) ({ r_vi r_ = (z) + r_products(x, y); __asm__("" : "+v"(r_)); r_; })
#endif
// Elsewhere, for tests of the same code: what those instructions compute.
#ifndef r_dot_pair_vi
static inline r_vi r_dot_pair_vi(r_vs a, r_vs b, r_vi z) {
  for (int n = 0; n < R_LANES; n++) z[n] += a[2 * n] * b[2 * n] + a[2 * n + 1] * b[2 * n + 1];
  return z;
}
#endif
#if defined(__ARM_NEON) && R_LANES == 4
#include <arm_neon.h>
#define r_dot_halves_vi(x, y, z) (r_vi)vmlal_lane_s16(vmlal_lane_s16((int32x4_t)(z), vget_low_s16((int16x8_t)(y)), \
  vget_low_s16((int16x8_t)(x)), 0), vget_high_s16((int16x8_t)(y)), vget_low_s16((int16x8_t)(x)), 1)
#else
static inline r_vi r_dot_halves_vi(r_vs a, r_vs b, r_vi z) {
  for (int n = 0; n < 2 * R_LANES; n++) z[n % R_LANES] += a[n / R_LANES] * b[n];
  return z;
}
#endif
#ifndef r_dot_quad_vi
static inline r_vi r_dot_quad_vi(r_vuq a, r_vq b, r_vi z) {
  for (int n = 0; n < 4 * R_LANES; n++) z[n / 4] += a[n] * b[n];
  return z;
}
#endif
#ifndef r_dot_signed_vi
static inline r_vi r_dot_signed_vi(r_vq a, r_vq b, r_vi z) {
  for (int n = 0; n < 4 * R_LANES; n++) z[n / 4] += a[n] * b[n];
  return z;
}
#endif

//@ r_singles r_splat_single_vi r_fma_single_vi: r_simd
// Products of numbers of 16 bits, one a lane. SSE2 has a product of two pairs, and none of 32 bits.
#if defined(__SSE2__) && R_LANES == 4 && __has_builtin(__builtin_ia32_pmaddwd128)
typedef short r_shorts8 __attribute__((vector_size(16), may_alias));
#define r_splat_single_vi(x) ((int32_t)(uint16_t)(x) - (r_vi){0})
#define r_fma_single_vi(x, y, z) ((z) + (r_vi)__builtin_ia32_pmaddwd128((r_shorts8)(x), (r_shorts8)(y)))
#else
#define r_splat_single_vi(x) r_splat_vi(x)
#define r_fma_single_vi(x, y, z) r_fma_vi(x, y, z)
#endif

//@ r_squares r_two_rows_vq r_two_rows_vuq r_square_vi r_square_mixed_vi r_square_unsigned_vi: r_dots r_simd
// Two rows by two columns of bytes, eight products each, added to four sums.
#if defined(__ARM_FEATURE_MATMUL_INT8) && R_LANES == 4
#include <arm_neon.h>
#define r_two_rows_vq(p, q) (r_vq)vcombine_s8(vld1_s8(p), vld1_s8(q))
#define r_two_rows_vuq(p, q) (r_vuq)vcombine_u8(vld1_u8(p), vld1_u8(q))
#define r_square_vi(x, y, z) (r_vi)vmmlaq_s32((int32x4_t)(z), (int8x16_t)(x), (int8x16_t)(y))
#define r_square_mixed_vi(x, y, z) (r_vi)vusmmlaq_s32((int32x4_t)(z), (uint8x16_t)(x), (int8x16_t)(y))
#define r_square_unsigned_vi(x, y, z) (r_vi)vmmlaq_u32((uint32x4_t)(z), (uint8x16_t)(x), (uint8x16_t)(y))
#endif

//@ r_add_wide: r_simd
// Add sums in int32, times a power of two, to numbers of 64 bits; or put them there.
static inline void r_add_wide(int64_t* to, r_vi v, long first, long shift) {
  int32_t lanes[R_LANES] __attribute__((aligned(4 * R_LANES)));
  memcpy(lanes, &v, sizeof v);
  if (first) memset(to, 0, 8 * R_LANES);
  for (int n = 0; n < R_LANES; n++) to[n] += (int64_t)lanes[n] << shift;
}

//@ r_bfloats r_vbf r_splat_pair_vbf r_dot_bfloat_vf: r_bf16_f32 r_dots r_simd
// Sums in float32 of products of pairs of bfloat16.
typedef uint16_t r_vbf __attribute__((vector_size(4 * R_LANES), may_alias));
typedef uint16_t r_vbfu __attribute__((vector_size(4 * R_LANES), may_alias, aligned(2)));
#define r_splat_pair_vbf(p) (r_vbf)(*(const r_lane*)(p) - (r_vi){0})
#if defined(__AVX512BF16__) && R_LANES == 16
// The compilers' own names for it differ in the types of the pairs.
#define r_dot_bfloat_vf(x, y, z) ({ r_vf r_ = (z); __asm__("vdpbf16ps %2, %1, %0" : "+v"(r_) : "v"(x), "v"(y)); r_; })
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && R_LANES == 4
#include <arm_neon.h>
#define r_dot_bfloat_vf(x, y, z) (r_vf)vbfdotq_f32((float32x4_t)(z), (bfloat16x8_t)(x), (bfloat16x8_t)(y))
#else
// Elsewhere, for tests of the same code: what those instructions compute, but for the least numbers.
static inline r_vf r_dot_bfloat_vf(r_vbf a, r_vbf b, r_vf z) {
  for (int n = 0; n < 2 * R_LANES; n++) z[n / 2] += r_bf16_f32(a[n]) * r_bf16_f32(b[n]);
  return z;
}
#endif

//@ r_amx r_tile_shapes r_tile_end r_tile_load r_tile_store R_TILE_STEP
// Tiles of 8-bit numbers, where the system lets a process use them: rows of up to 64 bytes, up to 16 at once.
#include <sys/syscall.h>
#include <unistd.h>
static inline int r_amx(void) {
  static int known;  // 0: not asked yet, 1: yes, 2: no. Threads that ask at once get the same answer.
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (answer == 0) {
    answer = syscall(SYS_arch_prctl, 0x1023, 18) == 0 ? 1 : 2;
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  }
  return answer == 1;
}
// Tiles 0 to 3: sums of `rows` by 16 numbers. 4 and 5: `rows` of `bytes` of data. 6 and 7: weights for so many bytes.
static inline void r_tile_shapes(int rows, int bytes) {
  struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } shapes = {.palette = 1};
  for (int n = 0; n < 8; n++) {
    shapes.bytes[n] = n == 4 || n == 5 ? bytes : 64;
    shapes.rows[n] = n < 6 ? rows : bytes / 4;
  }
  __asm__ volatile("ldtilecfg %0" :: "m"(shapes));
}
#define r_tile_end() __asm__ volatile("tilerelease")
#define r_tile_load(n, from, step) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #n :: "r"(from), "r"((long)(step)) : "memory")
#define r_tile_store(n, to, step) __asm__ volatile("tilestored %%tmm" #n ", (%0,%1,1)" :: "r"(to), "r"((long)(step)) : "memory")
#define r_tile_dot(sum, data, weight) __asm__ volatile("tdpbusd %%tmm" #weight ", %%tmm" #data ", %%tmm" #sum ::: "memory")
// Two blocks of rows times 32 columns, summed over `chunks` runs of `bytes`. A run's weights are rows of 128 bytes.
#define R_TILE_STEP(a, b, w, apart) do { \
  r_tile_load(4, a, apart); r_tile_load(6, w, 128); r_tile_load(5, b, apart); r_tile_load(7, (w) + 64, 128); \
  r_tile_dot(0, 4, 6); r_tile_dot(1, 4, 7); r_tile_dot(2, 5, 6); r_tile_dot(3, 5, 7); } while (0)
