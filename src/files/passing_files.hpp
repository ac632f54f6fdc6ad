// A Files that forwards all calls, for tests that override some of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "files/files.hpp"

namespace cairn {

class PassingFiles : public Files {
 public:
  explicit PassingFiles(std::unique_ptr<Files> inner) : inner_(std::move(inner)) {}

  Result<std::unique_ptr<File>> open(const std::string& path) override {
    return inner_->open(path);
  }
  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    return inner_->open_for_update(path);
  }
  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    return inner_->create(path, mode);
  }
  Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                               std::uint32_t mode) override {
    return inner_->create_or_open(path, mode);
  }
  Status append(const std::string& path, Bytes data, std::uint32_t mode) override {
    return inner_->append(path, data, mode);
  }
  Result<std::unique_ptr<View>> view(const std::string& path) override {
    return inner_->view(path);
  }
  Result<FileInfo> info(const std::string& path) override { return inner_->info(path); }
  Result<Writer> find_writer(const std::string& path) override { return inner_->find_writer(path); }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return inner_->list(directory);
  }
  Status make_folder(const std::string& path, std::uint32_t mode) override {
    return inner_->make_folder(path, mode);
  }
  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    return inner_->make_new_folder(path, mode);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return inner_->rename(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    return inner_->link(from, to);
  }
  Status remove_file(const std::string& path) override { return inner_->remove_file(path); }
  Status remove_folder(const std::string& path) override { return inner_->remove_folder(path); }
  Status set_attributes(const std::string& path, std::uint32_t mode,
                        const FileTimes& times) override {
    return inner_->set_attributes(path, mode, times);
  }
  Status sync_folder(const std::string& directory) override {
    return inner_->sync_folder(directory);
  }
  Result<std::unique_ptr<FileSystemSync>> open_file_system(const std::string& directory) override {
    return inner_->open_file_system(directory);
  }
  Result<Space> space(const std::string& path) override { return inner_->space(path); }
  Result<bool> is_memory(const std::string& path) override { return inner_->is_memory(path); }
  Status may_change(const std::string& directory) override { return inner_->may_change(directory); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return inner_->lock(path);
  }
  std::uint32_t effective_user() override { return inner_->effective_user(); }
  std::string boot() override { return inner_->boot(); }

 private:
  std::unique_ptr<Files> inner_;
};

}  // namespace cairn
