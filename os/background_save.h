// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/worker.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace berth::os {

// Saves one file so that it survives power loss, on a thread of its own if the caller may not wait for the
// disk (replace_file() in os/staged_file.h).
class BackgroundSave {
 public:
  explicit BackgroundSave(std::filesystem::path file) : file_(std::move(file)) {}
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;
  // Waits for a save in the background.
  ~BackgroundSave() { finish(); }

  const std::filesystem::path& file() const { return file_; }
  // Saves, and waits for the disk. Error io.
  model::Result<void> save(const std::string& text);
  // Whether a save in the background still goes on.
  bool is_busy() const { return worker_.is_busy(); }
  // Begins one, while none goes on. Error io where no thread can be had.
  model::Result<void> begin(std::string text);
  // The outcome of the save that ended last. It is told once; without a new one there is no error.
  model::Result<void> take_outcome();

 private:
  void finish();

  std::filesystem::path file_;
  Worker worker_;
  // Only the worker's thread uses it while that one is busy.
  std::shared_ptr<model::Result<void>> outcome_ = std::make_shared<model::Result<void>>();
};

}  // namespace berth::os
