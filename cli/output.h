// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/problem.h"

#include <string>
#include <string_view>

namespace berth::cli {

// A file that a command writes piece by piece, or standard output. Its descriptor is closed if it was opened
// here.
class Output {
 public:
  // Creates the file; "-" is standard output. Problem wrong_use: it exists, or cannot be made. `command` is
  // named in the message, as the one that replaces no file.
  static Outcome<Output> open(const std::string& file, const char* command);
  Output(Output&& other) noexcept;
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Output& operator=(Output&&) = delete;

  // Writes all of the bytes. Error io names the file.
  model::Result<void> write(std::string_view bytes) const;

 private:
  Output(int fd, bool own, std::string name) : fd_(fd), own_(own), name_(std::move(name)) {}

  int fd_;
  bool own_;
  std::string name_;
};

}  // namespace berth::cli
