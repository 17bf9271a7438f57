// SPDX-License-Identifier: Apache-2.0
#include "integrations/berth.h"

#include "os/read_file.h"
#include "os/safe_path.h"

#include <cerrno>
#include <utility>

#include <fmt/core.h>

namespace berth::integrations {

using model::ErrorKind;

Berth read_berth(const std::string& state_file, double now, double max_age_s) {
  const auto silent = [](std::string why) { return Berth{.state = std::nullopt, .silence = std::move(why)}; };
  const auto file = os::open_user_file(state_file);
  if (!file && file.error().kind() == ErrorKind::gone)
    return silent(fmt::format("berthd does not run: there is no {}", state_file));
  if (!file) return silent(fmt::format("cannot read berthd's state: {}", file.error().message()));
  std::string text;
  // One byte more than a state may have, so that a longer file is noticed.
  if (!os::read_up_to(file->get(), model::kMaxStateBytes + 1, text)) {
    const auto failed = model::Error::from_errno(errno, state_file);
    return silent(fmt::format("cannot read berthd's state: {}", failed.message()));
  }
  const auto state = model::parse_node_state(text);
  if (!state) return silent(fmt::format("{}: {}", state_file, state.error().message()));
  if (auto stale = model::why_stale(*state, now, max_age_s)) {
    if (state->time <= now) return silent(fmt::format("berthd hangs: {}", *stale));
    return silent(
        fmt::format("the clock of this host disagrees with berthd: {}; is the clock right?", *stale));
  }
  return Berth{.state = *state, .silence = {}};
}

}  // namespace berth::integrations
