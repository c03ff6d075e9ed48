// The machine's loop, and the functions that the library shows.
#define R_TAKE 0x40000000
#define R_MASK 0x3fffffff

R_SHOWN void* relay_vm_new(const r_program* p, int64_t limit) {
  r_machine* m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->p = p;
  m->limit = limit;
  m->large.next = m->large.before = &m->large;
  m->scratch = calloc((size_t)p->most + 1, sizeof(r_value));
  m->in_places = calloc((size_t)p->operands + 1, sizeof(void*));
  m->out_places = calloc((size_t)p->operands + 1, sizeof(void*));
  m->extents = calloc((size_t)p->words + 1, sizeof(int64_t));
  m->computed = calloc((size_t)p->words + 1, sizeof(int64_t));
  return m->scratch && m->in_places && m->out_places && m->extents && m->computed ? m : NULL;
}

// Forget all values; constants and handles among them.
static void r_forget(r_machine* m) {
  for (int64_t n = 0; n < m->chunk_count; n++) free(m->chunks[n]);
  for (r_block *b = m->large.next, *next; b != &m->large; b = next) { next = b->next; free(b->memory); }
  for (int k = 0; k < 64; k++) {
    for (r_block *b = m->free_large[k], *next; b; b = next) { next = b->next; free(b->memory); }
    m->free_large[k] = NULL;
  }
  memset(m->free_small, 0, sizeof m->free_small);
  m->large.next = m->large.before = &m->large;
  m->chunk_count = m->chunk_left = m->used = m->held = m->live = m->externals = 0;
  m->chunk = NULL;
  m->inbox_count = m->constant_count = m->handle_count = m->handles_held = m->depth = 0;
  m->result.kind = R_NONE;
}

R_SHOWN void relay_vm_forget(r_machine* m) { r_forget(m); }

R_SHOWN void relay_vm_free(r_machine* m) {
  r_forget(m);
  free(m->stack); free(m->frames); free(m->scratch); free(m->chunks); free(m->arena_memory); free(m->inbox);
  free(m->constants); free(m->handles); free(m->heads.at); free(m->fields.at); free(m->sizes.at);
  free(m->in_places); free(m->out_places); free(m->extents); free(m->computed); free(m);
}

// What a machine says of itself: fault, function, pc, calls under way, memory in use, its peak, what was asked for, values
// of the caller's in use, calls, kernels, values made, handles, live values, base.
R_SHOWN void relay_vm_state(r_machine* m, int64_t* out) {
  const int64_t found[] = {m->fault, m->function, m->pc, m->depth, m->used, m->peak, m->asked, m->externals, m->calls, m->kernels,
                           m->made, m->handles_held, m->live, m->base, m->packed};
  memcpy(out, found, sizeof found);
}

R_SHOWN void relay_vm_limit(r_machine* m, int64_t limit) { m->limit = limit; m->peak = m->used; }

// A call under way, the innermost at 0: its function, and where it goes on.
R_SHOWN void relay_vm_frame(r_machine* m, int64_t number, int64_t* out) {
  const r_frame* f = &m->frames[m->depth - 1 - number];
  out[0] = f->function;
  out[1] = f->pc;
}

// Take what was built as the program's constants.
R_SHOWN int relay_vm_constants(r_machine* m) {
  free(m->constants);
  m->constants = m->inbox;
  m->constant_count = m->inbox_count;
  m->inbox = NULL;
  m->inbox_count = m->inbox_room = 0;
  return 0;
}

static void r_leave(r_machine* m) {
  r_value* R = m->stack + m->base;
  const r_function* f = &m->p->functions[m->function];
  for (int32_t n = 0; n < f->generals; n++) R_DROP(R[n]);
  if (m->closure && --m->closure->refs == 0) r_free(m, m->closure);
}

// End what is under way, and forget what was built and the result.
R_SHOWN void relay_vm_stop(r_machine* m) {
  while (m->function >= 0) {
    r_leave(m);
    if (m->depth == 0) break;
    const r_frame* f = &m->frames[--m->depth];
    m->function = f->function;
    m->base = f->base;
    m->closure = f->closure;
  }
  m->function = -1;
  m->depth = 0;
  while (m->inbox_count > 0) { m->inbox_count--; R_DROP(m->inbox[m->inbox_count]); }
  R_DROP(m->result);
  m->result.kind = R_NONE;
}

