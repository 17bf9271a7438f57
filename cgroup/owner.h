// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/value.h"
#include "model/error.h"

#include <string>

namespace berth::cgroup {

// The holder of an attribute: the group, and the systemd unit whose main group it is.
struct Target {
  const Cgroup* cgroup = nullptr;  // null where the unit has no group now
  std::string unit;                // empty where there is no unit
};

// An attribute as it was before berth first changed it.
struct Original {
  Value value;
  std::string note;  // the owner's other data for putting it back, in its own format
};

// The way to change an attribute: systemd for its units, the kernel's file for the rest.
class Owner {
 public:
  virtual ~Owner() = default;
  // "systemd" or "direct".
  virtual const char* name() const = 0;
  // The nearest value that the owner can hold over time.
  virtual Value attainable(const Value& value) const = 0;
  // The value before berth. Call it before the first set().
  virtual model::Result<Original> original(const Target& target, Attribute attribute) = 0;
  // The value in force. Error gone where neither group nor unit exists.
  virtual model::Result<Value> current(const Target& target, Attribute attribute) = 0;
  // Sets the value's attribute and reads it back. Error transient where the outcome is unknown (no answer in
  // time). Any other error: the value is not in force, or not all of the vCPUs were granted.
  virtual model::Result<void> set(const Target& target, const Value& value) = 0;
  // Whether an earlier call that may change the attribute was given up and goes on. It may still be done, and
  // each further set() fails at once.
  virtual bool is_busy(const Target& target, Attribute attribute) const = 0;
  // Puts `original` back and removes every trace that set() left elsewhere (drop-ins). Returns the value now
  // in force. It differs from the original only where the kernel does not let the original be put back.
  virtual model::Result<Value> reset(const Target& target, const Original& original) = 0;
  // Removes the traces of `written` and leaves the value in force alone. That value is the original, or
  // another program wrote it.
  virtual model::Result<void> relinquish(const Target& target, const Original& original,
                                         const Value& written) = 0;
  // True where the owner itself made `current` of `written` and the original when it read its configuration
  // again. No other program wrote it, but it is not the value that berth wrote.
  virtual model::Result<bool> merged(const Target& target, const Original& original, const Value& written,
                                     const Value& current) = 0;
  // Ends a batch of resets: does the work that is cheaper once than for each.
  virtual model::Result<void> settle() = 0;
};

}  // namespace berth::cgroup
