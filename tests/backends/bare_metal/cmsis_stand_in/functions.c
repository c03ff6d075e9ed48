// Plain loops. A function writes all of the memory that it asks for, so that a workspace that is too small shows.
#include "arm_nnfunctions.h"

#include <math.h>
#include <string.h>

// The rescaled number: rounded once, halves up, or first to 31 bits, and then again, halves away from zero.
static int32_t rescaled(int32_t value, int32_t multiplier, int32_t shift) {
#ifdef CMSIS_NN_USE_SINGLE_ROUNDING
  const int right = 31 - shift;
  return (int32_t)(((int64_t)value * multiplier + ((int64_t)1 << (right - 1))) >> right);
#else
  const int64_t left = (int64_t)value * ((int64_t)1 << (shift > 0 ? shift : 0));
  const int64_t high = (left * multiplier + ((int64_t)1 << 30)) >> 31;
  const int64_t size = shift < 0 ? (int64_t)1 << -shift : 1;
  const int64_t rounded = ((high < 0 ? -high : high) + size / 2) / size;
  return (int32_t)(high < 0 ? -rounded : rounded);
#endif
}

static int8_t limited(int32_t value, int32_t low, int32_t high) {
  return (int8_t)(value < low ? low : value > high ? high : value);
}

static void filled(const cmsis_nn_context* context, int32_t size) { memset(context->buf, 0x55, size); }

