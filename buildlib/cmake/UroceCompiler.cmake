# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# Language, warnings, optimisation, sanitizers: everything that holds for every target.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Another tree (a clean clone, or one for sanitizers) compiles anew only what has changed.
find_program(UROCE_CCACHE ccache)
if(UROCE_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER AND NOT CMAKE_C_COMPILER MATCHES "ccache")
	set(CMAKE_C_COMPILER_LAUNCHER "${UROCE_CCACHE}")
endif()

# An archive is made without those that its users link beside it.
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)

if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# Without NDEBUG: assertions of the engine stay on in what is shipped.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
# Compiled in 60 % of the time of -O2 -g; reports name lines all the same.
if(UROCE_SANITIZE OR UROCE_FUZZ)
	set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
endif()
# GCC clears and copies structures of some hundred bytes by "rep stos" and "rep movs", which take
# 8 ns to get going: there are seven of them in a message's way.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
	foreach(kind memset memcpy)
		string(APPEND CMAKE_C_FLAGS_RELWITHDEBINFO
		       " -m${kind}-strategy=vector_loop:512:noalign,libcall:-1:noalign")
	endforeach()
endif()

# Thread-local variables at an offset that is known when the plug-in is loaded, for which libc keeps
# room: there are few bytes of them, and each poll uses four.
string(APPEND CMAKE_C_FLAGS_RELWITHDEBINFO " -ftls-model=initial-exec")

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes
		    -Wenum-conversion)
if(UROCE_WERROR)
	add_compile_options(-Werror)
endif()

# "wire/packet.h" from another layer, <rdma/uroce-abi.h> from everywhere.
include_directories("${CMAKE_SOURCE_DIR}/providers/uroce" "${CMAKE_SOURCE_DIR}/kernel-headers")

if(UROCE_SANITIZE)
	add_compile_options(-fsanitize=${UROCE_SANITIZE} -fno-sanitize-recover=all
			    -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${UROCE_SANITIZE})
	# With -O1 GCC warns of variables that the plain build, which warns as well, sees set.
	if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
		add_compile_options(-Wno-maybe-uninitialized)
	endif()
	# It sees one process only, and the fences of shared memory are between two.
	if(UROCE_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		add_compile_options(-Wno-tsan)
	endif()
endif()

# Optimise the plug-in as a whole: a message passes all layers, mostly by small functions: two or
# three per cent of latencies and message rates.  Tests link the same objects as they are.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT UROCE_SANITIZE AND NOT UROCE_FUZZ AND
   CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
	# A call of libc or ISA-L loads its address: no stub of the linkage table, of which a
	# message would pass thirty.
	set(UROCE_LTO_COMPILE -flto -ffat-lto-objects -fno-plt)
	set(UROCE_LTO_LINK -flto=auto -fno-plt)
	add_link_options(-fno-lto)
endif()

if(UROCE_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
		message(FATAL_ERROR "UROCE_FUZZ needs clang: add -DCMAKE_C_COMPILER=clang")
	endif()
	# Coverage and sanitizers in everything; the fuzz targets alone link libFuzzer's main().
	add_compile_options(-fsanitize=fuzzer-no-link,address,undefined
			    -fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=address,undefined)
endif()
