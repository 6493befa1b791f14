// Python bindings of the replicates of weighted rows.
#pragma once

#include <nanobind/nanobind.h>

namespace calibrant {

void bind_weighted_replicates(nanobind::module_& m);

}  // namespace calibrant