// A sum over a window. A depthwise one reads channel `from` alone, and its weights are `step` apart.
static int32_t summed(dims in, const int8_t* x, dims kernel, const int8_t* w, int step, int first, int count, int y, int x0,
                      cmsis_nn_tile dilation, int32_t offset) {
  int32_t sum = 0;
  for (int i = 0; i < kernel->h; i++)
    for (int j = 0; j < kernel->w; j++) {
      const int row = y + i * dilation.h, column = x0 + j * dilation.w;
      if (row < 0 || row >= in->h || column < 0 || column >= in->w) continue;
      for (int c = 0; c < count; c++)
        sum += (x[(row * in->w + column) * in->c + first + c] + offset) * w[(i * kernel->w + j) * step + c];
    }
  return sum;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params* p, dims in, dims kernel, dims out) {
  (void)p, (void)out;
  return 4 * ((in->c * kernel->w * kernel->h + 15) / 16) * 16;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params* p, dims in, dims kernel, dims out) {
  (void)p, (void)out;
  return 2 * in->c * kernel->w * kernel->h;
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context* context, const cmsis_nn_conv_params* p, channels q, dims in,
                                            const int8_t* x, dims kernel, const int8_t* w, dims bias, const int32_t* b, dims out,
                                            int8_t* result) {
  if (kernel->n != out->c || bias->c != out->c || kernel->c != in->c || in->n != out->n) return ARM_CMSIS_NN_ARG_ERROR;
  filled(context, arm_convolve_wrapper_s8_get_buffer_size(p, in, kernel, out));
  const int step = kernel->c, size = kernel->h * kernel->w * kernel->c;
  for (int n = 0; n < in->n; n++, x += in->h * in->w * in->c)
    for (int y = 0; y < out->h; y++)
      for (int z = 0; z < out->w; z++)
        for (int c = 0; c < out->c; c++) {
          const int32_t sum = b[c] + summed(in, x, kernel, w + c * size, step, 0, step, y * p->stride.h - p->padding.h,
                                            z * p->stride.w - p->padding.w, p->dilation, p->input_offset);
          *result++ = limited(rescaled(sum, q->multiplier[c], q->shift[c]) + p->output_offset, p->activation.min, p->activation.max);
        }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context* context, const cmsis_nn_dw_conv_params* p, channels q, dims in,
                                                  const int8_t* x, dims kernel, const int8_t* w, dims bias, const int32_t* b, dims out,
                                                  int8_t* result) {
  if (kernel->n != 1 || kernel->c != out->c || bias->c != out->c || in->c * p->ch_mult != out->c) return ARM_CMSIS_NN_ARG_ERROR;
  filled(context, arm_depthwise_conv_wrapper_s8_get_buffer_size(p, in, kernel, out));
  for (int y = 0; y < out->h; y++)
    for (int z = 0; z < out->w; z++)
      for (int c = 0; c < out->c; c++) {
        const int32_t sum = b[c] + summed(in, x, kernel, w + c, out->c, c / p->ch_mult, 1, y * p->stride.h - p->padding.h,
                                          z * p->stride.w - p->padding.w, p->dilation, p->input_offset);
        *result++ = limited(rescaled(sum, q->multiplier[c], q->shift[c]) + p->output_offset, p->activation.min, p->activation.max);
      }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_per_channel_s8(const cmsis_nn_context* context, const cmsis_nn_fc_params* p, channels q, dims in,
                                                       const int8_t* x, dims kernel, const int8_t* w, dims bias, const int32_t* b,
                                                       dims out, int8_t* result) {
  const int32_t* sums = context->buf;  // of weights times the offset, and of the bias: a processor with vectors reads them
  (void)bias;
  for (int n = 0; n < in->n; n++, x += kernel->n)
    for (int c = 0; c < out->c; c++) {
      int32_t sum = b[c], own = sums[c];
      for (int k = 0; k < kernel->n; k++) {
        sum += (x[k] + p->input_offset) * w[c * kernel->n + k];
        own += x[k] * w[c * kernel->n + k];
      }
      if (sum != own) return ARM_CMSIS_NN_ARG_ERROR;
      *result++ = limited(rescaled(sum, q->multiplier[c], q->shift[c]) + p->output_offset, p->activation.min, p->activation.max);
    }
  return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context* context, const cmsis_nn_fc_params* p,
                                           const cmsis_nn_per_tensor_quant_params* q, dims in, const int8_t* x, dims kernel,
                                           const int8_t* w, dims bias, const int32_t* b, dims out, int8_t* result) {
  int32_t multipliers[256], shifts[256];
  if (out->c > 256) return ARM_CMSIS_NN_ARG_ERROR;
  for (int c = 0; c < out->c; c++) multipliers[c] = q->multiplier, shifts[c] = q->shift;
  const cmsis_nn_per_channel_quant_params all = {multipliers, shifts};
  return arm_fully_connected_per_channel_s8(context, p, &all, in, x, kernel, w, bias, b, out, result);
}

// The window of an output: its sum and its largest number.
#define POOLS(type, suffix, least)                                                                                              \
  static int32_t pooled_##suffix(const cmsis_nn_pool_params* p, dims in, const type* x, dims kernel, dims out, int average,     \
                                 type* result) {                                                                                \
    for (int y = 0; y < out->h; y++)                                                                                            \
      for (int z = 0; z < out->w; z++)                                                                                          \
        for (int c = 0; c < in->c; c++) {                                                                                       \
          int32_t most = least - 1, sum = 0, count = 0;                                                                         \
          for (int i = 0; i < kernel->h; i++)                                                                                   \
            for (int j = 0; j < kernel->w; j++) {                                                                               \
              const int row = y * p->stride.h - p->padding.h + i, column = z * p->stride.w - p->padding.w + j;                  \
              if (row < 0 || row >= in->h || column < 0 || column >= in->w) continue;                                           \
              const type found = x[(row * in->w + column) * in->c + c];                                                         \
              most = found > most ? found : most;                                                                               \
              sum += found, count++;                                                                                            \
            }                                                                                                                   \
          if (!count) return ARM_CMSIS_NN_ARG_ERROR;                                                                            \
          const int32_t value = !average ? most : (sum + (sum > 0 ? count / 2 : -(count / 2))) / count;                         \
          *result++ = value < p->activation.min ? p->activation.min : value > p->activation.max ? p->activation.max : value;   \
        }                                                                                                                       \
    return ARM_CMSIS_NN_SUCCESS;                                                                                                \
  }                                                                                                                             \
  arm_cmsis_nn_status arm_max_pool_##suffix(const cmsis_nn_context* context, const cmsis_nn_pool_params* p, dims in,            \
                                            const type* x, dims kernel, dims out, type* result) {                               \
    (void)context;                                                                                                              \
    return pooled_##suffix(p, in, x, kernel, out, 0, result);                                                                   \
  }                                                                                                                             \
  int32_t arm_avgpool_##suffix##_get_buffer_size(int width, int count) { return (void)width, 4 * count; }                       \
  arm_cmsis_nn_status arm_avgpool_##suffix(const cmsis_nn_context* context, const cmsis_nn_pool_params* p, dims in,             \
                                           const type* x, dims kernel, dims out, type* result) {                                \
    filled(context, 4 * in->c);                                                                                                 \
    return pooled_##suffix(p, in, x, kernel, out, 1, result);                                                                   \
  }
