#include "files/hooked_files.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

namespace cairn {
namespace {

/// The hook and its count, shared by all objects that were opened.
class Gate {
 public:
  explicit Gate(FileHook hook) : hook_(std::move(hook)) {}

  Status pass(std::string_view name, std::string_view path, std::string_view to = {},
              std::uint64_t bytes = 0) {
    return hook_(FileOperation{name, path, next_++, to, bytes});
  }

 private:
  FileHook hook_;
  std::atomic<std::uint64_t> next_ = 0;
};

class HookedFile final : public File {
 public:
  HookedFile(std::shared_ptr<Gate> gate, std::string path, std::unique_ptr<File> inner)
      : gate_(std::move(gate)), path_(std::move(path)), inner_(std::move(inner)) {}

  Status read_at(std::uint64_t offset, MutableBytes buffer) override {
    CAIRN_TRY(gate_->pass("read", path_, {}, buffer.size()));
    return inner_->read_at(offset, buffer);
  }
  Status write_at(std::uint64_t offset, Bytes data) override {
    CAIRN_TRY(gate_->pass("write", path_, {}, data.size()));
    return inner_->write_at(offset, data);
  }
  Status write_past_cache(std::uint64_t offset, Bytes data) override {
    CAIRN_TRY(gate_->pass("write", path_, {}, data.size()));
    return inner_->write_past_cache(offset, data);
  }
  Status resize(std::uint64_t bytes) override {
    CAIRN_TRY(gate_->pass("resize", path_));
    return inner_->resize(bytes);
  }
  Status sync() override {
    CAIRN_TRY(gate_->pass("sync", path_));
    return inner_->sync();
  }
  Status sync_all() override {
    CAIRN_TRY(gate_->pass("sync_all", path_));
    return inner_->sync_all();
  }
  Status set_attributes(std::uint32_t mode, const FileTimes& times) override {
    CAIRN_TRY(gate_->pass("set_attributes", path_));
    return inner_->set_attributes(mode, times);
  }
  void start_writing(std::uint64_t offset, std::uint64_t length) override {
    inner_->start_writing(offset, length);
  }
  Result<std::uint64_t> size() override {
    CAIRN_TRY(gate_->pass("size", path_));
    return inner_->size();
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::string path_;
  std::unique_ptr<File> inner_;
};

class HookedView final : public View {
 public:
  HookedView(std::shared_ptr<Gate> gate, std::string path, std::unique_ptr<View> inner)
      : gate_(std::move(gate)), path_(std::move(path)), inner_(std::move(inner)) {}

  std::uint64_t size() const override { return inner_->size(); }
  Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) override {
    CAIRN_TRY(gate_->pass("view_at", path_, {}, length));
    return inner_->at(offset, length, scratch);
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::string path_;
  std::unique_ptr<View> inner_;
};

class HookedFileSystemSync final : public FileSystemSync {
 public:
  HookedFileSystemSync(std::shared_ptr<Gate> gate, std::string path,
                       std::unique_ptr<FileSystemSync> inner)
      : gate_(std::move(gate)), path_(std::move(path)), inner_(std::move(inner)) {}

  Status sync() override {
    CAIRN_TRY(gate_->pass("sync_file_system", path_));
    return inner_->sync();
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::string path_;
  std::unique_ptr<FileSystemSync> inner_;
};

class HookedFiles final : public Files {
 public:
  HookedFiles(Files& inner, FileHook hook)
      : inner_(inner), gate_(std::make_shared<Gate>(std::move(hook))) {}

