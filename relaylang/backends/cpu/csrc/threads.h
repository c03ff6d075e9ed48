//@ r_site
// A place that runs a kernel: what all its units cost one thread (ns, 0: unknown), its runs, and how many units take no longer
// than a look may wait.
#include <stdatomic.h>
typedef struct { atomic_long cost, runs, piece; } r_site;
typedef void (*r_kernel)(void* const* b, long lo, long hi);

//@ r_watch r_stopped r_alone: r_site
// The end of a run before its time. `relay_interrupted` is the loader's: it returns 1 where the caller of the run wants its
// end. The thread `relay_main`, where signals come, asks often; others ask for a limit of time. A stopped run leaves its
// results undefined.
#include <pthread.h>
#include <time.h>
#if defined(_WIN32)
#include <windows.h>
#define R_SEEN __declspec(dllexport)
#define r_self() ((unsigned long)GetCurrentThreadId())
#else
#define R_SEEN __attribute__((visibility("default")))
#define r_self() ((unsigned long)pthread_self())
#endif
R_SEEN int (*relay_interrupted)(void);
R_SEEN unsigned long relay_main;
// A clock that is read in no time. A tick is 0.2 to 1 ns.
static inline int64_t r_tick(void) {
#if defined(__x86_64__) || defined(__i386__)
  return (int64_t)__builtin_ia32_rdtsc();
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
}
// Ticks between two questions (10 to 50 ms), those of other threads, and those of a kernel's piece.
#define R_ASK 50000000
#define R_SELDOM 1000000000
#define R_PIECE 20000000
static _Thread_local struct { int64_t next, apart; int stopped; } r_run;
static atomic_flag r_asking = ATOMIC_FLAG_INIT;

// Begin a run.
R_LOCAL void r_watch(void) {
  r_run.stopped = 0;
  r_run.apart = r_self() == relay_main ? R_ASK : R_SELDOM;
  r_run.next = relay_interrupted ? r_tick() + r_run.apart : INT64_MAX;
}

static inline int r_stopped_at(int64_t now) {
  if (now >= r_run.next && !r_run.stopped && !atomic_flag_test_and_set(&r_asking)) {
    r_run.stopped = relay_interrupted();
    r_run.next = r_tick() + r_run.apart;
    atomic_flag_clear(&r_asking);
  }
  return r_run.stopped;
}

// Whether the run ends here.
R_LOCAL int r_stopped(void) { return r_stopped_at(r_tick()); }

// Run a kernel's units from `lo` on in pieces, between which it may end. Returns whether it did.
R_LOCAL int r_alone(r_site* site, r_kernel kernel, void* const* buffers, long lo, long units, long grain) {
  const long known = atomic_load_explicit(&site->piece, memory_order_relaxed);
  long piece = known < grain ? grain : known;
  int stopped = 0;
  for (int64_t begin = r_tick(), end; lo < units && !stopped; begin = end) {
    const long size = units - lo > piece ? piece : units - lo;
    kernel(buffers, lo, lo + size);
    lo += size;
    end = r_tick();
    if (end - begin > R_PIECE) {
      piece = (long)((double)size * (R_PIECE / 2) / (double)(end - begin));
      if (piece < grain) piece = grain;
    } else if (lo < units && end - begin < R_PIECE / 4) {
      piece *= 2;
    }
    stopped = r_stopped_at(end);
  }
  if (piece != known) atomic_store_explicit(&site->piece, piece, memory_order_relaxed);
  return stopped;
}

