// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include "config/reader.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace berth::config {
namespace {

namespace fs = std::filesystem;
using model::Error;
using model::ErrorKind;
using model::fail;
using model::Result;

// Far above any real configuration: a wrong path (a core file, /dev/zero) is refused early.
constexpr std::size_t kLargestFile = 1U << 20U;

// Whole text of a file; nullopt where there is none of that name.
Result<std::optional<std::string>> read_file(const fs::path& file) {
  // O_NONBLOCK: a FIFO of that name must not hold up the daemon.
  const os::FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened) {
    const int error = errno;
    std::error_code ignored;
    if (error != ENOENT) return fail(Error::from_errno(error, file.string()));
    if (fs::is_symlink(fs::symlink_status(file, ignored))) {
      return fail(ErrorKind::invalid_input, file.string() + ": symbolic link to a file that does not exist");
    }
    return std::nullopt;
  }
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0) return fail(Error::from_errno(errno, file.string()));
  // A link to /dev/null is the usual way to say "nothing here".
  const bool null_device = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  if (S_ISDIR(status.st_mode)) return fail(ErrorKind::invalid_input, file.string() + ": is a directory");
  if (!S_ISREG(status.st_mode) && !null_device) {
    return fail(ErrorKind::invalid_input, file.string() + ": is not a regular file");
  }
  std::string text;
  if (!os::read_up_to(opened.get(), kLargestFile + 1, text))
    return fail(Error::from_errno(errno, file.string()));
  if (text.size() <= kLargestFile) return text;
  return fail(ErrorKind::invalid_input, fmt::format("{}: larger than {} bytes; is this a configuration file?",
                                                    file.string(), kLargestFile));
}

// FILE.d/*.toml in lexical order, hidden files left out.
Result<std::vector<fs::path>> drop_ins(const fs::path& file) {
  const fs::path directory = file.string() + ".d";
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const auto name = entries->path().filename().string();
    if (name.front() != '.' && entries->path().extension() == ".toml") found.push_back(entries->path());
  }
  if (error) return fail(Error::from_errno(error.value(), directory.string()));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<Settings> parse(std::string_view toml, const std::string& name) {
  Settings settings;
  if (auto applied = apply_document(settings, toml, name); !applied) return fail(applied.error());
  return settings;
}

Result<Settings> load(const fs::path& file) {
  auto more = drop_ins(file);
  if (!more) return fail(more.error());
  std::vector<fs::path> files{file};
  files.insert(files.end(), more->begin(), more->end());
  Settings settings;
  for (const auto& path : files) {
    auto text = read_file(path);
    if (!text) return fail(text.error());
    // Absent: the file itself may be absent, and a drop-in may have been removed since the listing.
    if (!*text) continue;
    if (auto applied = apply_document(settings, **text, path.string()); !applied)
      return fail(applied.error());
  }
  return settings;
}

}  // namespace berth::config
