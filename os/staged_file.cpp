// SPDX-License-Identifier: Apache-2.0
#include "os/staged_file.h"

#include "model/error.h"
#include "model/json_text.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {

namespace {

model::Result<void> sync(int fd, const std::filesystem::path& name) {
  if (fsync(fd) == 0) return {};
  // Some file systems have nothing to do for a directory, and say so.
  if (errno == EINVAL) return {};
  return model::fail(model::Error::from_errno(errno, fmt::format("writing {} to the disk", name.string())));
}

// Writes the name of a file in its directory to the disk, as after rename(2). Error of the system, naming it.
model::Result<void> sync_directory_of(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  const FileDescriptor fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return model::fail(model::Error::from_errno(errno, fmt::format("opening {}", directory.string())));
  return sync(fd.get(), directory);
}

// Writes the open file, and its name in its directory, to the disk (fsync(2)). It may take as long as the
// disk does, seconds under load, so the event loop does not call it.
model::Result<void> sync_to_disk(int fd, const std::filesystem::path& file) {
  if (auto synced = sync(fd, file); !synced) return synced;
  return sync_directory_of(file);
}

model::Result<void> failed(const char* doing, const std::filesystem::path& file) {
  const int why = errno;
  return model::fail(model::ErrorKind::io,
                     fmt::format("{} {}: {}", doing, file.string(), std::generic_category().message(why)));
}

model::Result<void> write_staged(const std::filesystem::path& staged, std::string_view text, Readers readers,
                                 Lasts lasts) {
  const FileDescriptor fd(open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) return failed("making", staged);
  if (!write_all(fd.get(), text)) return failed("writing", staged);
  if (readers == Readers::everybody && fchmod(fd.get(), 0644) != 0)
    return failed("changing the mode of", staged);
  // Before the new name: a name that is on the disk before its content would be of an empty file.
  return lasts == Lasts::power_loss ? sync_to_disk(fd.get(), staged) : model::Result<void>();
}

}  // namespace

model::Result<void> replace_file(const std::filesystem::path& file, std::string_view text, Readers readers,
                                 Lasts lasts) {
  std::filesystem::path staged = file;
  staged += ".new";
  if (auto written = write_staged(staged, text, readers, lasts); !written) return written;
  if (rename(staged.c_str(), file.c_str()) != 0) return failed("replacing", file);
  if (lasts == Lasts::power_loss) return sync_directory_of(file);
  return {};
}

std::optional<std::string> read_text(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                     const TakeText& take) {
  const auto problem = [&file](const std::string& why) { return fmt::format("{}: {}", file.string(), why); };
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  if (error) return problem(error.message());
  if (bytes > most_bytes) return problem("it is too large to be berth's");
  std::ifstream stream(file);
  if (!stream) return problem(std::generic_category().message(errno));
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const auto wrong = take(text);
  return wrong ? std::optional(problem(*wrong)) : std::nullopt;
}

std::optional<std::string> read_document(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                         const TakeDocument& take) {
  return read_text(file, most_bytes, [&take](std::string_view text) -> std::optional<std::string> {
    try {
      return take(model::json_of(text));
    } catch (const nlohmann::json::exception& e) {
      return e.what();
    }
  });
}

}  // namespace berth::os