//@ r_threads: r_site
// A pool of threads that share the units of one kernel at a time; the calling thread takes part. It waits for those
// that have begun, never for one that the system has not woken yet. Behind each kernel the threads look out for the next one
// for a moment, and sleep then. So they are at hand between the kernels of a run, and between runs that follow at once.
// Each thread begins with its own stretch of the units, the same in each kernel: its processor has what it made before.
// Then it helps with the rest of the others' stretches.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
// Waking a thread takes about this long (ns), and giving work to one that looks out for it. It gets so much work at least.
#ifndef R_WAKE
#define R_WAKE 20000
#endif
#ifndef R_HAND
#define R_HAND 2000
#endif
// How long a thread looks out before it sleeps, and what a share of the work takes at least.
#define R_LOOK 50000
#ifndef R_SHARE
#define R_SHARE 1000
#endif
// What a piece takes at most.
#define R_TURN 10000000
#define R_APART __attribute__((aligned(64)))
// The most threads that share a kernel.
#define R_MOST 256
#if defined(__x86_64__) || defined(__i386__)
#define r_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define r_pause() __asm__ volatile("isb" ::: "memory")
#else
#define r_pause() __asm__ volatile("" ::: "memory")
#endif
static struct {
  pthread_mutex_t lock, owner;
  pthread_cond_t wake, done;
  pthread_t* threads;
  int stop;
  atomic_long process;
  atomic_int alive;
  // The kernel that is run, and the threads that are still welcome to it.
  r_kernel kernel;
  void* const* buffers;
  long grain, most;
  int shares;
  R_APART atomic_int tickets;
  R_APART atomic_int finished;
  struct { R_APART atomic_long next; long end; } share[R_MOST];
  // Threads that look out, threads that sleep, and whether the caller sleeps.
  R_APART atomic_int looking;
  atomic_int asleep, waiting;
} r_pool;

#ifndef R_WATCHED
// Nothing ends a run of what is C source.
#define r_stopped() 0
static int r_alone(r_site* site, r_kernel kernel, void* const* buffers, long lo, long units, long grain) {
  (void)site; (void)grain;
  kernel(buffers, lo, units);
  return 0;
}
#endif

static long r_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

// Work on the kernel until nothing is left; the units that were done here. A piece is half of what a stretch has left, and
// takes no longer than a look may wait. The caller of a run that ends takes what is left from all.
static long r_share(int own, int caller) {
  const long grain = r_pool.grain, most = r_pool.most;
  const int shares = r_pool.shares;
  long done = 0;
  for (int n = 0; n < shares; n++) {
    const int from = (own + n) % shares;
    atomic_long* next = &r_pool.share[from].next;
    const long end = r_pool.share[from].end;
    long lo = atomic_load_explicit(next, memory_order_relaxed);
    while (lo < end) {
      long size = (end - lo) / 2;
      if (size > most) size = most;
      if (size < grain) size = grain;
      const long hi = end - lo - size < grain ? end : lo + size;
      if (!atomic_compare_exchange_weak_explicit(next, &lo, hi, memory_order_relaxed, memory_order_relaxed)) continue;
      r_pool.kernel(r_pool.buffers, lo, hi);
      done += hi - lo;
      lo = hi;
      if (caller && r_stopped()) {
        for (int k = 0; k < shares; k++) atomic_store_explicit(&r_pool.share[k].next, r_pool.share[k].end, memory_order_relaxed);
        return done;
      }
    }
  }
  return done;
}

// Take a ticket for the kernel that is run, if there is one left.
static int r_enter(void) {
  int left = atomic_load(&r_pool.tickets);
  while (left > 0) if (atomic_compare_exchange_weak(&r_pool.tickets, &left, left - 1)) return 1;
  return 0;
}

// Look out for a ticket for a moment. Others on this processor get their turn.
static int r_look(void) {
  int found = 0;
  long start = r_now(), past = 0;
  atomic_fetch_add(&r_pool.looking, 1);
  while (!found && past < R_LOOK) {
    for (int n = 0; n < 32 && atomic_load_explicit(&r_pool.tickets, memory_order_relaxed) <= 0; n++) r_pause();
    found = r_enter();
    past = r_now() - start;
    if (!found && past > R_LOOK / 8) sched_yield();
  }
  atomic_fetch_sub(&r_pool.looking, 1);
  return found;
}

