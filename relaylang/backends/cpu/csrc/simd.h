//@ r_simd
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
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif
#if __has_builtin(__builtin_elementwise_fma)
#define r_fma_vf(x, y, z) __builtin_elementwise_fma((x), (y), (z))
#elif defined(__AVX512F__) && R_LANES == 16
#define r_fma_vf(x, y, z) (r_vf)__builtin_ia32_vfmaddps512_mask((x), (y), (z), (unsigned short)-1, 4)
#elif defined(__FMA__) && R_LANES == 8
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

//@ r_fma_f32
#ifdef __FP_FAST_FMAF
#define r_fma_f32(x, y, z) __builtin_fmaf((x), (y), (z))
#else
#define r_fma_f32(x, y, z) ((x) * (y) + (z))
#endif

//@ r_sum_vf
static inline float r_sum_vf(r_vf v) {
  float lanes[R_LANES];
  memcpy(lanes, &v, sizeof v);
  for (int n = R_LANES / 2; n > 0; n /= 2) for (int l = 0; l < n; l++) lanes[l] += lanes[l + n];
  return lanes[0];
}