POOLS(int8_t, s8, -128)
POOLS(int16_t, s16, -32768)

#define ELEMENTWISE(type, suffix)                                                                                               \
  arm_cmsis_nn_status arm_elementwise_add_##suffix(                                                                             \
      const type* a, const type* b, int32_t a_offset, int32_t a_multiplier, int32_t a_shift, int32_t b_offset,                  \
      int32_t b_multiplier, int32_t b_shift, int32_t left, type* result, int32_t offset, int32_t multiplier, int32_t shift,     \
      int32_t low, int32_t high, int32_t count) {                                                                               \
    for (int n = 0; n < count; n++) {                                                                                           \
      const int32_t sum = rescaled((a[n] + a_offset) * (1 << left), a_multiplier, a_shift) +                                    \
                          rescaled((b[n] + b_offset) * (1 << left), b_multiplier, b_shift);                                     \
      const int32_t value = rescaled(sum, multiplier, shift) + offset;                                                          \
      result[n] = value < low ? low : value > high ? high : value;                                                              \
    }                                                                                                                           \
    return ARM_CMSIS_NN_SUCCESS;                                                                                                \
  }                                                                                                                             \
  arm_cmsis_nn_status arm_elementwise_mul_##suffix(const type* a, const type* b, int32_t a_offset, int32_t b_offset,            \
                                                   type* result, int32_t offset, int32_t multiplier, int32_t shift,             \
                                                   int32_t low, int32_t high, int32_t count) {                                  \
    for (int n = 0; n < count; n++) {                                                                                           \
      const int32_t value = rescaled((a[n] + a_offset) * (b[n] + b_offset), multiplier, shift) + offset;                        \
      result[n] = value < low ? low : value > high ? high : value;                                                              \
    }                                                                                                                           \
    return ARM_CMSIS_NN_SUCCESS;                                                                                                \
  }
ELEMENTWISE(int8_t, s8)
ELEMENTWISE(int16_t, s16)

// In real numbers: the multiplier and the shift are the scale, with 5 bits before the point.
void arm_softmax_s8(const int8_t* x, int32_t rows, int32_t size, int32_t multiplier, int32_t shift, int32_t least, int8_t* result) {
  const double scale = ldexp(multiplier, shift - 57);
  for (int row = 0; row < rows; row++, x += size) {
    int most = -128;
    double sum = 0;
    for (int n = 0; n < size; n++) most = x[n] > most ? x[n] : most;
    for (int n = 0; n < size; n++) sum += x[n] - most < least ? 0 : exp(scale * (x[n] - most));
    for (int n = 0; n < size; n++) {
      const double value = x[n] - most < least ? 0 : exp(scale * (x[n] - most)) / sum;
      *result++ = limited((int32_t)floor(256 * value + 0.5) - 128, -128, 127);
    }
  }
}

// A table of 513 numbers at a place between 0 and 512.
static double between(const int16_t* table, double place) {
  const int at = place >= 512 ? 511 : (int)place;
  return ldexp(table[at] + (place - at) * (table[at + 1] - table[at]), -15);
}

arm_cmsis_nn_status arm_softmax_s16(const int16_t* x, int32_t rows, int32_t size, int32_t multiplier, int32_t shift,
                                    const cmsis_nn_softmax_lut_s16* tables, int16_t* result) {
  for (int row = 0; row < rows; row++, x += size) {
    int most = -32768, power;
    double sum = 0;
    for (int n = 0; n < size; n++) most = x[n] > most ? x[n] : most;
#define POWER(n) between(tables->exp_lut, fmax(0, 256 + (rescaled(x[n] - most, multiplier, shift) + 32767) / 128.0))
    for (int n = 0; n < size; n++) sum += POWER(n);
    sum = 2 * frexp(sum, &power);  // from 1 to 2
    const double reciprocal = ldexp(between(tables->one_by_one_lut, 512 * (sum - 1)), 1 - power);
    for (int n = 0; n < size; n++) *result++ = (int16_t)(int)floor(32768 * POWER(n) * reciprocal + 0.5);
  }
  return ARM_CMSIS_NN_SUCCESS;
}
