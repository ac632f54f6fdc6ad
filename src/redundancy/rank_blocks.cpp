#include "redundancy/rank_blocks.hpp"

#include <algorithm>

namespace cairn {
namespace {

constexpr std::uint32_t private_file = 0600;
constexpr std::uint32_t private_folder = 0700;

}  // namespace

RankBlocks::RankBlocks(Files& files, RankFolder folder, const RankRecord& record)
    : files_(files),
      folder_(std::move(folder)),
      record_(record),
      layout_(record.encoding),
      me_(record.index_in_set()) {
  std::vector<std::string> paths;
  for (const FileEntry& file : record.files) paths.push_back(folder_.file(file.name));
  add_extents(paths);
  parity_ = {folder_.parity(record.encoding.generation), layout_.parity_bytes(me_), 0, 0, nullptr};
}

RankBlocks::RankBlocks(Files& files, const std::vector<std::string>& paths,
                       const RankRecord& record)
    : files_(files), record_(record), layout_(record.encoding), me_(record.index_in_set()) {
  add_extents(paths);
}

void RankBlocks::add_extents(const std::vector<std::string>& paths) {
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const FileEntry& file = record_.files[i];
    extents_.push_back({paths[i], file.length(), start, file.begin(), nullptr});
    start += file.length();
  }
}

std::vector<RankBlocks::Piece> RankBlocks::pieces_of(std::uint64_t offset, std::size_t length) {
  std::vector<Piece> pieces;
  auto extent = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                 [](std::uint64_t at, const Extent& candidate) {
                                   return at < candidate.start + candidate.size;
                                 });
  for (; length > 0 && extent != extents_.end(); ++extent) {
    const std::uint64_t within = offset - extent->start;
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(length, extent->size - within));
    if (part == 0) continue;  // an empty file
    pieces.push_back({&*extent, extent->begin + within, part});
    offset += part;
    length -= part;
  }
  return pieces;
}

Result<Bytes> RankBlocks::read_piece(const Piece& piece, MutableBytes scratch) {
  if (!piece.extent->view) {
    CAIRN_ASSIGN(piece.extent->view, files_.view(piece.extent->path));
  }
  return piece.extent->view->at(piece.offset, piece.length, scratch);
}

Result<Bytes> RankBlocks::data(std::uint64_t index, MutableBytes scratch) {
  const std::size_t length = layout_.data_length(me_, index);
  const auto pieces = pieces_of(layout_.geometry().data_offset(index), length);
  if (pieces.empty()) return Bytes{};
  if (pieces.size() == 1) return read_piece(pieces[0], scratch);
  std::size_t at = 0;
  for (const Piece& piece : pieces) {
    const MutableBytes target = scratch.subspan(at, piece.length);
    CAIRN_ASSIGN(const Bytes part, read_piece(piece, target));
    if (part.data() != target.data()) std::copy(part.begin(), part.end(), target.begin());
    at += piece.length;
  }
  return Bytes(scratch.first(length));
}

Result<Bytes> RankBlocks::parity(std::uint64_t index, MutableBytes scratch) {
  const std::size_t length = layout_.parity_length(me_, index);
  if (length == 0) return Bytes{};
  return read_piece({&parity_, layout_.parity_offset(me_, index), length}, scratch);
}

bool RankBlocks::looks_complete() {
  const auto fits = [this](const Extent& extent) {
    const auto info = files_.info(extent.path);
    return info && info->kind == Kind::file && info->size == extent.size;
  };
  return std::all_of(extents_.begin(), extents_.end(), fits) &&
         (parity_.size == 0 || fits(parity_));
}

RankBlocks::Presence RankBlocks::presence() {
  if (looks_complete()) return Presence::complete;
  const auto missing = [this](const Extent& extent) {
    if (extent.size == 0) return true;
    const auto info = files_.info(extent.path);
    return !info && info.error().code == Code::not_found;
  };
  return std::all_of(extents_.begin(), extents_.end(), missing) && missing(parity_)
             ? Presence::missing
             : Presence::partial;
}

Status RankBlocks::remove() {
  for (Extent& extent : extents_) {
    close(extent);
    CAIRN_TRY(files_.remove_file(extent.path));
  }
  close(parity_);
  return files_.remove_file(parity_.path);
}

