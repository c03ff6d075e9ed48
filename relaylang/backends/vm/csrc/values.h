// Values of the machine, the pool that they come from, and their release without recursion.
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

typedef struct r_object r_object;
typedef union { int64_t i; uint64_t u; double f; r_object* o; } r_bits;
// A number below R_TENSOR is an element type, and the value a scalar of it, in the first bytes of `v`. 0 is no value.
typedef struct { r_bits v; int64_t kind; } r_value;
enum { R_NONE = 0, R_TENSOR = 32, R_TUPLE, R_DATA, R_CLOSURE, R_CELL };

// `tag` is a constructor, a function or an element type, `count` the number of fields or dimensions.
struct r_object {
  int64_t refs;
  int32_t kind, tag;
  int32_t count, mark;
  r_object* link;
};
typedef struct { r_object head; r_value at[]; } r_fields;
// The elements lie behind the dimensions, in another tensor (`base`), or in memory of the caller's.
typedef struct { r_object head; char* data; r_object* base; int64_t bytes; int64_t dims[]; } r_tensor;

#define R_SMALL 4096
#define R_STEP 32
#define R_CHUNK (1 << 16)
typedef struct r_block { struct r_block *next, *before; void* memory; int64_t size; } r_block;

enum { R_FAULT_NONE, R_FAULT_MATCH, R_FAULT_DIVISION, R_FAULT_SHIFT, R_FAULT_POWER, R_FAULT_MEMORY, R_FAULT_EMPTY, R_FAULT_CALLEE,
       R_FAULT_ARITY, R_FAULT_VALUE, R_FAULT_KERNEL,
       R_FAULT_EXTENTS };
enum { R_DONE, R_PAUSE, R_HOST, R_FAULT };

typedef struct { int32_t entry, params, captured, generals, registers; } r_function;
typedef struct { int32_t dtype, rank; int64_t bytes; int64_t first; } r_spec;
// A kernel: its region of the library (-1: the host computes it), its operands, the first spec of its results, and how many
// numbers it reads that are computed from the extents of its inputs. A spec's `bytes` leave out extents that are not known.
// A kernel that `fails` says how in the last 64 bytes of the arena. `takes` is the first spec of its operands, -1 where these may have any extents.
// Extents that it is not for are those of the kernel `other`, if that is not -1.
typedef struct { int32_t region, inputs, outputs, spec, takes, other; const char* fixed; const void* const* params; int64_t arena, sizes, fails; } r_packed;
// Code for known extents of a kernel's inputs, all in a row. `next` is code for others.
typedef struct r_special {
  const struct r_special* next;
  const int64_t* extents;
  int64_t count;
  __typeof__(((r_region*)0)->run) run;
  const void* const* params;
  char* fixed;
  int64_t arena;
} r_special;
// Of a kernel of unknown extents: the nanoseconds until the host is asked for code of the extents that it meets, and such code.
typedef struct { int64_t left; const r_special* first; } r_heat;
typedef struct {
  const int32_t* code;
  const r_function* functions;
  const r_packed* packed;
  const r_spec* specs;
  const int64_t* dims;
  const int32_t* arity;
  r_heat* heat;
  int32_t count, most, operands, words;
} r_program;
typedef struct { int32_t function, into, pc, pad; int64_t base; r_object* closure; } r_frame;

typedef struct { int64_t* at; int64_t count, room; } r_wordlist;
typedef struct { r_object** at; int64_t count, room; } r_objects;