  Result<std::unique_ptr<File>> open(const std::string& path) override {
    CAIRN_TRY(gate_->pass("open", path));
    return hooked(path, inner_.open(path));
  }
  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    CAIRN_TRY(gate_->pass("open_for_update", path));
    return hooked(path, inner_.open_for_update(path));
  }
  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    CAIRN_TRY(gate_->pass("create", path));
    return hooked(path, inner_.create(path, mode));
  }
  Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                               std::uint32_t mode) override {
    CAIRN_TRY(gate_->pass("create", path));
    return hooked(path, inner_.create_or_open(path, mode));
  }
  Status append(const std::string& path, Bytes data, std::uint32_t mode) override {
    CAIRN_TRY(gate_->pass("append", path, {}, data.size()));
    return inner_.append(path, data, mode);
  }
  Result<std::unique_ptr<View>> view(const std::string& path) override {
    CAIRN_TRY(gate_->pass("view", path));
    CAIRN_ASSIGN(auto opened, inner_.view(path));
    return std::make_unique<HookedView>(gate_, path, std::move(opened));
  }
  Result<FileInfo> info(const std::string& path) override {
    CAIRN_TRY(gate_->pass("info", path));
    return inner_.info(path);
  }
  Result<Writer> find_writer(const std::string& path) override {
    CAIRN_TRY(gate_->pass("find_writer", path));
    return inner_.find_writer(path);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    CAIRN_TRY(gate_->pass("list", directory));
    return inner_.list(directory);
  }
  Status make_folder(const std::string& path, std::uint32_t mode) override {
    CAIRN_TRY(gate_->pass("make_folder", path));
    return inner_.make_folder(path, mode);
  }
  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    CAIRN_TRY(gate_->pass("make_new_folder", path));
    return inner_.make_new_folder(path, mode);
  }
  Status rename(const std::string& from, const std::string& to) override {
    CAIRN_TRY(gate_->pass("rename", from, to));
    return inner_.rename(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    CAIRN_TRY(gate_->pass("link", from, to));
    return inner_.link(from, to);
  }
  Status remove_file(const std::string& path) override {
    CAIRN_TRY(gate_->pass("remove_file", path));
    return inner_.remove_file(path);
  }
  Status remove_folder(const std::string& path) override {
    CAIRN_TRY(gate_->pass("remove_folder", path));
    return inner_.remove_folder(path);
  }
  Status set_attributes(const std::string& path, std::uint32_t mode,
                        const FileTimes& times) override {
    CAIRN_TRY(gate_->pass("set_attributes", path));
    return inner_.set_attributes(path, mode, times);
  }
  Status sync_folder(const std::string& directory) override {
    CAIRN_TRY(gate_->pass("sync_folder", directory));
    return inner_.sync_folder(directory);
  }
  Result<std::unique_ptr<FileSystemSync>> open_file_system(const std::string& directory) override {
    CAIRN_TRY(gate_->pass("open_file_system", directory));
    CAIRN_ASSIGN(auto opened, inner_.open_file_system(directory));
    if (opened == nullptr) return nullptr;
    return std::make_unique<HookedFileSystemSync>(gate_, directory, std::move(opened));
  }
  Result<Space> space(const std::string& path) override {
    CAIRN_TRY(gate_->pass("space", path));
    return inner_.space(path);
  }
  Status may_change(const std::string& directory) override {
    CAIRN_TRY(gate_->pass("may_change", directory));
    return inner_.may_change(directory);
  }

  Result<bool> is_memory(const std::string& path) override {
    CAIRN_TRY(gate_->pass("is_memory", path));
    return inner_.is_memory(path);
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    CAIRN_TRY(gate_->pass("lock", path));
    return inner_.lock(path);
  }
  std::uint32_t effective_user() override { return inner_.effective_user(); }
  std::string boot() override { return inner_.boot(); }

 private:
  Result<std::unique_ptr<File>> hooked(const std::string& path,
                                       Result<std::unique_ptr<File>> opened) {
    CAIRN_ASSIGN(auto file, std::move(opened));
    return std::make_unique<HookedFile>(gate_, path, std::move(file));
  }

  Files& inner_;
  std::shared_ptr<Gate> gate_;
};

}  // namespace

bool changes_files(const FileOperation& operation) {
  static constexpr std::string_view reading[] = {"open",
                                                 "open_for_update",
                                                 "open_file_system",
                                                 "view",
                                                 "view_at",
                                                 "read",
                                                 "size",
                                                 "info",
                                                 "find_writer",
                                                 "list",
                                                 "space",
                                                 "may_change",
                                                 "is_memory"};
  return std::find(std::begin(reading), std::end(reading), operation.name) == std::end(reading);
}

std::unique_ptr<Files> make_hooked_files(Files& inner, FileHook hook) {
  return std::make_unique<HookedFiles>(inner, std::move(hook));
}

}  // namespace cairn
