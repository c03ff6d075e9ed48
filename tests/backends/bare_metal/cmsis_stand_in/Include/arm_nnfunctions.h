// A stand-in for CMSIS-NN in tests: the types and functions that the compiler's C uses, as CMSIS-NN documents them.
#include <stdint.h>

typedef enum { ARM_CMSIS_NN_SUCCESS = 0, ARM_CMSIS_NN_ARG_ERROR = -1 } arm_cmsis_nn_status;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { void* buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
typedef struct { int32_t multiplier, shift; } cmsis_nn_per_tensor_quant_params;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct {
  int32_t input_offset, output_offset;
  cmsis_nn_tile stride, padding, dilation;
  cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct {
  int32_t input_offset, output_offset, ch_mult;
  cmsis_nn_tile stride, padding, dilation;
  cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;
typedef struct { cmsis_nn_tile stride, padding; cmsis_nn_activation activation; } cmsis_nn_pool_params;
typedef struct { int32_t input_offset, filter_offset, output_offset; cmsis_nn_activation activation; } cmsis_nn_fc_params;

typedef const cmsis_nn_dims* dims;
typedef const cmsis_nn_per_channel_quant_params* channels;
int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params*, dims, dims, dims);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params*, dims, dims, dims);
arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context*, const cmsis_nn_conv_params*, channels, dims, const int8_t*, dims,
                                            const int8_t*, dims, const int32_t*, dims, int8_t*);
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context*, const cmsis_nn_dw_conv_params*, channels, dims,
                                                  const int8_t*, dims, const int8_t*, dims, const int32_t*, dims, int8_t*);
arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context*, const cmsis_nn_fc_params*, const cmsis_nn_per_tensor_quant_params*,
                                           dims, const int8_t*, dims, const int8_t*, dims, const int32_t*, dims, int8_t*);
arm_cmsis_nn_status arm_fully_connected_per_channel_s8(const cmsis_nn_context*, const cmsis_nn_fc_params*, channels, dims, const int8_t*,
                                                       dims, const int8_t*, dims, const int32_t*, dims, int8_t*);
#define OF_TYPE(type, suffix)                                                                                                   \
  arm_cmsis_nn_status arm_max_pool_##suffix(const cmsis_nn_context*, const cmsis_nn_pool_params*, dims, const type*, dims, dims, \
                                            type*);                                                                             \
  int32_t arm_avgpool_##suffix##_get_buffer_size(int, int);                                                                     \
  arm_cmsis_nn_status arm_avgpool_##suffix(const cmsis_nn_context*, const cmsis_nn_pool_params*, dims, const type*, dims, dims, \
                                           type*);                                                                              \
  arm_cmsis_nn_status arm_elementwise_add_##suffix(const type*, const type*, int32_t, int32_t, int32_t, int32_t, int32_t,       \
                                                   int32_t, int32_t, type*, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t); \
  arm_cmsis_nn_status arm_elementwise_mul_##suffix(const type*, const type*, int32_t, int32_t, type*, int32_t, int32_t,         \
                                                   int32_t, int32_t, int32_t, int32_t);
OF_TYPE(int8_t, s8)
OF_TYPE(int16_t, s16)
typedef struct { const int16_t *exp_lut, *one_by_one_lut; } cmsis_nn_softmax_lut_s16;
void arm_softmax_s8(const int8_t*, int32_t, int32_t, int32_t, int32_t, int32_t, int8_t*);
arm_cmsis_nn_status arm_softmax_s16(const int16_t*, int32_t, int32_t, int32_t, int32_t, const cmsis_nn_softmax_lut_s16*, int16_t*);
