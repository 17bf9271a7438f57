// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/metrics_endpoint.h"

#include "os/log.h"

#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using Kind = config::ListenAddress::Kind;

void MetricsEndpoint::detach() {
  server_.reset();
  event_ = nullptr;
}

void MetricsEndpoint::keep(const config::ListenAddress& wanted, double now) {
  if (event_ == nullptr) return;
  const bool moved = wanted != address_;
  if (moved) {
    server_.reset();
    address_ = wanted;
    problem_.clear();
  }
  if (server_ || wanted.kind == Kind::none) return;
  if (!moved && now >= tried_at_ && now - tried_at_ < kRetry_s) return;
  tried_at_ = now;
  auto started = MetricsServer::start(event_, wanted, text_);
  if (!started) {
    if (problem_ != started.error().message()) os::log_warning("no metrics: {}", started.error().message());
    problem_ = started.error().message();
    return;
  }
  server_ = std::move(*started);
  problem_.clear();
  os::log_info("metrics are served on {}", config::to_string(address_));
}

std::optional<model::Capability> MetricsEndpoint::capability() const {
  if (address_.kind == Kind::none) return std::nullopt;
  if (server_ && !server_->problem().empty()) {
    return model::Capability{"metrics", false, "cannot take connections: " + server_->problem()};
  }
  if (server_) {
    return model::Capability{"metrics", true, fmt::format("served on {}", config::to_string(address_))};
  }
  return model::Capability{"metrics", false, problem_ + "; berth tries again every 10 s"};
}

}  // namespace berth::daemon