static void* r_worker(void* number) {
  for (;;) {
    if (r_enter() || r_look()) {
      r_share((int)(size_t)number % r_pool.shares, 0);
      atomic_fetch_add(&r_pool.finished, 1);
      if (atomic_load(&r_pool.waiting)) {
        pthread_mutex_lock(&r_pool.lock);
        pthread_cond_signal(&r_pool.done);
        pthread_mutex_unlock(&r_pool.lock);
      }
      continue;
    }
    pthread_mutex_lock(&r_pool.lock);
    atomic_fetch_add(&r_pool.asleep, 1);
    while (atomic_load(&r_pool.tickets) <= 0 && !r_pool.stop) pthread_cond_wait(&r_pool.wake, &r_pool.lock);
    atomic_fetch_sub(&r_pool.asleep, 1);
    int stop = r_pool.stop;
    pthread_mutex_unlock(&r_pool.lock);
    if (stop) return NULL;
  }
}

// Wait until so many threads have finished.
static void r_wait(int count) {
  for (int n = 0; n < 256; n++) {
    if (atomic_load(&r_pool.finished) == count) return;
    r_pause();
  }
  long start = r_now();
  while (atomic_load(&r_pool.finished) != count) {
    for (int n = 0; n < 64 && atomic_load_explicit(&r_pool.finished, memory_order_relaxed) != count; n++) r_pause();
    if (r_now() - start < R_LOOK) continue;
    pthread_mutex_lock(&r_pool.lock);
    atomic_store(&r_pool.waiting, 1);
    while (atomic_load(&r_pool.finished) != count) pthread_cond_wait(&r_pool.done, &r_pool.lock);
    atomic_store(&r_pool.waiting, 0);
    pthread_mutex_unlock(&r_pool.lock);
  }
}

// Make the pool this process's own. A fork copies it without its threads and with its locks in any state.
static void r_adopt(long own) {
  for (;;) {
    long seen = atomic_load(&r_pool.process);
    if (seen == own) return;
    if (seen != -own && atomic_compare_exchange_strong(&r_pool.process, &seen, -own)) break;
    sched_yield();
  }
  pthread_mutex_init(&r_pool.lock, NULL);
  pthread_mutex_init(&r_pool.owner, NULL);
  pthread_cond_init(&r_pool.wake, NULL);
  pthread_cond_init(&r_pool.done, NULL);
  r_pool.threads = NULL;
  r_pool.stop = 0;
  atomic_store(&r_pool.tickets, 0);
  atomic_store(&r_pool.looking, 0);
  atomic_store(&r_pool.asleep, 0);
  atomic_store(&r_pool.waiting, 0);
  atomic_store(&r_pool.alive, 0);
  atomic_store(&r_pool.process, own);
}

// Begin a run: start threads until `count` of them can work together, the caller included. They take none of the
// process's signals.
R_LOCAL void r_begin(int count) {
  long own = (long)getpid();
  if (atomic_load(&r_pool.process) != own) r_adopt(own);
  if (count <= atomic_load(&r_pool.alive) + 1) return;
  pthread_mutex_lock(&r_pool.lock);
  pthread_t* threads = count > r_pool.alive + 1 ? realloc(r_pool.threads, sizeof(pthread_t) * (size_t)count) : NULL;
  if (threads != NULL) {
    pthread_attr_t attributes;
    r_pool.threads = threads;
#ifndef _WIN32
    sigset_t every, old;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
#endif
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    while (r_pool.alive + 1 < count) {
      int n = r_pool.alive;
      if (pthread_create(&threads[n], &attributes, r_worker, (void*)(size_t)(n + 1)) != 0) break;
      r_pool.alive++;
    }
    pthread_attr_destroy(&attributes);
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
  }
  pthread_mutex_unlock(&r_pool.lock);
}

// End the threads, before the library goes. No run may be under way.
R_LOCAL void r_end(void) {
  if (atomic_load(&r_pool.process) != (long)getpid()) return;
  pthread_mutex_lock(&r_pool.lock);
  r_pool.stop = 1;
  pthread_cond_broadcast(&r_pool.wake);
  pthread_mutex_unlock(&r_pool.lock);
  for (int n = 0; n < r_pool.alive; n++) pthread_join(r_pool.threads[n], NULL);
  free(r_pool.threads);
  r_pool.threads = NULL;
  r_pool.alive = r_pool.stop = 0;
}

