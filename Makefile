# Brigade. `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.
#
# Non-recursive: every folder of C files is a room, found by wildcard; objects go to build/<variant>/.
# Variants: make VARIANT=san builds everything under AddressSanitizer and UBSan.

VARIANT ?= release
B := build/$(VARIANT)
CC := gcc
AR := gcc-ar

PKGS := msgpack libpcre2-8 libutf8proc jansson libedit
# -ffp-contract=off: the order and fusing of additions is defined (docs/arithmetic.md), never the compiler's choice.
CFLAGS_COMMON := -std=gnu17 -D_GNU_SOURCE -I. -include proto/base/banned.h -O2 -g -ffp-contract=off -pthread \
	-fno-math-errno -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Werror -MMD -MP
CFLAGS_release := -D_FORTIFY_SOURCE=2 -fstack-protector-strong
CFLAGS_san := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DBRIG_SANITIZED=1
LDFLAGS_san := -fsanitize=address,undefined
CFLAGS_tsan := -fsanitize=thread -DBRIG_SANITIZED=1
LDFLAGS_tsan := -fsanitize=thread
CFLAGS := $(CFLAGS_COMMON) $(CFLAGS_$(VARIANT)) $(EXTRA_CFLAGS)
LDFLAGS := -pthread $(LDFLAGS_$(VARIANT))
LIBS_PROTO = -lnng -lmbedtls -lmbedx509 -lmbedcrypto -lmsgpackc -lm
LIBS_DRIVER = $(shell pkg-config --libs libpcre2-8 libutf8proc jansson libedit)

PROTO_C := $(wildcard proto/*/*.c)
SHARD_C := $(filter-out shard/main.c,$(wildcard shard/*.c shard/*/*.c))
LAUNCHER_C := $(wildcard launcher/*.c)
DRIVER_C := $(filter-out driver/main.c,$(wildcard driver/*.c driver/*/*.c))
UNIT_C := $(wildcard tests/unit/test_*.c)
objs = $(patsubst %.c,$(B)/obj/%.o,$(1))

PROGRAMS := $(B)/brigade $(B)/brigade-shard
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_C))

.PHONY: all
all: $(PROGRAMS)

# Kernels: one source per instruction set, built with its flags, chosen at run time.
AVX512_OBJS := $(addprefix $(B)/obj/shard/kernels/,avx512.o avx512_int.o avx512_float.o avx512_matmul.o avx512_attention.o)
$(AVX512_OBJS): CFLAGS += -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mf16c -mprefer-vector-width=512
$(B)/obj/shard/kernels/avx2.o: CFLAGS += -mavx2 -mfma -mf16c
# The scalar kernel is the definition: fmaf must be one instruction or a library call, never split.
$(B)/obj/shard/kernels/%.o: CFLAGS += -O3

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/libproto.a: $(call objs,$(PROTO_C))
$(B)/libshard.a: $(call objs,$(SHARD_C))
$(B)/liblauncher.a: $(call objs,$(LAUNCHER_C))
$(B)/libdriver.a: $(call objs,$(DRIVER_C))
$(B)/%.a:
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/brigade: $(call objs,driver/main.c) $(B)/libdriver.a $(B)/liblauncher.a $(B)/libproto.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_DRIVER) $(LIBS_PROTO)
$(B)/brigade-shard: $(call objs,shard/main.c) $(B)/libshard.a $(B)/libproto.a
	$(CC) $(LDFLAGS) $(SHARD_LDFLAGS) -o $@ $^ $(LIBS_PROTO)
$(B)/unit/%: $(B)/obj/tests/unit/%.o $(B)/libdriver.a $(B)/liblauncher.a $(B)/libshard.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS_DRIVER) $(LIBS_PROTO)

.PHONY: unit-build
unit-build: $(UNIT_TESTS)

.PHONY: format
format:
	clang-format-14 -i $$(git ls-files '*.c' '*.h'; git ls-files -o --exclude-standard '*.c' '*.h')

.PHONY: clean
clean:
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
