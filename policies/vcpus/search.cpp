// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/search.h"

namespace berth::policies {

SearchFunction search_function(Search search) {
  switch (search) {
    case Search::window:
      return search_window;
    case Search::optimal:
      return search_optimal;
  }
  return search_window;
}

const char* to_string(Search search) {
  switch (search) {
    case Search::window:
      return "window";
    case Search::optimal:
      return "optimal";
  }
  return "";
}

const char* to_string(Weighting weighting) { return weighting == Weighting::request ? "request" : "overlap"; }

}  // namespace berth::policies
