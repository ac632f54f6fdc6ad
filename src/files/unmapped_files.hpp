// Reads files where others map them, as long as the program may change these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "files/files.hpp"

namespace cairn {

/// A Files whose views read into the caller's buffer: for files that the program may cut short at
/// any time (docs/adr/0011-a-file-cut-under-a-mapping.md). Once `stop` is requested the views fail,
/// so that reading large files ends soon. Before each read of a view comes `before_read`, with the
/// number of bytes. From when `may_map` is true the views are those of `inner`: the program waits
/// until all is read, so it changes nothing, and a mapping saves a copy. All else is as in `inner`,
/// which must outlive it. It must outlive its views, which one thread uses at a time.
class UnmappedFiles final : public Files {
 public:
  using BeforeRead = std::function<void(std::uint64_t bytes)>;
  using MayMap = std::function<bool()>;

  UnmappedFiles(Files& inner, std::stop_token stop, BeforeRead before_read, MayMap may_map)
      : inner_(inner),
        stop_(std::move(stop)),
        before_read_(std::move(before_read)),
        may_map_(std::move(may_map)) {}

  Result<std::unique_ptr<View>> view(const std::string& path) override {
    CAIRN_ASSIGN(const auto file, inner_.open(path));
    CAIRN_ASSIGN(const std::uint64_t size, file->size());
    return std::make_unique<ReadView>(*this, path, size);
  }

  Result<std::unique_ptr<File>> open(const std::string& path) override { return inner_.open(path); }
  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    return inner_.open_for_update(path);
  }
  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    return inner_.create(path, mode);
  }
  Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                               std::uint32_t mode) override {
    return inner_.create_or_open(path, mode);
  }
  Status append(const std::string& path, Bytes data, std::uint32_t mode) override {
    return inner_.append(path, data, mode);
  }
  Result<FileInfo> info(const std::string& path) override { return inner_.info(path); }
  Result<Writer> find_writer(const std::string& path) override { return inner_.find_writer(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return inner_.list(folder);
  }
  Result<std::unique_ptr<Folder>> open_folder(const std::string& path) override {
    return inner_.open_folder(path);
  }
  Status make_folder(const std::string& path, std::uint32_t mode) override {
    return inner_.make_folder(path, mode);
  }
  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    return inner_.make_new_folder(path, mode);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return inner_.rename(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    return inner_.link(from, to);
  }
  Status remove_file(const std::string& path) override { return inner_.remove_file(path); }
  Status remove_folder(const std::string& path) override { return inner_.remove_folder(path); }
  Status set_attributes(const std::string& path, std::uint32_t mode,
                        const FileTimes& times) override {
    return inner_.set_attributes(path, mode, times);
  }
  Status sync_folder(const std::string& folder) override { return inner_.sync_folder(folder); }
  Result<std::unique_ptr<FileSystemSync>> open_file_system(const std::string& folder) override {
    return inner_.open_file_system(folder);
  }
  Result<Space> space(const std::string& path) override { return inner_.space(path); }
  Result<bool> is_memory(const std::string& path) override { return inner_.is_memory(path); }
  Status may_change(const std::string& folder) override { return inner_.may_change(folder); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return inner_.lock(path);
  }
  std::uint32_t effective_user() override { return inner_.effective_user(); }
  std::string boot() override { return inner_.boot(); }

 private:
  class ReadView final : public View {
   public:
    ReadView(UnmappedFiles& files, std::string path, std::uint64_t bytes)
        : files_(files), path_(std::move(path)), bytes_(bytes) {}
    std::uint64_t size() const override { return bytes_; }
    Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) override {
      files_.before_read_(length);
      if (files_.stop_.stop_requested())
        return fail(Code::io, "{} is not read to its end: this process ends", path_);
      if (!mapped_ && files_.may_map_()) {
        CAIRN_ASSIGN(mapped_, files_.inner_.view(path_));
      }
      if (mapped_) return mapped_->at(offset, length, scratch);
      CAIRN_ASSIGN(File* const file, files_.find_open(path_));
      const MutableBytes buffer = scratch.first(length);
      CAIRN_TRY(file->read_at(offset, buffer));
      return Bytes(buffer);
    }

   private:
    UnmappedFiles& files_;
    std::string path_;
    std::uint64_t bytes_;
    std::unique_ptr<View> mapped_;
  };

  Result<File*> find_open(const std::string& path) {
    if (open_ && path == open_path_) return open_.get();
    open_ = nullptr;
    CAIRN_ASSIGN(open_, inner_.open(path));
    open_path_ = path;
    return open_.get();
  }

  Files& inner_;
  const std::stop_token stop_;
  const BeforeRead before_read_;
  const MayMap may_map_;
  /// The file that was read last. No others: a rank may have more files in a dataset than a process
  /// may have open.
  std::unique_ptr<File> open_;
  std::string open_path_;
};

}  // namespace cairn