// Begin a call of a function, or of a closure, with what was built. Returns a fault.
R_SHOWN int relay_vm_begin(r_machine* m, int32_t function, int64_t handle) {
  m->closure = NULL;
  if (handle >= 0) {
    if (m->handles[handle].kind != R_CLOSURE) return R_FAULT_CALLEE;
    m->closure = m->handles[handle].v.o;
    m->closure->refs++;
    function = m->closure->tag;
  }
  const r_function* f = &m->p->functions[function];
  m->function = -1;
  m->depth = 0;
  if (m->inbox_count != f->params) return R_FAULT_ARITY;
  if (!r_grow((void**)&m->stack, &m->room, f->registers + 64, sizeof(r_value))) return R_FAULT_MEMORY;
  for (int32_t n = 0; n < f->registers; n++) {
    if (n < f->params) m->stack[n] = m->inbox[n];
    else m->stack[n].kind = R_NONE;
  }
  m->inbox_count = 0;
  m->function = function;
  m->base = 0;
  m->pc = f->entry;
  m->fault = 0;
  return R_FAULT_NONE;
}

// A register of the function that waits for the host: kind and bits, for a tensor also bytes, data, rank, dimensions.
R_SHOWN void relay_vm_register(r_machine* m, int32_t number, int64_t* out) {
  const r_value x = m->stack[m->base + (number & R_MASK)];
  out[0] = x.kind;
  out[1] = x.v.i;
  if (x.kind != R_TENSOR) return;
  const r_tensor* t = (const r_tensor*)x.v.o;
  out[1] = t->head.tag;
  out[2] = t->bytes;
  out[3] = (int64_t)(uintptr_t)t->data;
  out[4] = t->head.count;
  for (int n = 0; n < t->head.count; n++) out[5 + n] = t->dims[n];
}

// Move what was built into registers, and go on behind the instruction.
R_SHOWN void relay_vm_resume(r_machine* m, const int32_t* registers, int64_t count, int32_t pc) {
  r_value* R = m->stack + m->base;
  for (int64_t n = 0; n < count; n++) {
    R_DROP(R[registers[n]]);
    R[registers[n]] = m->inbox[m->inbox_count - count + n];
  }
  m->inbox_count -= count;
  m->pc = pc;
}

static int r_arena(r_machine* m, int64_t size) {
  if (size <= m->arena_size) return 1;
  void* memory = r_reserve(size + 64);
  if (!memory) return 0;
  free(m->arena_memory);
  m->arena_memory = memory;
  m->arena = (char*)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
  m->arena_size = size;
  return 1;
}

// Whether a value has the type that a kernel is compiled for, which has -1 for any extent.
static int r_fits(const r_program* p, const r_spec* s, const r_value* x) {
  if (x->kind != R_TENSOR) return s->rank == 0;
  const r_tensor* t = (const r_tensor*)x->v.o;
  if (t->head.tag != s->dtype || t->head.count != s->rank) return 0;
  const int64_t* dims = p->dims + s->first;
  for (int32_t r = 0; r < s->rank; r++)
    if (dims[r] != t->dims[r] && dims[r] >= 0) return 0;
  return 1;
}

// What a kernel has computed from the extents of its inputs: its memory, its sizes, the extents of its results. Where the
// kernel is not for these: the number of the check that fails, from 1 on. -1 where the results have no elements.
static int r_shapes(r_machine* m, const r_packed* k, const r_value* R, const int32_t* inputs, const void* const* in) {
  int64_t* d = m->extents;
  for (int32_t n = 0; n < k->inputs; n++) {
    const r_value x = R[inputs[n]];
    if (x.kind != R_TENSOR) continue;
    const r_tensor* t = (const r_tensor*)x.v.o;
    for (int32_t r = 0; r < t->head.count; r++) *d++ = t->dims[r];
  }
  return relay_regions[k->region].shapes(m->extents, in, m->computed);
}

