// The command line: NAME [INPUT...] [-o OUTPUT...]. An input is a .npy file, any other file of bare elements, or - for bare elements
// from stdin. Outputs go to such files, or to stdout as text.
#include <inttypes.h>
#include <stdio.h>

// A tensor: its name, its type in words, its element type as .npy files name it and its dimensions as they have them, its
// elements, the bytes and the kind of each, and where it is.
typedef struct {
  const char *name, *type, *element, *dimensions;
  size_t count, size;
  char kind;
  void* data;
} r_tensor;

static int r_wrong(const char* what, const char* name) {
  fprintf(stderr, "%s: %s\n", name, what);
  return 2;
}

// Whether a .npy header has this field with this value.
static int r_has(const char* header, const char* field, const char* value) {
  const char* at = strstr(header, field);
  if (!at) return 0;
  at += strlen(field);
  while (*at == ' ' || *at == ':' || *at == '\'') at++;
  return strncmp(at, value, strlen(value)) == 0;
}

static int r_is_npy(const char* name) {
  const size_t length = strlen(name);
  return length > 4 && strcmp(name + length - 4, ".npy") == 0;
}

// The header of a .npy file must be that of a tensor's file.
static int r_check_header(FILE* file, const char* name, const r_tensor* t) {
  unsigned char head[12];
  char header[1025];
  const size_t first = fread(head, 1, 10, file);
  const int wide = first == 10 && head[6] != 1;
  if (first != 10 || memcmp(head, "\x93NUMPY", 6) || (wide && fread(head + 10, 1, 2, file) != 2))
    return r_wrong("the file has no header of numpy's", name);
  const size_t length = (size_t)head[8] | (size_t)head[9] << 8 | (wide ? (size_t)head[10] << 16 | (size_t)head[11] << 24 : 0);
  if (length > 1024 || fread(header, 1, length, file) != length) return r_wrong("the file has no header of numpy's", name);
  header[length] = 0;
  if (!r_has(header, "'descr'", t->element)) return r_wrong("the file has other elements than the input", name);
  if (!r_has(header, "'shape'", t->dimensions)) return r_wrong("the file has another shape than the input", name);
  return r_has(header, "'fortran_order'", "False") ? 0 : r_wrong("the file is in Fortran order", name);
}

static int r_read(const char* name, const r_tensor* t) {
  const int is_stdin = strcmp(name, "-") == 0;
  FILE* const file = is_stdin ? stdin : fopen(name, "rb");
  if (!file) return r_wrong("the file cannot be read", name);
  int failed = r_is_npy(name) ? r_check_header(file, name, t) : 0;
  if (!failed && fread(t->data, t->size, t->count, file) != t->count) failed = r_wrong("the file is too short for the input", name);
  if (is_stdin) return failed;
  if (!failed && fgetc(file) != EOF) failed = r_wrong("the file is too long for the input", name);
  fclose(file);
  return failed;
}

static int r_write(const char* name, const r_tensor* t) {
  FILE* const file = fopen(name, "wb");
  if (!file) return r_wrong("the file cannot be written", name);
  if (r_is_npy(name)) {
    char header[1024];
    int size = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", t->element, t->dimensions);
    while ((size + 11) % 64) header[size++] = ' ';
    header[size++] = '\n';
    const unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(size & 255), (unsigned char)(size >> 8)};
    fwrite(head, 1, 10, file);
    fwrite(header, 1, (size_t)size, file);
  }
  const int whole = fwrite(t->data, t->size, t->count, file) == t->count;
  return fclose(file) == 0 && whole ? 0 : r_wrong("the file cannot be written", name);
}

// The value of the bits of a float16 or bfloat16.
static double r_short_float(uint16_t bits, int is_brain) {
  if (is_brain) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
  }
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

static void r_print(const r_tensor* t) {
  printf("%s: %s\n", t->name, t->type);
  for (size_t n = 0; n < t->count; n++) {
    const void* const at = (const char*)t->data + n * t->size;
    int64_t whole = 0;
    switch (t->kind) {
      case 'f': printf("%.9g\n", (double)*(const float*)at); break;
      case 'd': printf("%.17g\n", *(const double*)at); break;
      case 'h': case 'b': printf("%.9g\n", r_short_float(*(const uint16_t*)at, t->kind == 'b')); break;
      case 'u':
        printf("%" PRIu64 "\n", t->size == 1 ? *(const uint8_t*)at : t->size == 2 ? *(const uint16_t*)at :
               t->size == 4 ? *(const uint32_t*)at : *(const uint64_t*)at);
        break;
      default:
        whole = t->size == 1 ? *(const int8_t*)at : t->size == 2 ? *(const int16_t*)at : t->size == 4 ? *(const int32_t*)at : *(const int64_t*)at;
        printf("%" PRId64 "\n", whole);
    }
  }
}
