// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::policies {

// The [quota] table; defaults and meaning in berth.toml(5), reasons in policies/quota/README.md.
struct QuotaSettings {
  bool lift = true;    // a quota that can only throttle bursts of an instance on vCPUs of its own
  bool burst = false;  // cpu.max.burst of services with another quota
};

}  // namespace berth::policies