Status RankBlocks::reshape(Extent& extent) {
  const auto info = files_.info(extent.path);
  if (info && info->names > 1) {
    close(extent);
    CAIRN_TRY(make_own(files_, extent.path));
  }
  if (info && info->kind == Kind::file && info->size == extent.size) return {};
  // Only what is surely no file may be replaced: the blocks of it that are good are not rebuilt.
  if (!info && info.error().code != Code::not_found) return tl::unexpected(info.error());
  close(extent);
  if (!info || info->kind != Kind::file) {
    CAIRN_TRY(remove_all(files_, extent.path));
    CAIRN_TRY(make_folders(files_, folder_of(extent.path), private_folder));
    CAIRN_TRY(files_.create(extent.path, private_file));
  }
  CAIRN_ASSIGN(File * file, open_writer(extent));
  return file->resize(extent.size);
}

/// What is in its place may be another file from here on.
void RankBlocks::close(Extent& extent) {
  extent.view.reset();
  Writer& writer = writer_for(extent);
  if (writer.extent == &extent) writer = {};
}

Result<File*> RankBlocks::open_writer(const Extent& extent) {
  Writer& writer = writer_for(extent);
  if (writer.file && writer.extent == &extent) return writer.file.get();
  // The application may have made its file read-only; restore_attributes() gives that back.
  CAIRN_TRY(files_.set_attributes(extent.path, private_file, {}));
  CAIRN_ASSIGN(writer.file, files_.open_for_update(extent.path));
  writer.extent = &extent;
  return writer.file.get();
}

Status RankBlocks::make_room() {
  for (Extent& extent : extents_) CAIRN_TRY(reshape(extent));
  return parity_.size > 0 ? reshape(parity_) : Status{};
}

Status RankBlocks::write_piece(const Piece& piece, Bytes part) {
  CAIRN_ASSIGN(File * file, open_writer(*piece.extent));
  return file->write_at(piece.offset, part);
}

Status RankBlocks::write_data(std::uint64_t index, Bytes block) {
  for (const Piece& piece : pieces_of(layout_.geometry().data_offset(index), block.size())) {
    CAIRN_TRY(write_piece(piece, block.first(piece.length)));
    block = block.subspan(piece.length);
  }
  return {};
}

Status RankBlocks::start_parity(const std::string& spare) {
  // A spare that cannot be had, for whatever reason, is no loss.
  parity_writer_ = {nullptr, &parity_};
  if (!spare.empty() && files_.rename(spare, parity_.path)) {
    auto opened = files_.open_for_update(parity_.path);
    if (opened && (*opened)->resize(parity_.size)) {
      parity_writer_.file = *std::move(opened);
      return {};
    }
  }
  CAIRN_TRY(remove_unless(files_, Kind::file, parity_.path));
  CAIRN_ASSIGN(parity_writer_.file, files_.create(parity_.path, private_file));
  return {};
}

void RankBlocks::start_writing() {
  if (writer_.file) writer_.file->start_writing(0, 0);
}

Status RankBlocks::write_parity(std::uint64_t index, Bytes block) {
  return write_piece({&parity_, layout_.parity_offset(me_, index), block.size()}, block);
}

std::set<std::string> RankBlocks::folders() const {
  std::set<std::string> folders = {folder_.path};
  for (const Extent& extent : extents_)
    for (std::string up = folder_of(extent.path); up.size() > folder_.path.size();
         up = folder_of(up))
      folders.insert(up);
  return folders;
}

Status RankBlocks::clear_way() {
  for (const std::string& folder : folders())
    CAIRN_TRY(remove_unless(files_, Kind::folder, folder));
  return {};
}

Status RankBlocks::sync(Status* of_data) {
  const auto sync_extent = [this](const Extent& extent, Status* synced) -> Status {
    CAIRN_ASSIGN(const auto file, files_.open(extent.path));
    Status done = file->sync();
    if (synced != nullptr) *synced = done;
    return done;
  };
  for (const Extent& extent : extents_) CAIRN_TRY(sync_extent(extent, of_data));
  if (parity_.size > 0) CAIRN_TRY(sync_extent(parity_, nullptr));
  for (const std::string& folder : folders()) CAIRN_TRY(files_.sync_folder(folder));
  return {};
}

Status RankBlocks::restore_attributes() {
  for (std::size_t i = 0; i < extents_.size(); ++i)
    CAIRN_TRY(
        files_.set_attributes(extents_[i].path, record_.files[i].mode, record_.files[i].times));
  return {};
}

}  // namespace cairn
