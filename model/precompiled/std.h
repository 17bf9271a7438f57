// SPDX-License-Identifier: Apache-2.0
// Headers that nearly every source includes; the compiler reads them once for each library. A source still
// includes what it needs: a build with -Db_pch=false has to pass.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/core.h>
#include <tl/expected.hpp>
