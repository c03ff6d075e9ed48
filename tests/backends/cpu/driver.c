// Runs a compiled program of another machine under an emulator: driver LIBRARY INPUT OUTPUT.
// INPUT is a sequence of 64-bit numbers and bytes: the sizes of `fixed` and `arena`, the number of threads; the numbers of
// parameters, inputs and outputs; their sizes; the parameters' and the inputs' bytes. OUTPUT has the outputs' bytes.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static FILE* from;

static int64_t number(void) {
  unsigned char b[8];
  if (fread(b, 1, 8, from) != 8) exit(3);
  uint64_t value = 0;
  for (int k = 7; k >= 0; k--) value = value << 8 | b[k];
  return (int64_t)value;
}

static void* place(int64_t size) {
  void* found = NULL;
  if (posix_memalign(&found, 64, (size_t)size + 64)) exit(4);
  return found;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  void* const library = dlopen(words[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 5;
  }
  void (*const prepare)(void* const*, char*, char*) = dlsym(library, "relay_prepare");
  void (*const run)(void* const*, void* const*, void* const*, char*, char*, int) = dlsym(library, "relay_run");
  void (*const end)(void) = dlsym(library, "relay_close");
  from = fopen(words[2], "rb");
  if (!from || !prepare || !run || !end) return 6;
  char* const fixed = place(number());
  char* const arena = place(number());
  const int threads = (int)number();
  int64_t counts[3], total = 0;
  for (int k = 0; k < 3; k++) total += counts[k] = number();
  int64_t* const sizes = malloc(sizeof(int64_t) * (size_t)(total + 1));
  void** const tensors = malloc(sizeof(void*) * (size_t)(total + 1));
  for (int64_t k = 0; k < total; k++) tensors[k] = place(sizes[k] = number());
  for (int64_t k = 0; k < counts[0] + counts[1]; k++)
    if (fread(tensors[k], 1, (size_t)sizes[k], from) != (size_t)sizes[k]) return 7;
  void** const outputs = tensors + counts[0] + counts[1];
  prepare(tensors, fixed, arena);
  run(tensors + counts[0], outputs, tensors, fixed, arena, threads);
  run(tensors + counts[0], outputs, tensors, fixed, arena, threads);
  end();
  FILE* const to = fopen(words[3], "wb");
  for (int64_t k = 0; k < counts[2]; k++)
    if (fwrite(outputs[k], 1, (size_t)sizes[counts[0] + counts[1] + k], to) != (size_t)sizes[counts[0] + counts[1] + k]) return 8;
  return fclose(to) ? 9 : 0;
}
