// SPDX-License-Identifier: Apache-2.0
// Headers that nearly every test includes; see model/precompiled/std.h.
#include "model/precompiled/std.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