// The code for the extents that `r_shapes` has met, or NULL.
static const r_special* r_special_for(const r_heat* heat, const int64_t* extents) {
  const r_special* s = __atomic_load_n(&heat->first, __ATOMIC_ACQUIRE);
  while (s && memcmp(s->extents, extents, (size_t)s->count * sizeof *extents)) s = s->next;
  return s;
}

// Room for registers, and for another call, within the limit.
static int r_stack(r_machine* m, int64_t needed) {
  m->asked = needed * (int64_t)sizeof(r_value);
  return m->asked <= m->limit && r_grow((void**)&m->stack, &m->room, needed, sizeof(r_value));
}

static int r_calls(r_machine* m) {
  m->asked = (m->depth + 1) * (int64_t)sizeof(r_frame);
  return m->asked <= m->limit && r_grow((void**)&m->frames, &m->deep, m->depth + 1, sizeof(r_frame));
}

static int64_t r_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Add up the kernels' times from now on, in three words for each (`spent`); NULL ends that.
R_SHOWN void relay_vm_measure(r_machine* m, int64_t* spent) { m->spent = spent; }

#define FAIL(n) do { m->fault = (n); goto failed; } while (0)
#define PUT(d, x) do { r_value* p_ = &R[d]; const r_value x_ = (x); const r_value old_ = *p_; *p_ = x_; R_DROP(old_); } while (0)
#define TAKEN(x, a) do { const int32_t a_ = (a); x = R[a_ & R_MASK]; \
  if (a_ & R_TAKE) R[a_ & R_MASK].kind = R_NONE; else R_HOLD(x); } while (0)
#define NEXT(n) do { pc += (n); goto *labels[*pc]; } while (0)
#define JUMP(to) do { pc = code + (to); goto *labels[*pc]; } while (0)

// A new object of the `n` operands at `args`, into the register that the instruction names.
#define ALLOC(sort, tag, args) do { \
    r_fields* const made_ = r_new_fields(m, sort, tag, n); \
    if (!made_) FAIL(R_FAULT_MEMORY); \
    for (int32_t k = 0; k < n; k++) TAKEN(made_->at[k], (args)[k]); \
    PUT(pc[1], r_object_value(made_)); \
    pc = (args) + n; \
    goto *labels[*pc]; \
  } while (0)
// Let the stack reach up to `top`.
#define ROOM(top) do { \
    if ((top) > m->room) { \
      if (!r_stack(m, top)) FAIL(R_FAULT_MEMORY); \
      R = m->stack + m->base; \
    } \
  } while (0)
// Let the function `g` get registers above those of `f`, and a frame.
#define CALLABLE() do { \
    ROOM(m->base + f->registers + g->registers); \
    if (m->depth >= m->deep && !r_calls(m)) FAIL(R_FAULT_MEMORY); \
  } while (0)
// Keep the frame of `f`, and make that of `g` from the `n` operands at `args`.
#define PUSH(args) do { \
    r_value* const Q_ = R + f->registers; \
    for (int32_t k = 0; k < n; k++) TAKEN(Q_[k], (args)[k]); \
    for (int32_t k = n; k < g->registers; k++) Q_[k].kind = R_NONE; \
    r_frame* const frame_ = &m->frames[m->depth++]; \
    frame_->function = m->function; \
    frame_->into = pc[1]; \
    frame_->pc = (int32_t)((args) + n - code); \
    frame_->base = m->base; \
    frame_->closure = m->closure; \
    m->base += f->registers; \
    R = Q_; \
  } while (0)
// Make the frame of `g` from the `n` operands at `args`, in place of that of `f`.
#define REPLACE(args) do { \
    r_value* const S_ = m->scratch; \
    for (int32_t k = 0; k < n; k++) TAKEN(S_[k], (args)[k]); \
    for (int32_t k = 0; k < f->generals; k++) R_DROP(R[k]); \
    if (m->closure && --m->closure->refs == 0) r_free(m, m->closure); \
    for (int32_t k = 0; k < n; k++) R[k] = S_[k]; \
    for (int32_t k = n; k < g->registers; k++) R[k].kind = R_NONE; \
  } while (0)
