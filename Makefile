# Thin: the build is CMake's (CMakePresets.json), the packages are packaging/'s, the tests CTest's.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
SEEDS ?= 100000
KILLS ?= 1000:1200
COPY_KILLS ?= 0:1000
BEHIND_KILLS ?= 0:1000
FUZZ_SECONDS ?= 600
SECONDS ?= 3600
LAUNCHER := $(if $(shell command -v ccache),-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# scrf.h is Fortran.
SOURCES = git ls-files '*.c' '*.h' '*.cpp' '*.hpp' ':!include/scrf.h'

# Open MPI refuses to start as root without these, and containers and chroots are mostly root.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

.PHONY: help demo test test-cluster test-apps asan tsan build bench bench-simgrid bench-crfs bench-rbio figures-rbio soak soak-copies soak-behind soak-crfs mutations fuzz lint format install clean \
        memory-directory build-packages test-packages lint-packages bench-packages cluster-packages simgrid-packages \
        crfs-suite-packages crfs-bench-packages rbio-figures-packages apps-packages

help:
	@echo 'make demo      lose a node, keep the run: the main job of Cairn, with proof (about a minute)'
	@echo 'make test      build everything and run all tests'
	@echo
	@echo 'make test-cluster   kill nodes under a real Slurm, mpirun and mpiexec, and print how long the jobs stood still'
	@echo 'make test-apps     kill nodes under LAMMPS, OpenFOAM, GROMACS and other programs that know nothing of Cairn (ten minutes)'
	@echo 'make build     build the library, the tool cairn and the examples, optimised (build/release)'
	@echo 'make install   install them below PREFIX (now $(PREFIX))'
	@echo 'make asan      run the tests without MPI under the address and undefined-behaviour sanitizers'
	@echo 'make tsan      run the same tests under the thread sanitizer'
	@echo 'make soak      run SEEDS=n seeds of the simulation (now $(SEEDS)), then the seeds KILLS=from:to (now $(KILLS))'
	@echo '               that kill real processes and damage real files; a seed that fails prints how to replay it;'
	@echo '               let jobs die at each change of a checkpoint, and at each call of copies and of protection behind the'
	@echo '               program; count the costs of a job of 4096 ranks, and kill rbIO at each change on disk'
	@echo 'make soak-copies   run the seeds COPY_KILLS=from:to (now $(COPY_KILLS)) that kill real processes and drains while'
	@echo '               they copy to the prefix directory (some hours on two cores)'
	@echo 'make soak-behind   run the seeds BEHIND_KILLS=from:to (now $(BEHIND_KILLS)) that kill real processes while a checkpoint'
	@echo '               is written and not protected (an hour on two cores)'
	@echo 'make soak-crfs test mounts of CRFS for SECONDS=n (now $(SECONDS)), also with pjdfstest and fsx, which cargo builds;'
	@echo '               one round at full size takes half an hour on two cores (docs/testing.md)'
	@echo 'make mutations put defects into a copy of the sources, one at a time, and check that the simulation finds each'
	@echo 'make fuzz      run each fuzz target for FUZZ_SECONDS=n (now $(FUZZ_SECONDS)), JOBS at once, and keep what it finds;'
	@echo '               FUZZ_TARGETS=name runs only that target'
	@echo 'make bench     build the programs in bench/ and run them (the target bench of bench/)'
	@echo 'make bench-simgrid   run the real encode on simulated networks of up to 2048 nodes (ten minutes)'
	@echo 'make bench-crfs   write checkpoints through CRFS, without it, and through a plain passthrough (15 minutes)'
	@echo 'make bench-rbio   write checkpoints through rbIO and through collective MPI-IO, while a solver computes (an hour)'
	@echo 'make figures-rbio   make the figures of docs/rbio-figures.md (forty minutes)'
	@echo 'make format    format the sources with clang-format'
	@echo 'make lint      check the format, compile each source alone, and run clang-tidy on it (minutes)'
	@echo 'make clean     delete build/'
	@echo
	@echo 'JOBS=N sets how many processes compile and test at once (now $(JOBS)).'

build-packages test-packages lint-packages bench-packages cluster-packages simgrid-packages \
crfs-suite-packages crfs-bench-packages rbio-figures-packages apps-packages: %-packages:
	@packaging/install-dependencies build $(filter-out build,$*)

# The demo and some tests keep their node-local storage there, as programs do.
memory-directory:
	@test -w /dev/shm || { echo '/dev/shm is missing or not writable; in a chroot: mount -t tmpfs tmpfs /dev/shm' >&2; exit 1; }
	@test "$$(stat -f -c %T /dev/shm)" = tmpfs || echo 'note: /dev/shm is on a disk here, so times are those of the disk'

build: build-packages
	cmake --preset release $(LAUNCHER) -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build build/release --parallel $(JOBS)

demo: memory-directory build
	python3 examples/demo/demo.py --build build/release

test: memory-directory test-packages crfs-suite-packages
	@JOBS=$(JOBS) tests/run dev $(LAUNCHER)

# Needs root, namespaces and Slurm, so not in make test; CI runs them too.
test-cluster: memory-directory test-packages cluster-packages
	cmake --preset dev $(LAUNCHER)
	cmake --build build/dev --parallel $(JOBS)
	ctest --test-dir build/dev -C cluster -R '^cluster_' --verbose

# Hundreds of megabytes of packages, so not in make test.
test-apps: memory-directory test-packages apps-packages
	cmake --preset dev $(LAUNCHER)
	cmake --build build/dev --parallel $(JOBS)
	test -d build/dev/python/mpi4py || \
	  /usr/bin/python3 -m pip install --quiet --no-deps --target build/dev/python mpi4py==4.1.2
	python3 -B -m pytest -q -p no:cacheprovider tests/apps --build build/dev
	python3 -B -m pytest -q -p no:cacheprovider tests/wrapped --all --build build/dev

# Without MPI, which is not built for the sanitizers: the same code runs over a Team of threads.
asan tsan: memory-directory test-packages crfs-suite-packages
	@JOBS=$(JOBS) tests/run $@ $(LAUNCHER)

bench: bench-packages
	@test -e bench/CMakeLists.txt || { echo 'bench/ has no programs yet' >&2; exit 1; }
	cmake --preset release $(LAUNCHER) -DCAIRN_BENCH=ON
	cmake --build build/release --parallel $(JOBS)
	cmake --build build/release --target bench

bench-simgrid: simgrid-packages
	cmake --preset release $(LAUNCHER) -DCAIRN_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-simgrid

bench-crfs: memory-directory crfs-bench-packages
	cmake --preset release $(LAUNCHER) -DCAIRN_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-crfs

bench-rbio: memory-directory build-packages
	cmake --preset release $(LAUNCHER) -DCAIRN_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-rbio

figures-rbio: memory-directory rbio-figures-packages
	cmake --preset release $(LAUNCHER) -DCAIRN_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target figures-rbio

soak: test-packages
	cmake --preset dev $(LAUNCHER)
	cmake --build build/dev --parallel $(JOBS)
	build/dev/tests/sim/sim --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --behind --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --prefix --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --bypass --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --trouble --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --async --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --rbio --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --wrapped --soak $(SEEDS) --jobs $(JOBS)
	build/dev/tests/sim/sim --rbio-death --soak $(SEEDS) --jobs $(JOBS)
	EVERY_DEATH=1 build/dev/src/comm/comm_test --gtest_filter='*KilledAtEachWrite*'
	EVERY_DEATH=1 build/dev/src/session/session_test --gtest_filter='*Crash*'
	EVERY_DEATH=1 build/dev/tests/sim/async_deaths_test
	EVERY_DEATH=1 build/dev/tests/sim/behind_deaths_test
	SCALE_RANKS=4096 build/dev/tests/scale/scale_test
	python3 -B -m pytest -q -p no:cacheprovider tests/faults/test_sampled_kills.py \
	  tests/faults/test_sampled_damage.py --build build/dev --seeds $(KILLS)
	python3 -B -m pytest -q -p no:cacheprovider tests/rbio --build build/dev --all-moments

soak-copies: memory-directory test-packages
	cmake --preset dev $(LAUNCHER)
	cmake --build build/dev --parallel $(JOBS)
	python3 -B -m pytest -q -p no:cacheprovider tests/faults/test_async_flush.py --build build/dev --seeds $(COPY_KILLS)

soak-behind: memory-directory test-packages
	cmake --preset dev $(LAUNCHER)
	cmake --build build/dev --parallel $(JOBS)
	python3 -B -m pytest -q -p no:cacheprovider tests/faults/test_sampled_behind.py --build build/dev --seeds $(BEHIND_KILLS)

soak-crfs: memory-directory test-packages crfs-suite-packages
	cmake --preset dev $(LAUNCHER)
	cmake --build build/dev --parallel $(JOBS)
	tests/crfs/soak --build build/dev --seconds $(SECONDS)

mutations: test-packages
	python3 -B tests/sim/mutations/mutations.py

fuzz: test-packages
	python3 -B fuzz/run.py --seconds $(FUZZ_SECONDS) --jobs $(JOBS) --keep $(FUZZ_TARGETS)

format: lint-packages
	$(SOURCES) | xargs -r clang-format -i

lint: lint-packages test-packages
	$(SOURCES) | xargs -r clang-format --dry-run -Werror
	cmake --preset dev -B build/lint -DCAIRN_BATCH=1 -DCAIRN_TEST_BATCH=1 $(LAUNCHER)
	cmake --build build/lint --parallel $(JOBS)
	git ls-files 'src/*.cpp' | xargs -r -n 1 -P $(JOBS) clang-tidy --quiet -p build/lint

install: build
	cmake --install build/release

clean:
	rm -rf build
