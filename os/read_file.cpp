// SPDX-License-Identifier: Apache-2.0
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace berth::os {

ssize_t read_retrying(int fd, void* buffer, std::size_t size) {
  ssize_t got = -1;
  do {
    got = ::read(fd, buffer, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

bool read_up_to(int fd, std::size_t most, std::string& text) {
  constexpr std::size_t kFirst = 4096;
  text.clear();
  std::size_t length = 0;
  ssize_t got = 0;
  while (length < most) {
    if (length == text.size()) text.resize(std::min(most, std::max(kFirst, 2 * text.size())));
    got = read_retrying(fd, text.data() + length, text.size() - length);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  const int error = errno;
  text.resize(length);
  errno = error;
  return got >= 0;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return false;
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return true;
}

}  // namespace berth::os
