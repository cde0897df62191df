# Brigade. `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.
#
# Non-recursive: every folder of C files is a room, found by wildcard; objects go to build/<variant>/.
# Variants: release; san (AddressSanitizer and UBSan), tsan; fuzz (clang, for tests/fuzz/); arm (the kernels alone, for
# tests/arm/). Goals that need
# several variants, or that install what later ones need, call make again for each step, in order.

VARIANT ?= release
B := build/$(VARIANT)
CC := gcc
AR := gcc-ar
ifeq ($(VARIANT),fuzz)
CC := clang-14
else ifeq ($(VARIANT),arm)
CC := aarch64-linux-gnu-gcc
endif
# Debian's own Python: the test tools are packages of it.
PYTHON ?= /usr/bin/python3
JOBS ?= $(shell nproc)
STEP = $(MAKE) --no-print-directory

PKGS := msgpack libpcre2-8 libutf8proc jansson libedit
# -ffp-contract=off: the order and fusing of additions is defined (docs/arithmetic.md), never the compiler's choice.
CFLAGS_COMMON := -std=gnu17 -D_GNU_SOURCE -I. -include proto/base/banned.h -O2 -g -ffp-contract=off -pthread \
	-fno-math-errno -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Werror -MMD -MP
CFLAGS_release := -D_FORTIFY_SOURCE=2 -fstack-protector-strong
CFLAGS_san := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DBRIG_SANITIZED=1
LDFLAGS_san := -fsanitize=address,undefined
CFLAGS_tsan := -fsanitize=thread -DBRIG_SANITIZED=1
LDFLAGS_tsan := -fsanitize=thread
CFLAGS_fuzz := -Wno-format-nonliteral -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -DBRIG_SANITIZED=1
LDFLAGS_fuzz := -fsanitize=fuzzer,address,undefined
CFLAGS := $(CFLAGS_COMMON) $(CFLAGS_$(VARIANT)) $(EXTRA_CFLAGS)
LDFLAGS := -pthread $(LDFLAGS_$(VARIANT))
# The shard program is linked statically: measured, a process with NNG starts and ends in 1.0 ms instead of 1.8
# (docs/benchmarks.md). --no-warnings: the linker warns that names are then resolved by the libc that it runs on.
SHARD_LDFLAGS_release := -static-pie -Wl,--no-warnings
LIBS_PROTO = -luring -lnng -lmbedtls -lmbedx509 -lmbedcrypto -lmsgpackc -ljansson -lm
LIBS_DRIVER = $(shell pkg-config --libs libpcre2-8 libutf8proc jansson libedit)

# Instruction sets with kernels of their own, by what the compiler builds for.
ISAS_x86_64 := avx512 avxvnni avx2
ISAS_aarch64 := neon
ISAS := $(ISAS_$(firstword $(subst -, ,$(shell $(CC) -dumpmachine))))
FOREIGN := $(filter-out $(ISAS),$(ISAS_x86_64) $(ISAS_aarch64))

