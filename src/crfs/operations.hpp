// The operations of the file system, for libfuse. Each is a function that returns an errno, or 0.
#pragma once

#include <new>

#include "crfs/file_system.hpp"

namespace cairn {

/// The session's userdata must be a FileSystem.
fuse_lowlevel_ops make_operations();

// Its parts.
void add_name_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);
void add_xattr_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);
void add_data_operations(fuse_lowlevel_ops& operations);

namespace detail {

template <class... Arguments>
using Operation = int (*)(FileSystem&, fuse_req_t, Arguments...);

template <auto operation, bool answers, class... Arguments>
void call(fuse_req_t request, Arguments... arguments) {
  int error = ENOMEM;
  try {
    auto& files = *static_cast<FileSystem*>(fuse_req_userdata(request));
    error = operation(files, request, arguments...);
    if (error == EMFILE) error = files.out_of_descriptors();
  } catch (const std::bad_alloc&) {
  }
  if (error != 0 || !answers) fuse_reply_err(request, error);
}

template <auto operation, bool answers, class... Arguments>
constexpr auto caller_of(Operation<Arguments...>) {
  return &call<operation, answers, Arguments...>;
}

}  // namespace detail

/// For libfuse: an operation that sends its own answer if it returns 0.
template <auto operation>
constexpr auto answering = detail::caller_of<operation, true>(operation);
/// For libfuse: an operation whose errno is the whole answer.
template <auto operation>
constexpr auto returning = detail::caller_of<operation, false>(operation);

/// 0 or the errno of a system call.
inline int errno_of(long result) { return result == -1 ? errno : 0; }

inline Handle& handle_of(const fuse_file_info* info) {
  return *reinterpret_cast<Handle*>(info->fh);
}

}  // namespace cairn
