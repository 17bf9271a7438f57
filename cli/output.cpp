// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

Outcome<Output> Output::open(const std::string& file, const char* command) {
  if (file == "-") return Output(STDOUT_FILENO, false, "standard output");
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) {
    const std::string advice = errno == EEXIST ? fmt::format("; {} writes no file anew", command) : "";
    return problem(Exit::wrong_use,
                   model::Error::from_errno(errno, "cannot write " + file).message() + advice);
  }
  return Output(fd, true, file);
}

Output::Output(Output&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), own_(other.own_), name_(std::move(other.name_)) {}

Output::~Output() {
  if (own_ && fd_ >= 0) close(fd_);
}

model::Result<void> Output::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return model::fail(model::Error::from_errno(errno, "cannot write " + name_));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace berth::cli
