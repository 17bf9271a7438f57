// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/progress_file.h"

#include "model/progress.h"
#include "model/text.h"
#include "os/mounts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

using model::ErrorKind;

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

FileState state_from(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

model::Result<void> check_regular(mode_t mode) {
  if (S_ISREG(mode)) return {};
  const char* what = S_ISDIR(mode)    ? "a directory"
                     : S_ISLNK(mode)  ? "a symbolic link"
                     : S_ISFIFO(mode) ? "a FIFO"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  return model::fail(ErrorKind::invalid_input, fmt::format("it is {}, not a regular file", what));
}

// The last line of `text`, which begins at the start of the file where `whole`. Empty where there is none,
// nullopt where the line's beginning was not read.
std::optional<std::string_view> last_line(std::string_view text, bool whole) {
  text = model::trimmed_end(text, model::kBlanksAndBreaks);
  const auto line_break = text.rfind('\n');
  if (line_break != std::string_view::npos) return text.substr(line_break + 1);
  return whole || text.empty() ? std::optional(text) : std::nullopt;
}

model::Result<std::optional<double>> parse_tail(std::string_view text, bool whole) {
  const auto fail_for = [](std::string_view why) {
    return model::fail(ErrorKind::invalid_input, fmt::format("its last line is {}", why));
  };
  const auto line = last_line(text, whole);
  if (!line) return fail_for(fmt::format("longer than {} bytes", kProgressTail));
  if (line->empty()) return std::nullopt;
  auto fraction = model::parse_progress(*line);
  if (!fraction && !text.ends_with('\n')) {
    const auto before =
        last_line(text.substr(0, static_cast<std::size_t>(line->data() - text.data())), whole);
    const auto earlier = model::parse_progress(before.value_or(""));
    if (earlier) return *earlier;
  }
  if (!fraction) return fail_for(fraction.error().message());
  return *fraction;
}

}  // namespace

model::Result<ProgressReading> read_progress_file(const os::FileDescriptor& handle) {
  // Of a handle the kind is known before it is opened: to open a device or a FIFO for reading can do things
  // or wait.
  struct stat status {};
  if (fstat(handle.get(), &status) != 0) {
    return model::fail(model::Error::from_errno(errno, "looking at it"));
  }
  if (const auto regular = check_regular(status.st_mode); !regular) return model::fail(regular.error());
  const os::FileDescriptor file(open(fmt::format("/proc/self/fd/{}", handle.get()).c_str(),
                                     O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file || fstat(file.get(), &status) != 0) {
    return model::fail(model::Error::from_errno(errno, "opening it"));
  }
  ProgressReading reading;
  reading.state = state_from(status);
  reading.modified = static_cast<double>(reading.state.modified_ns) * 1e-9;

  std::array<char, kProgressTail> buffer{};
  const auto size = static_cast<off_t>(status.st_size);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(buffer.size()));
  ssize_t got = -1;
  do {
    got = pread(file.get(), buffer.data(), buffer.size(), from);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return model::fail(model::Error::from_errno(errno, "reading it"));
  auto fraction = parse_tail({buffer.data(), static_cast<std::size_t>(got)}, from == 0);
  if (!fraction) return model::fail(fraction.error());
  reading.fraction = *fraction;
  return reading;
}

model::Result<FileState> state_of(const os::FileDescriptor& handle) {
  struct stat status {};
  if (fstat(handle.get(), &status) != 0) {
    return model::fail(model::Error::from_errno(errno, "looking at it"));
  }
  return state_from(status);
}

// As systemd sets them up: it binds an empty directory, or one below /tmp/systemd-private-..., over the real
// one.
std::optional<std::string> hidden_by_sandbox(const std::filesystem::path& path,
                                             const std::filesystem::path& proc_root) {
  const auto mounts = os::read_mounts(proc_root);
  const os::Mount* mount = mounts ? os::mount_of(*mounts, path.string()) : nullptr;
  if (mount == nullptr) return std::nullopt;
  const char* setting = mount->root.find("/systemd-private-") != std::string::npos       ? "PrivateTmp="
                        : mount->root.find("/systemd/inaccessible") != std::string::npos ? "ProtectHome="
                                                                                         : nullptr;
  if (setting == nullptr) return std::nullopt;
  return fmt::format(
      "the sandbox of berthd.service ({}) hides {} from berthd; progress files work below /run (except "
      "/run/user), /var (except /var/tmp) and /srv",
      setting, mount->point);
}

}  // namespace berth::daemon