PROTO_C := $(wildcard proto/*/*.c)
SHARD_C := $(filter-out shard/main.c $(FOREIGN:%=shard/kernels/%%),$(wildcard shard/*.c shard/*/*.c))
LAUNCHER_C := $(wildcard launcher/*.c)
DRIVER_C := $(filter-out driver/main.c,$(wildcard driver/*.c driver/*/*.c))
UNIT_C := $(wildcard tests/unit/test_*.c)
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
objs = $(patsubst %.c,$(B)/obj/%.o,$(1))
for_isas = $(foreach isa,$(filter $(1),$(ISAS)),$(patsubst %.c,$(B)/obj/%.$(isa).o,$(2)))
VEC_O := $(call for_isas,%,$(wildcard shard/kernels/vec/*.c)) \
	$(call for_isas,avx2 avxvnni,$(wildcard shard/kernels/avx2/*.c))

PROGRAMS := $(B)/brigade $(B)/brigade-shard
COUNTED := $(addprefix $(B)/counted/,brigade brigade-shard count_allocs.so)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_C))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_C))

# Objects of tests stay: else each next run of make would compile them again.
.SECONDARY:

.PHONY: all
all: $(PROGRAMS)

# ---- the programs ----

# Kernels: files named after an instruction set are built with its flags; those in vec/ once for each that the
# target has (vec/vec.h), those in avx2/ for both kinds of AVX2. One is chosen at run time.
FLAGS_avx512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mf16c \
	-mprefer-vector-width=512
# 16 registers: sums in another order than written would all be alive at once.
FLAGS_avx2 := -mavx2 -mfma -mf16c -fno-tree-reassoc
FLAGS_avxvnni := $(FLAGS_avx2) -mavxvnni
FLAGS_neon := -march=armv8.2-a+dotprod
define isa_flags
$(B)/obj/shard/kernels/$(1)_%.o $(B)/obj/shard/kernels/%.$(1).o: CFLAGS += $$(FLAGS_$(1))
$(B)/obj/shard/kernels/%.$(1).o: shard/kernels/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call isa_flags,$(isa))))
$(B)/obj/shard/kernels/%.o: CFLAGS += -O3

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/libproto.a: $(call objs,$(PROTO_C))
$(B)/libshard.a: $(call objs,$(SHARD_C)) $(VEC_O)
$(B)/liblauncher.a: $(call objs,$(LAUNCHER_C))
$(B)/libdriver.a: $(call objs,$(DRIVER_C))
$(B)/%.a:
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/brigade: $(call objs,driver/main.c) $(B)/libdriver.a $(B)/liblauncher.a $(B)/libproto.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_DRIVER) $(LIBS_PROTO)
$(B)/brigade-shard: $(call objs,shard/main.c) $(B)/libshard.a $(B)/libproto.a
	$(CC) $(LDFLAGS) $(SHARD_LDFLAGS_$(VARIANT)) -o $@ $^ $(LIBS_PROTO)
# The same programs, both linked dynamically, so that a test can count their allocations.
$(B)/counted/brigade-shard: $(call objs,shard/main.c) $(B)/libshard.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_PROTO)
$(B)/counted/brigade: $(B)/brigade
	@mkdir -p $(@D)
	cp $< $@
$(B)/counted/count_allocs.so: tests/e2e/count_allocs.c
	@mkdir -p $(@D)
	$(CC) -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC -o $@ $<
$(B)/unit/%: $(B)/obj/tests/unit/%.o $(B)/libdriver.a $(B)/liblauncher.a $(B)/libshard.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS_DRIVER) $(LIBS_PROTO)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(B)/libshard.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS_PROTO)
$(B)/seeds_frame: $(B)/obj/tests/fuzz/seeds_frame.o $(B)/libproto.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_PROTO)
# Without libshard: clang-14 does not know all names of instruction sets in its kernels.
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/libdriver.a $(B)/liblauncher.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_DRIVER) $(LIBS_PROTO)

# ---- what a fresh machine lacks ----

BRIGADE_MODELS ?= models
MODEL := $(BRIGADE_MODELS)/SmolLM2-135M-Instruct.Q4_1.gguf

.PHONY: deps
deps: ## install the Debian packages that are missing (root or sudo), those of the tests too
	@sh configs/install-deps.sh configs/debian-packages.txt $(if $(UNTIL),'$(UNTIL)')

.PHONY: model
model: ## download the model of the demo into models/ (BRIGADE_MODELS=folder for another place)
	@PYTHON='$(PYTHON)' sh configs/fetch-model.sh '$(BRIGADE_MODELS)' smollm2

.PHONY: model-gemma
model-gemma: ## download Gemma 3 270M, which some tests run, into models/ (Google's Gemma terms apply)
	@PYTHON='$(PYTHON)' sh configs/fetch-model.sh '$(BRIGADE_MODELS)' gemma3

.PHONY: demo
demo: ## packages, build, model, and an answer from a real model in shard processes
	@$(STEP) deps UNTIL='to test'
	@echo 'building'
	@$(STEP) -s -j$(JOBS) all
	@sh configs/demo.sh '$(BRIGADE_MODELS)' '$(B)/brigade' '$(STEP) model'

# ---- tests ----

TOKENIZER_FIXTURES := build/fixtures/tok_gpt2.gguf build/fixtures/tok_tiny_bpe517.gguf build/fixtures/tok_tiny_bpe1031.gguf \
	build/fixtures/tok_tiny_spm517.gguf
build/fixtures/tok_gpt2.gguf: PRE := gpt-2
build/fixtures/tok_tiny_bpe517.gguf: PRE := qwen2
build/fixtures/tok_tiny_bpe1031.gguf: PRE := llama-bpe
$(TOKENIZER_FIXTURES): build/fixtures/tok_%.gguf: tests/fixtures/make_tokenizer_gguf.py $(wildcard tests/fixtures/tokenizers/*/*)
	@mkdir -p $(@D)
	$(PYTHON) $< tests/fixtures/tokenizers/$* $@ $(addprefix --pre ,$(PRE))

build/fixtures/token_steps.json: tests/fixtures/tokenizers/steps.json.gz
	@mkdir -p $(@D)
	gzip -dc $< > $@

.PHONY: fixtures
fixtures: $(TOKENIZER_FIXTURES) build/fixtures/token_steps.json

.PHONY: test
test: ## everything that must hold before a change is kept; at most ten minutes on two cores
	@PYTHON='$(PYTHON)' MAKE='$(MAKE)' sh tests/run.sh quick

.PHONY: test-all
test-all: ## the same with every combination, and longer
	@PYTHON='$(PYTHON)' MAKE='$(MAKE)' sh tests/run.sh full

.PHONY: unit-build
unit-build: $(UNIT_TESTS)

.PHONY: unit
unit: fixtures $(PROGRAMS) $(UNIT_TESTS) ## unit tests (VARIANT=san: under the sanitizers)
	@$(PYTHON) tests/unit/run.py --timeout 120 $(UNIT_TESTS)

# PYTEST_ARGS chooses tests: make e2e PYTEST_ARGS='-k stats'.
.PHONY: e2e
e2e: fixtures $(PROGRAMS) $(COUNTED) ## tests of the real programs (VARIANT=san: a part of them)
	@BRIGADE_VARIANT=$(VARIANT) BRIGADE_MODELS='$(BRIGADE_MODELS)' $(PYTHON) tests/e2e/run.py $(PYTEST_ARGS)

.PHONY: parity
parity: $(PROGRAMS) ## every family, format and stored type against its reference (a part of e2e)
	@BRIGADE_VARIANT=$(VARIANT) BRIGADE_MODELS='$(BRIGADE_MODELS)' $(PYTHON) -m pytest -q -rs -p no:cacheprovider \
		tests/e2e/test_parity.py $(PYTEST_ARGS)

.PHONY: kl
kl: $(PROGRAMS) ## what each stored type and 8-bit activations cost on the real models, in a table
	@BRIGADE_DEPTH=full BRIGADE_MODELS='$(BRIGADE_MODELS)' $(PYTHON) -m pytest -q -s -rs -p no:cacheprovider \
		tests/e2e/test_kl.py $(PYTEST_ARGS)

.PHONY: mutate
mutate: ## put faults into a copy of the tree, one at a time: parity must see each (MUTATE=TEXT: some of them)
	@$(PYTHON) tests/mutate/run.py $(MUTATE)

.PHONY: san
san: ## unit tests and a part of the e2e tests under AddressSanitizer and UBSan
	@$(STEP) -s -j$(JOBS) VARIANT=san all unit-build
	@$(STEP) VARIANT=san unit
	@$(STEP) VARIANT=san e2e

# The kernels, the stored types and our own functions in one static program, without the libraries of the engine.
HASHES_C := tests/arm/hashes.c proto/base/err.c proto/base/mem.c proto/base/proc.c proto/base/real.c proto/model/iq_grids.c proto/model/kv_type.c \
	proto/model/packed.c proto/model/r16.c $(wildcard proto/model/type*.c) \
	$(filter-out %/cpus.c %/team.c %/turns.c,$(filter shard/kernels/%,$(SHARD_C)))
$(B)/hashes: $(call objs,$(HASHES_C)) $(VEC_O)
	$(CC) $(LDFLAGS) -static -o $@ $^ -lm

.PHONY: arm
arm: ## kernels for 64-bit ARM in an emulator: the same bits as here
	@$(STEP) -s -j$(JOBS) build/release/hashes
	@sh tests/arm/run.sh '$(STEP) -s -j$(JOBS) VARIANT=arm build/arm/hashes'

FUZZ_SECONDS ?= 20
.PHONY: fuzz-build
fuzz-build: $(FUZZERS)

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZ_SECONDS seconds (20)
	@$(STEP) -s -j$(JOBS) VARIANT=fuzz fuzz-build
	@sh tests/fuzz/run.sh $(FUZZ_SECONDS) $(patsubst tests/fuzz/%.c,build/fuzz/fuzz/%,$(FUZZ_C))

.PHONY: fuzz-seeds
fuzz-seeds: $(B)/seeds_frame ## the seeds of fuzz_frame anew, after a change of the protocol
	@rm -f tests/fuzz/corpus_frame/*
	@$< tests/fuzz/corpus_frame

# BENCH_ARGS: models and options of tests/bench/run.py, such as --llama-bench PATH MODEL.gguf.
BENCH_ARGS ?= $(MODEL)
.PHONY: bench
bench: $(PROGRAMS) ## speed of whole models, beside llama.cpp when BENCH_ARGS says where llama-bench is
	$(PYTHON) tests/bench/run.py --brigade $(B)/brigade $(BENCH_ARGS)

# RAM_ARGS: a model and options of tests/bench/ram.py, such as --llama-bench PATH --ram 75%,50% MODEL.gguf.
RAM_ARGS ?= $(MODEL)
.PHONY: bench-ram
bench-ram: $(PROGRAMS) ## speed under budgets of memory, beside llama.cpp when RAM_ARGS says where llama-bench is
	$(PYTHON) tests/bench/ram.py --brigade $(B)/brigade $(RAM_ARGS)

.PHONY: bench-kernels
bench-kernels: $(B)/bench/bench_kernels ## speed of the matrix kernels for each stored type (KERNEL_ARGS: some types)
	@$< $(KERNEL_ARGS)

# ---- how the text of the repository must be ----

.PHONY: lint
lint: check-arch check-format check-headers check-docs ## formatting, include law, sizes, headers that stand alone, man pages, links

.PHONY: check-arch
check-arch: ## who may include whom; sizes of files and functions
	@$(PYTHON) tests/lint/arch.py --self-test
	@$(PYTHON) tests/lint/arch.py
	@$(PYTHON) tests/lint/sizes.py
	@$(PYTHON) tests/mutate/run.py --check

.PHONY: check-format
check-format:
	@git ls-files '*.c' '*.h' | xargs clang-format-14 --dry-run -Werror
	@echo 'format: clean'

.PHONY: check-headers
check-headers:
	@CC='$(CC)' CFLAGS='$(filter-out -MMD -MP,$(CFLAGS))' $(PYTHON) tests/lint/headers.py

.PHONY: check-docs
check-docs: $(B)/brigade
	@$(PYTHON) tests/lint/models_page.py $(B)/brigade --check
	@sh tests/lint/man.sh docs/man/*.[1-8]
	@$(PYTHON) tests/lint/links.py

.PHONY: docs-models
docs-models: $(B)/brigade ## make docs/models.md again from the tables of what is supported
	@$(PYTHON) tests/lint/models_page.py $(B)/brigade

.PHONY: format
format: ## format every C file
	clang-format-14 -i $$(git ls-files '*.c' '*.h'; git ls-files -o --exclude-standard '*.c' '*.h')

# ---- the rest ----

PREFIX ?= /usr/local
.PHONY: install
install: $(PROGRAMS) ## programs and man pages into $(DESTDIR)$(PREFIX)
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/man/man1'
	install -m 755 $(PROGRAMS) '$(DESTDIR)$(PREFIX)/bin'
	install -m 644 docs/man/*.1 '$(DESTDIR)$(PREFIX)/share/man/man1'

.PHONY: clean
clean: ## remove what was built (not the model)
	rm -rf build

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r goal words; do \
		printf '  %-12s %s\n' "$$goal" "$$words"; done

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
