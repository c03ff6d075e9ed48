//@ r_stamp relay_times
// The time in nanoseconds; `relay_times` keeps when each instruction of the last run began and ended.
#include <time.h>
#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
extern int64_t relay_times[];
static inline int64_t r_stamp(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

//@ r_peaks r_peak_reads: r_simd
// What this processor can do at most: multiply-adds of floats, of small integers, and reads from memory. Each function
// does `hi - lo` units of work. A unit makes `times` steps of twelve chains, or reads `size` bytes of its own so often.
typedef struct { char* memory; long size, times; } r_peak_work;
#if defined(__AVX2__) && R_LANES == 8 || defined(__AVX512BW__) && R_LANES == 16
#include <immintrin.h>
#endif
#define R_TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && R_LANES == 16
#define R_PEAK_INTEGERS 64
#define r_peak_dot(s, x) (r_vi)_mm512_dpbusd_epi32((__m512i)(s), (__m512i)(x), (__m512i)(x))
#elif defined(__AVXVNNI__) && R_LANES == 8
#define R_PEAK_INTEGERS 32
#define r_peak_dot(s, x) (r_vi)_mm256_dpbusd_avx_epi32((__m256i)(s), (__m256i)(x), (__m256i)(x))
#elif defined(__AVX512BW__) && R_LANES == 16
#define R_PEAK_INTEGERS 32
#define r_peak_dot(s, x) ((s) + (r_vi)_mm512_madd_epi16((__m512i)(s), (__m512i)(x)))
#elif defined(__AVX2__) && R_LANES == 8
#define R_PEAK_INTEGERS 16
#define r_peak_dot(s, x) ((s) + (r_vi)_mm256_madd_epi16((__m256i)(s), (__m256i)(x)))
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__aarch64__)
#include <arm_neon.h>
#define R_PEAK_INTEGERS 16
#define r_peak_dot(s, x) (r_vi)vdotq_s32((int32x4_t)(s), (int8x16_t)(x), (int8x16_t)(x))
#else
#define R_PEAK_INTEGERS R_LANES
#define r_peak_dot(s, x) r_fma_vi((s), (x), (x))
#endif
static volatile int32_t r_peak_sink;
static void r_peak_floats(void* const* b, long lo, long hi) {
  const r_peak_work* work = b[0];
  r_vf x = r_splat_vf(0.5f), total = x;
  for (; lo < hi; lo++) {
#define R_CHAIN(n) r_vf s##n = x * n;
    R_TWELVE(R_CHAIN)
#undef R_CHAIN
    for (long i = 0; i < work->times; i++) {
#define R_CHAIN(n) s##n = r_fma_vf(s##n, x, x);
      R_TWELVE(R_CHAIN)
#undef R_CHAIN
    }
#define R_CHAIN(n) total += s##n;
    R_TWELVE(R_CHAIN)
#undef R_CHAIN
  }
  r_peak_sink = (int32_t)total[0];
}
static void r_peak_integers(void* const* b, long lo, long hi) {
  const r_peak_work* work = b[0];
  r_vi x = r_splat_vi(0x010203), total = x;
  for (; lo < hi; lo++) {
#define R_CHAIN(n) r_vi s##n = x * n;
    R_TWELVE(R_CHAIN)
#undef R_CHAIN
    for (long i = 0; i < work->times; i++) {
#define R_CHAIN(n) s##n = r_peak_dot(s##n, x);
      R_TWELVE(R_CHAIN)
#undef R_CHAIN
    }
#define R_CHAIN(n) total += s##n;
    R_TWELVE(R_CHAIN)
#undef R_CHAIN
  }
  r_peak_sink = total[0];
}
static void r_peak_reads(void* const* b, long lo, long hi) {
  const r_peak_work* work = b[0];
  const long size = work->size / (long)sizeof(r_vi);
  r_vi total = r_splat_vi(0);
  for (; lo < hi; lo++) {
    const r_vi* p = (const r_vi*)work->memory + lo * size;
    for (long time = 0; time < work->times; time++) {
      r_vi s0 = total, s1 = total, s2 = total, s3 = total;
      for (long n = 0; n + 8 <= size; n += 8) {
        s0 ^= p[n] ^ p[n + 4], s1 ^= p[n + 1] ^ p[n + 5], s2 ^= p[n + 2] ^ p[n + 6], s3 ^= p[n + 3] ^ p[n + 7];
      }
      total ^= s0 ^ s1 ^ s2 ^ s3;
      __asm__ volatile("" ::: "memory");
    }
  }
  r_peak_sink = total[0];
}
