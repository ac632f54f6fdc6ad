// The beginning and the end of MPI. This library is preloaded into programs of any MPI, and into
// those without: it knows no mpi.h. These calls are the same in the binary interface of each MPI.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "interpose/job.hpp"
#include "interpose/next_call.hpp"

namespace cairn::interpose {
namespace {

/// A program may have loaded its MPI where a search from here does not find it, as Python does.
void* find_in_loaded_mpi(const char* name) {
  struct Search {
    const char* name;
    void* found;
  } search{name, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        Search& wanted = *static_cast<Search*>(data);
        if (std::strstr(info->dlpi_name, "/libmpi") == nullptr) return 0;
        void* const library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) return 0;
        wanted.found = dlsym(library, wanted.name);
        dlclose(library);
        return wanted.found == nullptr ? 0 : 1;
      },
      &search);
  return search.found;
}

/// MPI's own function, by its name for tools. MPICH has such names with "pmpir" for its module
/// mpi_f08, so the name that the program calls is the second choice. A program that calls these has
/// one of them.
template <class F>
F* of_mpi(const char* name) {
  void* address = nullptr;
  for (const char* const one : {name, name + 1}) {
    if (address == nullptr) address = dlsym(RTLD_NEXT, one);
    if (address == nullptr) address = find_in_loaded_mpi(one);
  }
  return reinterpret_cast<F*>(address);
}

/// The functions that end a job. They are looked up before they are needed: a signal handler may
/// call them.
class AbortCall {
 public:
  explicit constexpr AbortCall(const char* name) : name_(name) {}

  void find() {
    address_.store(reinterpret_cast<void*>(of_mpi<void()>(name_)), std::memory_order_release);
  }
  template <class F>
  F* get() {
    if (address_.load(std::memory_order_acquire) == nullptr) find();
    return reinterpret_cast<F*>(address_.load(std::memory_order_acquire));
  }

 private:
  const char* name_;
  std::atomic<void*> address_{nullptr};
};
constinit AbortCall abort_c("PMPI_Abort");
constinit AbortCall abort_fortran("pmpi_abort_");
constinit AbortCall abort_f08("pmpi_abort_f08_");

/// MPIs that come here by two of the names below start it once.
void begin() {
  static std::atomic_flag has_begun = ATOMIC_FLAG_INIT;
  if (has_begun.test_and_set()) return;
  for (AbortCall* const call : {&abort_c, &abort_fortran, &abort_f08}) call->find();
  if (Process* const here = process()) start_job(*here);
}

void end() {
  if (Process* const here = process()) finish_job(*here);
}

void abort_it() {
  if (Process* const here = process()) abort_job(*here);
}

}  // namespace
}  // namespace cairn::interpose

using cairn::interpose::abort_c;
using cairn::interpose::abort_f08;
using cairn::interpose::abort_fortran;
using cairn::interpose::abort_it;
using cairn::interpose::begin;
using cairn::interpose::end;
using cairn::interpose::of_mpi;

CAIRN_WRAPPED int MPI_Init(int* argc, char*** argv) {
  const int result = of_mpi<int(int*, char***)>("PMPI_Init")(argc, argv);
  if (result == 0) begin();
  return result;
}

CAIRN_WRAPPED int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result =
      of_mpi<int(int*, char***, int, int*)>("PMPI_Init_thread")(argc, argv, required, provided);
  if (result == 0) begin();
  return result;
}

CAIRN_WRAPPED int MPI_Finalize() {
  end();
  return of_mpi<int()>("PMPI_Finalize")();
}

// A communicator is a number in MPICH and a pointer in Open MPI: both are passed on in one
// register.
CAIRN_WRAPPED int MPI_Abort(void* comm, int code) {
  abort_it();
  return abort_c.get<int(void*, int)>()(comm, code);
}

// Fortran's calls do not come by C's names.

CAIRN_WRAPPED void mpi_abort_(int* comm, int* code, int* error) {
  abort_it();
  abort_fortran.get<void(int*, int*, int*)>()(comm, code, error);
}

CAIRN_WRAPPED void mpi_init_(int* error) {
  of_mpi<void(int*)>("pmpi_init_")(error);
  if (*error == 0) begin();
}

CAIRN_WRAPPED void mpi_init_thread_(int* required, int* provided, int* error) {
  of_mpi<void(int*, int*, int*)>("pmpi_init_thread_")(required, provided, error);
  if (*error == 0) begin();
}

CAIRN_WRAPPED void mpi_finalize_(int* error) {
  end();
  of_mpi<void(int*)>("pmpi_finalize_")(error);
}

// Those of the module mpi_f08. The argument for the error may be left out.

CAIRN_WRAPPED void mpi_init_f08_(int* error) {
  int own = 0;
  int* const result = error == nullptr ? &own : error;
  of_mpi<void(int*)>("pmpi_init_f08_")(result);
  if (*result == 0) begin();
}

CAIRN_WRAPPED void mpi_init_thread_f08_(int* required, int* provided, int* error) {
  int own = 0;
  int* const result = error == nullptr ? &own : error;
  of_mpi<void(int*, int*, int*)>("pmpi_init_thread_f08_")(required, provided, result);
  if (*result == 0) begin();
}

CAIRN_WRAPPED void mpi_finalize_f08_(int* error) {
  end();
  of_mpi<void(int*)>("pmpi_finalize_f08_")(error);
}

CAIRN_WRAPPED void mpi_abort_f08_(void* comm, int* code, int* error) {
  abort_it();
  abort_f08.get<void(void*, int*, int*)>()(comm, code, error);
}