typedef struct {
  const r_program* p;
  // the stack of registers and that of calls
  r_value* stack; int64_t room;
  r_frame* frames; int64_t depth, deep;
  int32_t function, pc, packed; int64_t base; r_object* closure;
  r_value result;
  r_value* scratch;
  // the pool: free blocks by size, chunks of small ones, large ones that are in use
  void* free_small[R_SMALL / R_STEP + 1];
  r_block* free_large[64];
  char* chunk; int64_t chunk_left;
  void** chunks; int64_t chunk_count, chunk_room;
  r_block large;
  int64_t used, held, peak, limit, live, externals, asked, made;
  int32_t fault;
  char* arena; void* arena_memory; int64_t arena_size;
  r_value* inbox; int64_t inbox_count, inbox_room;
  r_value* constants; int64_t constant_count;
  r_value* handles; int64_t handle_count, handle_room, handles_held;
  r_wordlist heads, fields, sizes;
  int64_t calls, kernels;
  // of each kernel calls, those of the host, and nanoseconds; NULL where nobody asks
  int64_t* spent;
  const void** in_places; void** out_places;
  // extents of inputs, and what is computed from them
  int64_t *extents, *computed;
} r_machine;

static int r_grow(void** memory, int64_t* room, int64_t needed, int64_t size) {
  if (needed <= *room) return 1;
  int64_t more = *room * 2 > needed ? *room * 2 : needed;
  if (more < 64) more = 64;
  void* moved = realloc(*memory, (size_t)(more * size));
  if (!moved) return 0;
  *memory = moved;
  *room = more;
  return 1;
}

// Memory of a size. That of many pages comes in large ones, where the system has them: addresses are looked up faster.
static void* r_reserve(int64_t size) {
  char* memory = malloc((size_t)size);
#ifdef MADV_HUGEPAGE
  if (memory && size >= 1 << 22) madvise(memory + (-(uintptr_t)memory & 4095), (size_t)size - 4096, MADV_HUGEPAGE);
#endif
  return memory;
}

static int r_class(int64_t size) {
  int n = 12;
  while (((int64_t)1 << n) < size) n++;
  return n;
}

// Memory of a size that is rounded up, aligned to 64 bytes where the size is; NULL beyond the limit.
static void* r_take(r_machine* m, int64_t size) {
  int64_t whole = size <= R_SMALL ? (size + R_STEP - 1) / R_STEP * R_STEP : (int64_t)1 << r_class(size);
  if (size > R_SMALL && whole - size > size / 4) {  // quarters of a power of two waste less
    int64_t quarter = whole / 8;
    whole = (size + quarter - 1) / quarter * quarter;
  }
  if (m->used + whole > m->limit || size < 0 || size > ((int64_t)1 << 46)) { m->asked = size; return NULL; }
  void* made;
  if (size <= R_SMALL) {
    void** list = &m->free_small[whole / R_STEP];
    if (*list) {
      made = *list;
      *list = *(void**)made;
    } else {
      int64_t skip = whole % 64 == 0 ? -(int64_t)(uintptr_t)m->chunk & 63 : 0;
      if (m->chunk_left < whole + skip) {
        void* fresh = malloc(R_CHUNK + 64);
        if (!fresh || !r_grow((void**)&m->chunks, &m->chunk_room, m->chunk_count + 1, sizeof(void*))) {
          free(fresh);
          m->asked = size;
          return NULL;
        }
        m->chunks[m->chunk_count++] = fresh;
        m->chunk = (char*)(((uintptr_t)fresh + 63) & ~(uintptr_t)63);
        m->chunk_left = R_CHUNK;
        m->held += R_CHUNK;
        skip = 0;
      }
      made = m->chunk + skip;
      m->chunk += whole + skip;
      m->chunk_left -= whole + skip;
    }
  } else {
    r_block** list = &m->free_large[r_class(whole)];
    r_block* block = NULL;
    for (r_block** at = list; *at; at = &(*at)->next)
      if ((*at)->size == whole) { block = *at; *at = block->next; break; }
    if (!block) {
      void* memory = r_reserve(whole + 128);
      if (!memory) { m->asked = size; return NULL; }
      block = (r_block*)((((uintptr_t)memory + sizeof(r_block) + 63) & ~(uintptr_t)63) - sizeof(r_block));
      block->memory = memory;
      block->size = whole;
      m->held += whole;
    }
    block->next = m->large.next;
    block->before = &m->large;
    m->large.next->before = block;
    m->large.next = block;
    made = block + 1;
  }
  m->used += whole;
  m->live++;
  m->made++;
  if (m->used > m->peak) m->peak = m->used;
  ((r_object*)made)->mark = 0;
  ((r_object*)made)->link = (r_object*)(uintptr_t)whole;
  return made;
}

