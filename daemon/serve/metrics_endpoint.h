// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listen_address.h"
#include "daemon/serve/metrics_server.h"
#include "model/capability.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <systemd/sd-event.h>

namespace berth::daemon {

// Keeps a metrics server where the configuration wants one, and tries again from time to time where it fails.
// Serves nothing before attach().
class MetricsEndpoint {
 public:
  static constexpr double kRetry_s = 10;

  explicit MetricsEndpoint(std::function<std::string()> text) : text_(std::move(text)) {}

  // `event` must live until detach().
  void attach(sd_event* event) { event_ = event; }
  void detach();
  // Cheap where nothing changed. `now` in epoch seconds.
  void keep(const config::ListenAddress& wanted, double now);

  // nullopt where none is configured.
  std::optional<model::Capability> capability() const;

 private:
  std::function<std::string()> text_;
  sd_event* event_ = nullptr;
  config::ListenAddress address_;
  std::unique_ptr<MetricsServer> server_;
  std::string problem_;  // as last logged
  double tried_at_ = 0;
};

}  // namespace berth::daemon
