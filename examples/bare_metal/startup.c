// The start of a program on a Cortex-M55 of Arm's MPS3 board with the image AN547, which QEMU has as `mps3-an547`.
// newlib's `_start` clears .bss, and calls main. Semihosting (--specs=rdimon.specs) prints on the host's terminal.
#include <stdint.h>

extern uint32_t stack_top;
void _start(void);

static void stop(void) {
  for (;;) {
  }
}

void reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xF << 20;  // CPACR: switch on the registers of floats and of vectors
  __asm__ volatile("dsb\n\tisb");
  _start();
}

struct vectors {
  void* stack;
  void (*handlers[15])(void);
};

__attribute__((section(".vectors"), used)) static const struct vectors vectors = {
    &stack_top, {reset, stop, stop, stop, stop, stop, 0, 0, 0, 0, stop, stop, 0, stop, stop},
};
