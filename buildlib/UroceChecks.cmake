# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# The checks of the sources, as ctest tests of label style.
