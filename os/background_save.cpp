// SPDX-License-Identifier: Apache-2.0
#include "os/background_save.h"

#include "os/staged_file.h"

#include <chrono>
#include <utility>

#include <fmt/core.h>

namespace berth::os {

namespace {

// A stop waits for the disk. systemd ends a wait that is hopeless.
constexpr std::chrono::hours kStopPatience{1};

}  // namespace

model::Result<void> BackgroundSave::save(const std::string& text) {
  finish();
  return replace_file(file_, text, Readers::owner, Lasts::power_loss);
}

model::Result<void> BackgroundSave::begin(std::string text) {
  const auto job = [file = file_, text = std::move(text), outcome = outcome_] {
    *outcome = replace_file(file, text, Readers::owner, Lasts::power_loss);
    return true;
  };
  if (!worker_.can_run()) {
    return model::fail(model::ErrorKind::io,
                       fmt::format("cannot save {}: the host has no thread for it now", file_.string()));
  }
  (void)worker_.run(job, Worker::Patience(0));
  return {};
}

model::Result<void> BackgroundSave::take_outcome() { return std::exchange(*outcome_, {}); }

void BackgroundSave::finish() {
  if (!is_busy()) return;
  worker_.wait_again();
  (void)worker_.run([] { return true; }, kStopPatience);
}

}  // namespace berth::os
