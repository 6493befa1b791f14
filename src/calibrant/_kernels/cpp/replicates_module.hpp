// Python bindings of the replicates of a table.
#pragma once

#include <nanobind/nanobind.h>

namespace calibrant {

void bind_replicates(nanobind::module_& m);

}  // namespace calibrant
