// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <systemd/sd-event.h>

namespace berth::os {

struct DisableSource {
  void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};

// Owns a source of an sd-event(3) loop. Its callback is never called after the handle is gone.
using EventSource = std::unique_ptr<sd_event_source, DisableSource>;

// Puts a new source into `source`: add_source(source, sd_event_add_io, event, fd, ...). Returns the negative
// errno of `add` where that fails; `source` is empty then.
template <typename Add, typename... Arguments>
int add_source(EventSource& source, Add add, sd_event* event, Arguments... arguments) {
  sd_event_source* made = nullptr;
  const int result = add(event, &made, arguments...);
  source.reset(result < 0 ? nullptr : made);
  return result;
}

}  // namespace berth::os
