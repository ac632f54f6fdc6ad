#include "crfs/operations.hpp"

namespace cairn {
namespace {

void want(fuse_conn_info& connection, unsigned features) {
  connection.want |= connection.capable & features;
}

/// Answers the kernel's first request.
void begin(void* user_data, fuse_conn_info* connection) {
  const auto& files = *static_cast<FileSystem*>(user_data);
  // The backing file system handles ACLs and umask. Only the daemon invalidates the kernel's cache:
  // the time of a file also changes when cached data reach the backing directory.
  want(*connection, FUSE_CAP_DONT_MASK | FUSE_CAP_POSIX_ACL | FUSE_CAP_CACHE_SYMLINKS |
                        FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS |
                        FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_EXPLICIT_INVAL_DATA |
                        FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO);
  // Data are copied to the pool in any case, so splicing gains nothing. O_TRUNC comes as a change
  // of size after open(), so a failed open() does not truncate.
  connection->want &= ~(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
                        FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  // But a file that is a part of a checkpoint has to be left to it before it is emptied.
  if (files.redirection != nullptr) want(*connection, FUSE_CAP_ATOMIC_O_TRUNC);
  if (files.options.mode == Mode::passthrough && !files.promises.has_passthrough())
    files.complain(
        "--mode passthrough: this kernel does not support it (Linux 6.12 or later does, with "
        "CONFIG_FUSE_PASSTHROUGH); crfs gathers the writes, as with --mode direct");
  if (files.options.writeback()) want(*connection, FUSE_CAP_WRITEBACK_CACHE);
  connection->time_gran = 1;
}

}  // namespace

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops operations = {};
  operations.init = begin;
  add_name_operations(operations);
  add_attribute_operations(operations);
  add_xattr_operations(operations);
  add_directory_operations(operations);
  add_file_operations(operations);
  add_data_operations(operations);
  return operations;
}

}  // namespace cairn
