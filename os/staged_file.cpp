// SPDX-License-Identifier: Apache-2.0
#include "os/staged_file.h"

#include "model/json_text.h"
#include "os/durable.h"
#include "os/file_descriptor.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::os {

namespace {

model::Result<void> write_to_disk(const std::filesystem::path& file) {
  const FileDescriptor fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return model::fail(model::Error::from_errno(errno, fmt::format("opening {}", file.string())));
  return sync_to_disk(fd.get(), file);
}

}  // namespace

model::Result<void> replace_file(const std::filesystem::path& file, std::string_view text, Readers readers,
                                 Lasts lasts) {
  std::filesystem::path staged = file;
  staged += ".new";
  {
    std::ofstream out(staged, std::ios::trunc | std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) return model::fail(model::ErrorKind::io, fmt::format("cannot write {}", staged.string()));
  }
  if (lasts == Lasts::power_loss) {
    // Before the new name: a name that is on the disk before its content would be of an empty file.
    if (auto written = write_to_disk(staged); !written) return written;
  }
  std::error_code failed;
  if (readers == Readers::everybody) {
    using std::filesystem::perms;
    std::filesystem::permissions(
        staged, perms::owner_read | perms::owner_write | perms::group_read | perms::others_read, failed);
  }
  if (!failed) std::filesystem::rename(staged, file, failed);
  if (failed) {
    return model::fail(model::ErrorKind::io,
                       fmt::format("cannot replace {}: {}", file.string(), failed.message()));
  }
  if (lasts == Lasts::power_loss) return sync_directory_of(file);
  return {};
}

std::optional<std::string> read_document(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                         const TakeDocument& take) {
  const auto problem = [&file](const std::string& why) { return fmt::format("{}: {}", file.string(), why); };
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  if (error) return problem(error.message());
  if (bytes > most_bytes) return problem("it is too large to be berth's");
  std::ifstream stream(file);
  if (!stream) return problem(std::generic_category().message(errno));
  try {
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    const auto wrong = take(model::json_of(text));
    return wrong ? std::optional(problem(*wrong)) : std::nullopt;
  } catch (const nlohmann::json::exception& e) {
    return problem(e.what());
  }
}

}  // namespace berth::os