// Note what the whole would have cost one thread. What disturbs a measurement makes it longer: a lower one is taken at once,
// a higher one bit by bit.
static void r_learn(r_site* site, long units, long done, long took) {
  if (done == 0) return;
  long cost = (long)((double)took * (double)units / (double)done) + 1;
  long known = atomic_load_explicit(&site->cost, memory_order_relaxed);
  if (known != 0 && cost > known) cost = known + (cost - known < known ? cost - known : known) / 8;
  atomic_store_explicit(&site->cost, cost, memory_order_relaxed);
}

// Run a kernel's units, at least `grain` at a time, on up to `threads` threads: as many as the work is worth waking. Alone
// where the pool is taken by another caller. Returns whether the run ends here.
R_LOCAL int r_parallel(r_site* site, r_kernel kernel, void* const* buffers, long units, long grain, int threads) {
  long from = 0, start = 0, helpers = r_pool.alive < threads ? r_pool.alive : threads - 1;
  // Times change little: most runs are not measured.
  long runs = helpers > 0 ? atomic_fetch_add_explicit(&site->runs, 1, memory_order_relaxed) : 0;
  int measured = helpers > 0 && (runs < 4 || (runs & 31) == 0);
  if (units <= grain) helpers = 0;
  if (helpers > 0) {
    long cost = atomic_load_explicit(&site->cost, memory_order_relaxed), looking = atomic_load(&r_pool.looking);
    if (measured) start = r_now();
    if (cost == 0) {
      // The first units are not cheaper than others, and enough of them for a measurement.
      from = (units + 15) / 16 > grain ? (units + 15) / 16 : grain;
      if (r_alone(site, kernel, buffers, 0, from, grain)) return 1;
      r_learn(site, units, from, r_now() - start);
      cost = atomic_load_explicit(&site->cost, memory_order_relaxed);
    }
    long least = (long)((double)units * R_SHARE / (double)cost) + 1;
    if (grain < least) grain = least;
    long chunks = (units - from - 1) / grain, worth = cost / R_HAND;
    if (worth > looking) worth = cost / R_WAKE > looking ? cost / R_WAKE : looking;
    if (helpers > worth) helpers = worth;
    if (helpers > chunks) helpers = chunks;
    if (helpers >= R_MOST) helpers = R_MOST - 1;
  }
  if (helpers <= 0 || pthread_mutex_trylock(&r_pool.owner) != 0) {
    const int stopped = r_alone(site, kernel, buffers, from, units, grain);
    if (measured && start != 0 && !stopped) r_learn(site, units, units, r_now() - start);
    return stopped;
  }
  r_pool.kernel = kernel;
  r_pool.buffers = buffers;
  r_pool.grain = grain;
  r_pool.most = (long)((double)units * R_TURN / (double)atomic_load_explicit(&site->cost, memory_order_relaxed)) + 1;
  r_pool.shares = (int)helpers + 1;
  for (long n = 0, lo = from; n <= helpers; n++) {
    atomic_store_explicit(&r_pool.share[n].next, lo, memory_order_relaxed);
    r_pool.share[n].end = lo = from + (long)((double)(units - from) * (double)(n + 1) / (double)(helpers + 1));
  }
  r_pool.share[helpers].end = units;
  atomic_store_explicit(&r_pool.finished, 0, memory_order_relaxed);
  atomic_store(&r_pool.tickets, (int)helpers);
  if (atomic_load(&r_pool.asleep) > 0 && atomic_load(&r_pool.looking) < helpers) {
    pthread_mutex_lock(&r_pool.lock);
    long missing = helpers - atomic_load(&r_pool.looking);
    if (missing >= atomic_load(&r_pool.asleep)) pthread_cond_broadcast(&r_pool.wake);
    else for (; missing > 0; missing--) pthread_cond_signal(&r_pool.wake);
    pthread_mutex_unlock(&r_pool.lock);
  }
  long done = from + r_share(0, 1);
  if (measured) r_learn(site, units, done, r_now() - start);
  r_wait((int)helpers - atomic_exchange(&r_pool.tickets, 0));
  pthread_mutex_unlock(&r_pool.owner);
  return r_stopped();
}
