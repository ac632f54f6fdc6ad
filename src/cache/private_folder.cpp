#include "cache/private_folder.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t only_me = 0700;
constexpr std::uint32_t others_may_enter = 0077;
constexpr std::uint32_t others_may_write = 0022;
constexpr std::uint32_t anyone_may_write = 0002;
constexpr std::uint32_t sticky = 01000;
constexpr std::uint32_t root = 0;
/// A container shows all users that it does not know as this one, including root of its host.
constexpr std::uint32_t unknown_user = 65534;

Status check_base(Files& files, const std::string& base) {
  CAIRN_ASSIGN(const FileInfo info, files.info(base));
  const bool trusted =
      info.owner == files.effective_user() || info.owner == root || info.owner == unknown_user;
  if (info.kind == Kind::folder && !trusted)
    return fail(Code::untrusted,
                "cannot use {}: it belongs to user {}, who could replace its contents", base,
                info.owner);
  if (info.kind == Kind::folder && (info.mode & anyone_may_write) != 0 && (info.mode & sticky) == 0)
    return fail(Code::untrusted,
                "cannot use {}: every user can replace its contents (mode {:o}); its owner can "
                "prevent that with: chmod +t {}",
                base, info.mode, base);
  return {};
}

Status claim(Files& files, const std::string& path, std::uint32_t forbidden) {
  CAIRN_TRY(files.make_folder(path, only_me));
  CAIRN_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != Kind::folder)
    return fail(Code::untrusted, "cannot use {}: it is a link or a file, not a directory", path);
  if (info.owner != files.effective_user())
    return fail(Code::untrusted,
                "cannot use {}: it belongs to user {}, but this process runs as user {}", path,
                info.owner, files.effective_user());
  if ((info.mode & forbidden) != 0)
    return fail(Code::untrusted,
                "cannot use {}: other users can read or change it (mode {:o}); prevent that with: "
                "chmod 700 {}",
                path, info.mode, path);
  return {};
}

}  // namespace

Result<std::string> claim_private_folder(Files& files, const std::string& base, bool make_base,
                                         const std::string& user, const std::string& name) {
  if (make_base) CAIRN_TRY(make_folders(files, base, only_me));
  CAIRN_TRY(check_base(files, base));
  const std::string user_folder = base + "/" + user;
  CAIRN_TRY(claim(files, user_folder, others_may_write));
  const std::string folder = user_folder + "/" + name;
  CAIRN_TRY(claim(files, folder, others_may_enter));
  return folder;
}

}  // namespace cairn
