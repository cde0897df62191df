/* The mistral family: as llama, with a sliding window on all layers where config.json has one. GGUF files of
 * these models say llama and have lost the window. */
#include "proto/model/family.h"

#include "proto/model/private.h"

const struct brig_family brig_family_mistral = {
    .name = "mistral",
    .help = "Mistral, Ministral and Nemo: a sliding window where the model has one",
    .describe = brig_family_llama_describe,
};