// Go on at the first instruction of `g`, the function number `to`.
#define ENTER() do { \
    m->function = to; \
    f = g; \
    pc = code + g->entry; \
    m->calls++; \
    if (--fuel < 0) goto paused; \
    goto *labels[*pc]; \
  } while (0)

// Run for a while. R_PAUSE: call it again. R_HOST: the instruction at `pc` waits for the host.
R_SHOWN int relay_vm_run(r_machine* m, int64_t fuel, int threads) {
  static const void* const labels[] = {R_LABELS};
  const r_program* const p = m->p;
  const int32_t* const code = p->code;
  const int32_t* pc = code + m->pc;
  const r_function* f = &p->functions[m->function];
  r_value* R = m->stack + m->base;
  int32_t n;
  relay_vm_threads(threads);
  goto *labels[*pc];

  L_Move: { r_value x; TAKEN(x, pc[2]); PUT(pc[1], x); NEXT(3); }
  L_LoadConst: { const r_value x = m->constants[pc[2]]; R_HOLD(x); PUT(pc[1], x); NEXT(3); }
  L_LoadConsti: { r_value x; x.kind = pc[2]; x.v.i = pc[3]; R[pc[1]] = x; NEXT(4); }
  L_LoadFree: {
    if (!m->closure || pc[2] >= m->closure->count) FAIL(R_FAULT_VALUE);
    const r_value x = ((r_fields*)m->closure)->at[pc[2]];
    R_HOLD(x);
    PUT(pc[1], x);
    NEXT(3);
  }
  L_LoadSelf: {
    if (!m->closure) FAIL(R_FAULT_VALUE);
    const r_value x = r_object_value(m->closure);
    R_HOLD(x);
    PUT(pc[1], x);
    NEXT(2);
  }
  L_Drop: { r_value x = R[pc[1]]; R[pc[1]].kind = R_NONE; R_DROP(x); NEXT(2); }
  L_Goto: JUMP(pc[1]);
  L_If: { if (*(const uint8_t*)&R[pc[1]].v) NEXT(3); else JUMP(pc[2]); }
  L_GetTag: {
    const r_value x = R[pc[2]];
    if (x.kind != R_DATA) FAIL(R_FAULT_VALUE);
    R[pc[1]].kind = R_INT32;
    *(int32_t*)&R[pc[1]].v = x.v.o->tag;
    NEXT(3);
  }
  L_IfTag: { if (*(const int32_t*)&R[pc[1]].v == pc[2]) NEXT(4); else JUMP(pc[3]); }
  L_GetField: {
    const r_value x = R[pc[2] & R_MASK];
    if ((x.kind != R_TUPLE && x.kind != R_DATA) || pc[3] >= x.v.o->count) FAIL(R_FAULT_VALUE);
    const r_value y = ((r_fields*)x.v.o)->at[pc[3]];
    R_HOLD(y);
    if (pc[2] & R_TAKE) { R[pc[2] & R_MASK].kind = R_NONE; R_DROP(x); }
    PUT(pc[1], y);
    NEXT(4);
  }
  L_AllocTuple: { n = pc[2]; ALLOC(R_TUPLE, 0, pc + 3); }
  L_AllocADT: { n = pc[3]; ALLOC(R_DATA, pc[2], pc + 4); }
  L_AllocClosure: { n = pc[3]; ALLOC(R_CLOSURE, pc[2], pc + 4); }
  L_NewRef: {
    r_fields* made = r_new_fields(m, R_CELL, 0, 1);
    if (!made) FAIL(R_FAULT_MEMORY);
    TAKEN(made->at[0], pc[2]);
    PUT(pc[1], r_object_value(made));
    NEXT(3);
  }
  L_ReadRef: {
    const r_value x = R[pc[2]];
    if (x.kind != R_CELL) FAIL(x.kind == R_NONE ? R_FAULT_EMPTY : R_FAULT_VALUE);
    const r_value y = ((r_fields*)x.v.o)->at[0];
    if (y.kind == R_NONE) FAIL(R_FAULT_EMPTY);
    R_HOLD(y);
    PUT(pc[1], y);
    NEXT(3);
  }
  L_WriteRef: {
    const r_value x = R[pc[1]];
    if (x.kind != R_CELL) FAIL(x.kind == R_NONE ? R_FAULT_EMPTY : R_FAULT_VALUE);
    r_value y;
    TAKEN(y, pc[2]);
    const r_value old = ((r_fields*)x.v.o)->at[0];
    ((r_fields*)x.v.o)->at[0] = y;
    R_DROP(old);
    NEXT(3);
  }
  L_ReshapeTensor: {
    const r_value x = R[pc[2] & R_MASK];
    if (x.kind != R_TENSOR) FAIL(R_FAULT_VALUE);
    const r_spec* s = &p->specs[pc[3]];
    r_tensor* t = (r_tensor*)x.v.o;
    if (t->bytes != s->bytes) FAIL(R_FAULT_VALUE);
    r_object* base = t->base ? t->base : x.v.o;
    r_tensor* made = r_new_tensor(m, s->dtype, s->rank, p->dims + s->first, s->bytes, t->data, base);
    if (!made) FAIL(R_FAULT_MEMORY);
    if (pc[2] & R_TAKE) { R[pc[2] & R_MASK].kind = R_NONE; R_DROP(x); }
    PUT(pc[1], r_object_value(made));
    NEXT(4);
  }
  L_InvokePacked: {
    const r_packed* k = &p->packed[pc[1]];
    const int32_t* at = pc + 4;
    const void** in = m->in_places;
    void** out = m->out_places;
    int64_t arena = k->arena;
    const int64_t* computed = NULL;
    r_heat* heat = NULL;
    const r_special* special = NULL;
    m->asked = 0;
    m->packed = pc[1];
    if (k->region < 0) { m->pc = (int32_t)(pc - code); return R_HOST; }
    for (n = 0; n < k->inputs; n++)
      if (!r_fits(p, &p->specs[k->takes + n], &R[at[n]])) FAIL(R_FAULT_EXTENTS);
    for (n = 0; n < k->inputs; n++) {
      const r_value* x = &R[at[n]];
      in[n] = x->kind == R_TENSOR ? (const void*)((const r_tensor*)x->v.o)->data : (const void*)&x->v;
    }
    if (relay_regions[k->region].shapes) {
      m->asked = r_shapes(m, k, R, at, in);
      if (m->asked > 0 && k->other >= 0) {
        m->packed = k->other;
        k = &p->packed[k->other];
        m->asked = r_shapes(m, k, R, at, in);
      }
      heat = &p->heat[m->packed];
      special = m->asked ? NULL : r_special_for(heat, m->extents);
      if (m->asked > 0 || (m->asked == 0 && !special && heat->left < 0)) { m->pc = (int32_t)(pc - code); return R_HOST; }
      arena = m->asked ? 0 : special ? special->arena : m->computed[0];
      in[k->inputs] = m->computed + 1;
      computed = m->computed + 1 + k->sizes;
    }
    for (n = 0; n < k->outputs; n++) {
      const r_spec* s = &p->specs[k->spec + n];
      // A scalar's place must not be one that the kernel reads.
      if (s->rank == 0) { m->scratch[n].kind = s->dtype; m->scratch[n].v.i = 0; out[n] = &m->scratch[n].v; continue; }
      const int64_t* dims = p->dims + s->first;
      int64_t bytes = s->bytes;
      if (computed) {
        for (int32_t r = 0; r < s->rank; r++)
          if (dims[r] < 0 && __builtin_mul_overflow(bytes, computed[r], &bytes)) bytes = -1;
        dims = computed;
        computed += s->rank;
      }
      r_tensor* made = bytes < 0 ? NULL : r_new_tensor(m, s->dtype, s->rank, dims, bytes, NULL, NULL);
      if (!made) {
        while (n-- > 0) R_DROP(m->scratch[n]);
        FAIL(R_FAULT_MEMORY);
      }
      out[n] = made->data;
      m->scratch[n] = r_object_value(made);
    }
    if (m->asked < 0) goto computed;
    if (arena > m->limit - m->used || !r_arena(m, arena)) {
      m->asked = arena;
      for (n = 0; n < k->outputs; n++) R_DROP(m->scratch[n]);
      FAIL(R_FAULT_MEMORY);
    }
    const int64_t begin = r_now();
    if (special) special->run(in, out, special->params, special->fixed, m->arena, threads);
    else relay_regions[k->region].run(in, out, k->params, (char*)k->fixed, m->arena, threads);
    m->kernels++;
    const int64_t time = r_now() - begin;
    if (heat && !special) heat->left -= time;
    if (m->spent) { m->spent[3 * pc[1]]++; m->spent[3 * pc[1] + 2] += time; }
    if (r_stopped()) {
      for (n = 0; n < k->outputs; n++) R_DROP(m->scratch[n]);
      goto paused;
    }
    if (k->fails && *(const int64_t*)(m->arena + arena - 64)) {
      m->asked = (int64_t)(uintptr_t)(m->arena + arena - 64);
      for (n = 0; n < k->outputs; n++) R_DROP(m->scratch[n]);
      FAIL(R_FAULT_KERNEL);
    }
    fuel -= time >> 10;  // about a second until the host looks at signals
  computed:
    at += k->inputs;
    for (n = 0; n < k->outputs; n++) PUT(at[n], m->scratch[n]);
    fuel -= 64;
    pc = at + k->outputs;
    goto *labels[*pc];
  }

  L_Invoke: {
    const int32_t to = pc[2];
    const r_function* g = &p->functions[to];
    n = pc[3];
    CALLABLE();
    PUSH(pc + 4);
    m->closure = NULL;
    ENTER();
  }
  L_InvokeClosure: {
    r_value c = R[pc[2] & R_MASK];
    if (c.kind != R_CLOSURE) FAIL(R_FAULT_CALLEE);
    const int32_t to = c.v.o->tag;
    const r_function* g = &p->functions[to];
    n = pc[3];
    if (n != g->params) FAIL(R_FAULT_ARITY);
    CALLABLE();
    TAKEN(c, pc[2]);
    PUSH(pc + 4);
    m->closure = c.v.o;
    ENTER();
  }
  L_InvokeTail: {
    const int32_t to = pc[1];
    const r_function* g = &p->functions[to];
    n = pc[2];
    ROOM(m->base + g->registers);
    REPLACE(pc + 3);
    m->closure = NULL;
    ENTER();
  }
  L_InvokeClosureTail: {
    r_value c = R[pc[1] & R_MASK];
    if (c.kind != R_CLOSURE) FAIL(R_FAULT_CALLEE);
    const int32_t to = c.v.o->tag;
    const r_function* g = &p->functions[to];
    n = pc[2];
    if (n != g->params) FAIL(R_FAULT_ARITY);
    ROOM(m->base + g->registers);
    TAKEN(c, pc[1]);
    REPLACE(pc + 3);
    m->closure = c.v.o;
    ENTER();
  }
  L_Ret: {
    r_value x;
    TAKEN(x, pc[1]);
    for (int32_t k = 0; k < f->generals; k++) R_DROP(R[k]);
    if (m->closure && --m->closure->refs == 0) r_free(m, m->closure);
    if (m->depth == 0) {
      m->function = -1;
      m->closure = NULL;
      m->result = x;
      return R_DONE;
    }
    const r_frame* frame = &m->frames[--m->depth];
    m->base = frame->base;
    m->function = frame->function;
    m->closure = frame->closure;
    f = &p->functions[m->function];
    R = m->stack + m->base;
    PUT(frame->into, x);
    pc = code + frame->pc;
    goto *labels[*pc];
  }
  L_Fatal: { TAKEN(m->result, pc[2]); FAIL(pc[1]); }
R_ROWS
  paused:
  m->pc = (int32_t)(pc - code);
  return R_PAUSE;
  failed:
  m->pc = (int32_t)(pc - code);
  return R_FAULT;
}
