// Values between the host and the machine, in lists of words. Both directions have the same form.
//
// `heads`: three words for an object: kind, tag, count. `fields`: two words for each field of each object in turn, and for
// each value of the whole: its kind, and its bits or its object's number. `sizes`: for each tensor its bytes, data, whether
// to copy it, and its dimensions. The count of a closure is its handle, and it has no fields here.

static r_value r_object_value(void* object) {
  r_value value = {.kind = object ? ((r_object*)object)->kind : R_NONE};
  value.v.o = object;
  return value;
}

// Objects without their fields. A tensor's sizes are read from `*sizes` on.
static r_object* r_make(r_machine* m, const int64_t* head, const int64_t** sizes) {
  if (head[0] == R_TENSOR) {
    const int64_t* at = *sizes;
    *sizes += 3 + head[2];
    r_tensor* t = r_new_tensor(m, (int32_t)head[1], (int32_t)head[2], at + 3, at[0], at[2] ? NULL : (char*)(uintptr_t)at[1], NULL);
    if (t && at[2]) memcpy(t->data, (const void*)(uintptr_t)at[1], (size_t)at[0]);
    return (r_object*)t;
  }
  if (head[0] == R_CLOSURE) {
    m->handles[head[2]].v.o->refs++;
    return m->handles[head[2]].v.o;
  }
  r_fields* f = r_new_fields(m, (int32_t)head[0], (int32_t)head[1], (int32_t)head[2]);
  for (int64_t n = 0; f && n < head[2]; n++) f->at[n].kind = R_NONE;
  return (r_object*)f;
}

static r_value r_read(r_object** made, const int64_t* field) {
  r_value value = {.kind = field[0]};
  if (field[0] < R_TENSOR) value.v.i = field[1];
  else value.v.o = made[field[1]], value.v.o->refs++;
  return value;
}

// Build values, which join the inbox; -1 says that memory ends.
R_SHOWN int relay_vm_build(r_machine* m, const int64_t* heads, int64_t objects, const int64_t* fields, const int64_t* sizes,
                           int64_t values) {
  r_object** made = malloc(((size_t)objects + 1) * sizeof *made);
  int64_t count = 0;
  int ok = made && r_grow((void**)&m->inbox, &m->inbox_room, m->inbox_count + values, sizeof(r_value));
  for (; ok && count < objects; count += ok) ok = (made[count] = r_make(m, heads + 3 * count, &sizes)) != NULL;
  for (int64_t n = 0; ok && n < objects; n++) {
    if (heads[3 * n] == R_TENSOR || heads[3 * n] == R_CLOSURE) continue;
    for (int32_t k = 0; k < made[n]->count; k++, fields += 2) ((r_fields*)made[n])->at[k] = r_read(made, fields);
  }
  for (int64_t n = 0; ok && n < values; n++, fields += 2) m->inbox[m->inbox_count++] = r_read(made, fields);
  for (int64_t n = 0; n < count; n++) R_DROP(r_object_value(made[n]));
  free(made);
  return ok ? 0 : -1;
}

static int r_say(r_wordlist* words, int64_t word) {
  if (!r_grow((void**)&words->at, &words->room, words->count + 1, sizeof(int64_t))) return 0;
  words->at[words->count++] = word;
  return 1;
}

static int r_push(r_objects* stack, r_object* o) {
  if (!r_grow((void**)&stack->at, &stack->room, stack->count + 1, sizeof(r_object*))) return 0;
  stack->at[stack->count++] = o;
  return 1;
}

// Number the objects below a value, parts before the whole, in `seen`. The content of a cell comes when the rest is done.
static int r_number(r_machine* m, r_value value, r_objects* seen, r_objects* stack) {
  int ok = 1;
  int64_t cell = 0;
  for (;;) {
    if (value.kind >= R_TENSOR && value.v.o->mark == 0) ok = r_push(stack, value.v.o);
    while (ok && stack->count > 0) {
      r_object* o = stack->at[stack->count - 1];
      const r_value* at = ((r_fields*)o)->at;
      const int64_t before = stack->count;
      if (o->mark == 0 && (o->kind == R_TUPLE || o->kind == R_DATA))
        for (int64_t n = o->count - 1; ok && n >= 0; n--)
          if (at[n].kind >= R_TENSOR && at[n].v.o->mark == 0) ok = r_push(stack, at[n].v.o);
      if (!ok || stack->count > before) continue;
      stack->count--;
      if (o->mark == 0 && (ok = r_push(seen, o))) o->mark = (int32_t)seen->count;
    }
    while (ok && cell < seen->count && seen->at[cell]->kind != R_CELL) cell++;
    if (!ok || cell == seen->count) return ok;
    value = ((r_fields*)seen->at[cell++])->at[0];
  }
}

static int r_keep(r_machine* m, r_value x) {
  if (!r_grow((void**)&m->handles, &m->handle_room, m->handle_count + 1, sizeof(r_value))) return 0;
  m->handles[m->handle_count++] = x;
  m->handles_held++;
  R_HOLD(x);
  return 1;
}

static int r_say_value(r_machine* m, r_value x) {
  return r_say(&m->fields, x.kind) && r_say(&m->fields, x.kind >= R_TENSOR ? x.v.o->mark - 1 : x.v.i);
}

static int r_say_object(r_machine* m, r_object* o) {
  if (!r_say(&m->heads, o->kind) || !r_say(&m->heads, o->tag)) return 0;
  if (o->kind == R_CLOSURE) return r_say(&m->heads, m->handle_count) && r_keep(m, r_object_value(o));
  int ok = r_say(&m->heads, o->count);
  const r_tensor* t = (const r_tensor*)o;
  if (o->kind == R_TENSOR) ok = ok && r_say(&m->sizes, t->bytes) && r_say(&m->sizes, (int64_t)(uintptr_t)t->data) && r_say(&m->sizes, 1);
  for (int64_t n = 0; ok && n < o->count; n++)
    ok = o->kind == R_TENSOR ? r_say(&m->sizes, t->dims[n]) : r_say_value(m, ((r_fields*)o)->at[n]);
  return ok;
}

// Describe the result: the addresses and lengths of heads, fields and sizes. Parts come before the whole; what cells hold may
// come later. -1 says that memory ends.
R_SHOWN int relay_vm_describe(r_machine* m, int64_t* out) {
  r_objects seen = {0}, stack = {0};
  m->heads.count = m->fields.count = m->sizes.count = 0;
  int ok = r_number(m, m->result, &seen, &stack);
  for (int64_t n = 0; ok && n < seen.count; n++) ok = r_say_object(m, seen.at[n]);
  ok = ok && r_say_value(m, m->result);
  for (int64_t n = 0; n < seen.count; n++) seen.at[n]->mark = 0;
  free(seen.at);
  free(stack.at);
  const r_wordlist* const found[] = {&m->heads, &m->fields, &m->sizes};
  for (int n = 0; n < 3; n++) { out[2 * n] = (int64_t)(uintptr_t)found[n]->at; out[2 * n + 1] = found[n]->count; }
  return ok ? 0 : -1;
}

R_SHOWN void relay_vm_let_go(r_machine* m, int64_t handle) {
  R_DROP(m->handles[handle]);
  m->handles[handle].kind = R_NONE;
  m->handles_held--;
}

