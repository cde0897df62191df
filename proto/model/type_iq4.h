/* Inside proto/model: the 16 values that IQ4_NL and IQ4_XS choose from, closer together around zero. */
#ifndef BRIG_PROTO_MODEL_TYPE_IQ4_H
#define BRIG_PROTO_MODEL_TYPE_IQ4_H

static const float brig_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

#endif
