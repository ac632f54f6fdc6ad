#include "zero_files.hpp"

#include <algorithm>

namespace cairn {
namespace {

constexpr std::size_t largest_block = std::size_t{1} << 20;

/// What all files are made of.
Bytes zeros(std::size_t bytes) {
  static const Blob page(largest_block);
  return Bytes(page).first(bytes);
}

struct Node {
  NodeRates rates;
  Spend spend;
  std::map<std::string, FileInfo> files;
};

class ZeroFile final : public File {
 public:
  ZeroFile(Node& node, FileInfo& info) : node_(node), info_(info) {}
  Status read_at(std::uint64_t, MutableBytes buffer) override {
    std::fill(buffer.begin(), buffer.end(), std::byte{0});
    node_.spend(static_cast<double>(buffer.size()) / node_.rates.read);
    return {};
  }
  Status write_at(std::uint64_t offset, Bytes data) override {
    info_.size = std::max<std::uint64_t>(info_.size, offset + data.size());
    node_.spend(static_cast<double>(data.size()) / node_.rates.write);
    return {};
  }
  Status resize(std::uint64_t bytes) override {
    info_.size = bytes;
    return {};
  }
  Status sync() override { return {}; }
  Status sync_all() override { return {}; }
  Status set_attributes(std::uint32_t, const FileTimes&) override { return {}; }
  Result<std::uint64_t> size() override { return info_.size; }

 private:
  Node& node_;
  FileInfo& info_;
};

class ZeroView final : public View {
 public:
  ZeroView(Node& node, std::uint64_t size) : node_(node), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<Bytes> at(std::uint64_t, std::size_t length, MutableBytes) override {
    node_.spend(static_cast<double>(length) / node_.rates.read);
    return zeros(length);
  }

 private:
  Node& node_;
  std::uint64_t size_;
};

class ZeroFiles final : public Files {
 public:
  explicit ZeroFiles(Node node) : node_(std::move(node)) {}

  Result<std::unique_ptr<File>> open(const std::string& path) override { return existing(path); }
  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    return existing(path);
  }
  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    node_.files[path] = {};
    node_.files[path].mode = mode;
    return existing(path);
  }
  Status append(const std::string& path, Bytes data, std::uint32_t) override {
    node_.files[path].size += data.size();
    return {};
  }
  Result<std::unique_ptr<View>> view(const std::string& path) override {
    CAIRN_ASSIGN(const FileInfo found, info(path));
    return std::make_unique<ZeroView>(node_, found.size);
  }
  Result<FileInfo> info(const std::string& path) override {
    const auto found = node_.files.find(path);
    if (found == node_.files.end()) return fail(Code::not_found, "there is no {}", path);
    return found->second;
  }
  Result<std::vector<std::string>> list(const std::string&) override {
    return std::vector<std::string>{};
  }
  Status make_folder(const std::string&, std::uint32_t) override { return {}; }
  Result<bool> make_new_folder(const std::string&, std::uint32_t) override { return true; }
  Status rename(const std::string& from, const std::string& to) override {
    node_.files[to] = node_.files[from];
    node_.files.erase(from);
    return {};
  }
  Status link(const std::string& from, const std::string& to) override {
    node_.files[to] = node_.files[from];
    return {};
  }
  Status remove_file(const std::string& path) override {
    node_.files.erase(path);
    return {};
  }
  Status remove_folder(const std::string&) override { return {}; }
  Status set_attributes(const std::string&, std::uint32_t, const FileTimes&) override { return {}; }
  Status sync_folder(const std::string&) override { return {}; }
  Result<Space> space(const std::string&) override { return Space{}; }
  Result<bool> is_memory(const std::string&) override { return true; }
  Result<std::unique_ptr<FileLock>> lock(const std::string&) override {
    return std::make_unique<FileLock>();
  }
  std::uint32_t effective_user() override { return 0; }

 private:
  Result<std::unique_ptr<File>> existing(const std::string& path) {
    const auto found = node_.files.find(path);
    if (found == node_.files.end()) return fail(Code::not_found, "there is no {}", path);
    return std::make_unique<ZeroFile>(node_, found->second);
  }

  Node node_;
};

}  // namespace

std::unique_ptr<Files> make_zero_files(const NodeRates& rates, Spend spend) {
  return std::make_unique<ZeroFiles>(Node{rates, std::move(spend), {}});
}

}  // namespace cairn
