// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::spark::test {

// A file that cannot be read for as long as this exists, like the command line of a process that holds up its
// readers.
class HangingFile {
 public:
  explicit HangingFile(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::remove(path_);
    if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
  }
  // Those that wait read an empty file.
  ~HangingFile() {
    const int writer = open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    if (writer >= 0) close(writer);
  }
  HangingFile(const HangingFile&) = delete;
  HangingFile& operator=(const HangingFile&) = delete;

 private:
  std::filesystem::path path_;
};

}  // namespace berth::spark::test