static void r_give(r_machine* m, r_object* o, int64_t whole) {
  m->used -= whole;
  m->live--;
  if (whole <= R_SMALL) {
    *(void**)o = m->free_small[whole / R_STEP];
    m->free_small[whole / R_STEP] = o;
    return;
  }
  r_block* block = (r_block*)o - 1;
  block->before->next = block->next;
  block->next->before = block->before;
  // What is kept for the next request may double the memory, not more.
  if (m->held - m->used > m->used + (64 << 20)) {
    m->held -= whole;
    free(block->memory);
    return;
  }
  r_block** list = &m->free_large[r_class(whole)];
  block->next = *list;
  *list = block;
}

// The size of an object's memory stands in `link` while it lives.
static void r_free(r_machine* m, r_object* dead) {
  int64_t whole = (int64_t)(uintptr_t)dead->link;
  dead->link = NULL;
  dead->mark = (int32_t)0;
  r_object* last = dead;
  int64_t* size = &dead->refs;
  *size = whole;
  while (dead) {
    r_object* o = dead;
    if (o->kind == R_TENSOR) {
      r_tensor* t = (r_tensor*)o;
      if (t->base && --t->base->refs == 0) {
        r_object* b = t->base;
        b->refs = (int64_t)(uintptr_t)b->link;
        b->link = NULL;
        last->link = b;
        last = b;
      } else if (!t->base && t->data != (char*)o + ((sizeof(r_tensor) + 8 * (size_t)o->count + 63) & ~(size_t)63)) {
        m->externals--;
      }
    } else {
      const r_value* at = ((r_fields*)o)->at;
      for (int64_t n = 0; n < o->count; n++)
        if (at[n].kind >= R_TENSOR && --at[n].v.o->refs == 0) {
          r_object* b = at[n].v.o;
          b->refs = (int64_t)(uintptr_t)b->link;
          b->link = NULL;
          last->link = b;
          last = b;
        }
    }
    dead = o->link;
    r_give(m, o, o->refs);
  }
}

#define R_HOLD(x) do { if ((x).kind >= R_TENSOR) (x).v.o->refs++; } while (0)
#define R_DROP(x) do { if ((x).kind >= R_TENSOR && --(x).v.o->refs == 0) r_free(m, (x).v.o); } while (0)

static r_fields* r_new_fields(r_machine* m, int32_t kind, int32_t tag, int32_t count) {
  r_fields* made = r_take(m, (int64_t)sizeof(r_fields) + (int64_t)count * (int64_t)sizeof(r_value));
  if (!made) return NULL;
  made->head.refs = 1;
  made->head.kind = kind;
  made->head.tag = tag;
  made->head.count = count;
  return made;
}

static r_tensor* r_new_tensor(r_machine* m, int32_t dtype, int32_t rank, const int64_t* dims, int64_t bytes, char* data, r_object* base) {
  int64_t head = ((int64_t)sizeof(r_tensor) + 8 * rank + 63) & ~(int64_t)63;
  r_tensor* made = r_take(m, data ? head : (head + (bytes > 0 ? bytes : 1) + 63) & ~(int64_t)63);
  if (!made) return NULL;
  made->head.refs = 1;
  made->head.kind = R_TENSOR;
  made->head.tag = dtype;
  made->head.count = rank;
  made->data = data ? data : (char*)made + head;
  made->base = base;
  made->bytes = bytes;
  if (base) base->refs++;
  else if (data) m->externals++;
  for (int n = 0; n < rank; n++) made->dims[n] = dims[n];
  return made;
}
